package enrol

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// PeerName is the host name in the certificates that servers of an installation show to each other. No certificate of an
// agent has it, nor the one that a server shows to agents.
const PeerName = "peer.gozzard.internal"

// PeerTLS is the TLS configuration of the connections between this server and others of the installation, for both ends.
// Both show a certificate that only a server with the key of the authority can make.
func (a *Authority) PeerTLS(server string) *tls.Config {
	own := &serverCertificate{authority: a,
		create: func() (*tls.Certificate, error) { return a.peerCertificate(server) }}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAnyClientCert, ServerName: PeerName,
		SessionTicketsDisabled: true,
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.get() },
		GetClientCertificate:   func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own.get() },

		// verifyPeer replaces the check of the library, which would use the authorities of the time of this call.
		InsecureSkipVerify: true,
		VerifyConnection:   a.verifyPeer,
	}
}

// peerCertificate creates the certificate of a server for its peers. It is valid for both ends of a connection, because
// either server may open it.
func (a *Authority) peerCertificate(server string) (*tls.Certificate, error) {
	return a.signServer(&x509.Certificate{
		Subject:     pkix.Name{CommonName: PeerName},
		DNSNames:    []string{PeerName},
		URIs:        []*url.URL{{Scheme: agentScheme, Opaque: serverKind + server}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// verifyPeer checks that the other end of a connection is a server of this installation. The certificate must be valid
// for both ends: the connection does not say which end this one is.
func (a *Authority) verifyPeer(cs tls.ConnectionState) error {
	if len(cs.PeerCertificates) == 0 {
		return errors.New("the peer has shown no certificate")
	}
	_, err := a.peerOf(cs.PeerCertificates[0])
	return err
}

// peerOf is the id of the server of this installation that has a certificate.
func (a *Authority) peerOf(cert *x509.Certificate) (server string, err error) {
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if _, err := cert.Verify(x509.VerifyOptions{
			Roots: a.Pool(), DNSName: PeerName, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: a.now(),
		}); err != nil {
			return "", fmt.Errorf("this is no server of this installation: %w", err)
		}
	}

	if len(cert.URIs) != 1 || cert.URIs[0].Scheme != agentScheme ||
		!strings.HasPrefix(cert.URIs[0].Opaque, serverKind) {
		return "", errors.New("this is no server of this installation: its certificate is not that of a server")
	}
	return strings.TrimPrefix(cert.URIs[0].Opaque, serverKind), nil
}
