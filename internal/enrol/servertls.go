package enrol

import (
	"crypto/tls"
	"sync"
)

// serverCertificate is a certificate of the server. It is replaced by a new one before it expires.
type serverCertificate struct {
	authority *Authority
	create    func() (*tls.Certificate, error)

	mu   sync.Mutex
	by   *authorityKey
	cert *tls.Certificate
}

// get returns the certificate, or a new one in the last third of its life and of another authority.
func (c *serverCertificate) get() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	by, _ := c.authority.keys()
	if c.cert != nil && c.by == by && c.authority.now().Before(c.cert.Leaf.NotAfter.Add(-serverLife/3)) {
		return c.cert, nil
	}
	cert, err := c.create()
	if err != nil {
		return nil, err
	}
	c.cert, c.by = cert, by
	return cert, nil
}

// certificateFor is the certificate that the server shows to agents and callers.
func (a *Authority) certificateFor(names []string) *serverCertificate {
	create := func() (*tls.Certificate, error) { return a.ServerCertificate(names) }
	return &serverCertificate{authority: a, create: create}
}

// APITLS is the TLS configuration of the API. The server shows the given certificate, or one of the authority for the
// names. A client that asks for ServerName always gets the certificate of the authority, so that hosts can enrol even
// if people see another one. The server requests a client certificate; only the routes that need one check it.
func (a *Authority) APITLS(names []string, given func() (*tls.Certificate, error)) *tls.Config {
	own := a.certificateFor(names)
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert, ClientCAs: a.Pool(), // a hint for browsers
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if given == nil || h.ServerName == ServerName {
				return own.get()
			}
			return given()
		},
	}
}

// FabricTLS is the TLS configuration of the fabric. Agents need a certificate of the authority and may resume
// connections.
func (a *Authority) FabricTLS() *tls.Config {
	own, resume := a.certificateFor(nil), &tickets{authority: a}
	c := &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool(),
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.get() },
		WrapSession:    resume.wrap, UnwrapSession: resume.unwrap,
	}
	shared := &sharedConfig{authority: a, base: c.Clone()}
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return shared.get(), nil }
	return c
}

// sharedConfig is the configuration of all connections between two rotations of the authority. Each connection keeps the
// one that it began with, so a copy for each would cost a large fleet memory.
type sharedConfig struct {
	authority *Authority
	base      *tls.Config

	mu            sync.Mutex
	current, next *authorityKey // of now
	now           *tls.Config   // nil: none was asked for
}

func (s *sharedConfig) get() *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()

	current, next := s.authority.keys()
	if s.now == nil || s.current != current || s.next != next {
		s.now = s.base.Clone()
		s.now.ClientCAs = poolOf(current, next)
		s.current, s.next = current, next
	}
	return s.now
}
