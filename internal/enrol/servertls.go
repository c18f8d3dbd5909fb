package enrol

import (
	"crypto/tls"
	"sync"
)

// presenter shows the server's own certificate, made anew before it is over.
type presenter struct {
	authority *Authority
	names     []string

	mu   sync.Mutex
	cert *tls.Certificate
}

func (p *presenter) get() (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cert != nil && p.authority.now().Before(p.cert.Leaf.NotAfter.Add(-serverLife/3)) {
		return p.cert, nil
	}
	cert, err := p.authority.ServerCertificate(p.names)
	if err != nil {
		return nil, err
	}
	p.cert = cert
	return cert, nil
}

// APITLS is how the API is served: with a certificate of the authority for the names, or with the one that others
// gave for it. Whoever asks for ServerName always gets the authority's own, so that hosts can enrol also where
// people see another certificate. A certificate of the caller is asked for and looked at by the one route that
// needs it.
func (a *Authority) APITLS(names []string, given func() (*tls.Certificate, error)) *tls.Config {
	own := &presenter{authority: a, names: names}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert, ClientCAs: a.Pool(),
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if given == nil || h.ServerName == ServerName {
				return own.get()
			}
			return given()
		},
	}
}

// FabricTLS is how the fabric is served: to agents with a certificate of the authority only, which may resume.
func (a *Authority) FabricTLS() *tls.Config {
	own, resume := &presenter{authority: a}, &tickets{authority: a}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool(),
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.get() },
		WrapSession:    resume.wrap, UnwrapSession: resume.unwrap,
	}
}
