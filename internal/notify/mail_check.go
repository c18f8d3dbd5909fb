package notify

import (
	"context"
	"net"
	"net/mail"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// lookupTime bounds how long a new receiver of mail waits for the addresses of its server.
const lookupTime = 2 * time.Second

// checkMail rejects settings of mail that cannot work.
func (e *Engine) checkMail(ctx context.Context, r *record.Receiver) error {
	s := &r.Settings
	for _, f := range []struct{ setting, value string }{{"url", s.URL}, {"secret", s.Secret}, {"authorization", s.Authorization}} {
		if f.value != "" {
			return fault(f.setting, "receivers of mail do not have this")
		}
	}
	if err := e.checkMailServer(ctx, s); err != nil {
		return err
	}
	switch {
	case s.User == "" && s.Password != "":
		return fault("user", "is missing: a user and a password belong together")
	case s.User != "" && s.Password == "":
		return fault("password", "is missing: a user and a password belong together")
	}

	// The addresses.
	if len(s.To) == 0 || len(s.To) > maxTo {
		return fault("to", "use 1 to %d addresses", maxTo)
	}
	for i, at := range append([]string{s.From}, s.To...) {
		if a, err := mail.ParseAddress(at); err != nil || len(at) > 320 || strings.ContainsAny(at, "\r\n\x00") || a.Address == "" {
			setting := "to"
			if i == 0 {
				setting = "from"
			}
			return fault(setting, "%q is not a mail address", clean(at, 100))
		}
	}
	return nil
}

// checkMailServer checks where mail goes, and that it is encrypted on its way to another machine.
func (e *Engine) checkMailServer(ctx context.Context, s *record.ReceiverSettings) error {
	if s.TLS == "" {
		s.TLS = mailSTARTTLS
	}
	if !slices.Contains([]string{mailSTARTTLS, mailTLS, mailNone}, s.TLS) {
		return fault("tls", "%q: use starttls, tls or none", clean(s.TLS, 20))
	}
	host, _, ok := mailServer(s.Server)
	if !ok {
		return fault("server", "%q: use HOST:PORT", clean(s.Server, 100))
	}
	if s.TLS == mailNone && !isHere(ctx, host) {
		return fault("tls", "none is for a mail server on this machine only, and %s is another machine: use starttls or tls", clean(host, 100))
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if err := e.dial.check(ip); err != nil {
			return fault("server", "%s", err)
		}
	}
	return nil
}

// mailServer reads HOST:PORT.
func mailServer(server string) (host string, port int, ok bool) {
	host, text, err := net.SplitHostPort(server)
	if err != nil || host == "" {
		return "", 0, false
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return host, int(n), err == nil && n > 0
}

// isHere reports whether a mail server may be on this machine. A name that cannot be resolved now may be: the connection is checked
// again when mail is sent.
func isHere(ctx context.Context, host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err != nil || !slices.ContainsFunc(ips, func(ip netip.Addr) bool { return !ip.Unmap().IsLoopback() })
}
