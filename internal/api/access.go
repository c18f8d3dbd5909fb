package api

import (
	"crypto/tls"
	"net/http"
	"net/netip"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// Access says which callers a route accepts. The zero value is rejected when the handler is made, so a forgotten
// field cannot open a route.
type Access uint8

// The kinds of access.
const (
	AccessCaller Access = iota + 1 // an app or a person with valid credentials
	AccessOpen                     // everybody
	AccessLocal                    // everybody on this machine; others need a role that sees the whole fleet
	AccessAdmin                    // a caller with the role admin on everything
	AccessHost                     // a host, over TLS 1.3: its token or its certificate is checked by the route
)

// checkAccess identifies the caller of a request and rejects a caller that the route does not accept. It returns a known
// caller also with an error, for the audit.
func (a *api) checkAccess(r *http.Request, need Access) (gozzard.Caller, error) {
	switch {
	case need == AccessOpen || need == AccessLocal && fromLoopback(r):
		return gozzard.Caller{}, nil
	case need == AccessHost:
		return gozzard.Caller{}, a.checkHostAccess(r)
	}

	// Credentials of this API are in headers. The body of a request is read only after its caller is known.
	caller, err := a.identify(r, true)
	if err != nil {
		return caller, err
	}

	if need == AccessAdmin && !caller.Rights.All() {
		return caller, gozzard.Errorf(gozzard.ErrUserForbidden, "this needs the role admin on everything")
	}
	if need == AccessLocal && !caller.Rights.SeesAll() { // the answer counts the whole fleet
		return caller, gozzard.Errorf(gozzard.ErrUserForbidden, "this needs a role that sees the whole fleet")
	}

	return caller, nil
}

// checkHostAccess accepts connections over TLS 1.3 only: a token must not be sent unencrypted, and a certificate is
// part of TLS. The route itself checks the token or the certificate.
func (a *api) checkHostAccess(r *http.Request) error {
	if a.Enrol == nil || r.TLS == nil || r.TLS.Version < tls.VersionTLS13 {
		return gozzard.Errorf(gozzard.ErrUnauthenticated,
			"hosts enrol over TLS 1.3 only, at a server that accepts enrolments")
	}
	return nil
}

// fromLoopback reports whether a request comes from this machine and was meant for it by a name of this machine. A
// request that a proxy on this machine has forwarded has a header that says so, or the name that the caller used, and
// does not count as local.
func fromLoopback(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() || !auth.LocalHost(r.Host) {
		return false
	}
	for _, h := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Via"} {
		if r.Header.Get(h) != "" {
			return false
		}
	}
	return true
}
