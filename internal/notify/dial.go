package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// The bounds of one delivery.
const (
	sendTime    = 30 * time.Second
	connectTime = 10 * time.Second
	maxAnswer   = 64 << 10 // bytes of an answer that are read
)

// dialer connects to receivers. It checks the address to which it really connects, not the name: a name can point
// anywhere, and change.
type dialer struct {
	allow []netip.Prefix
}

// never are networks that receivers cannot be in: this machine, its links, and the addresses at which clouds give the
// credentials of their machines.
func never() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("168.63.129.16/32"),
		netip.MustParsePrefix("192.0.0.192/32"), netip.MustParsePrefix("fd00:ec2::254/128"), netip.MustParsePrefix("fd20:ce::254/128"),
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("2002::/16")}
}

func newDialer(allow []string) (*dialer, error) {
	d := &dialer{}
	for _, text := range allow {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--notify-allow %q: use a network such as 127.0.0.0/8", text)
		}
		d.allow = append(d.allow, p)
	}
	return d, nil
}

// check rejects an address that receivers cannot have.
func (d *dialer) check(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	for _, p := range d.allow {
		if p.Contains(ip) {
			return nil
		}
	}
	bad := ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || !ip.IsValid()
	for _, p := range never() {
		bad = bad || p.Contains(ip)
	}
	if bad {
		return fmt.Errorf("the address of the receiver is not allowed: %s is an address of this machine, of its link or of "+
			"its cloud: the server's flag --notify-allow decides which of these receivers may use", ip)
	}
	return nil
}

// DialContext connects, if the address is allowed.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	n := net.Dialer{Timeout: connectTime, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("the address of the receiver is not allowed: %s", address)
		}
		return d.check(at.Addr())
	}}
	return n.DialContext(ctx, network, address)
}

// tlsConfig trusts the given authorities, or those of the system.
func tlsConfig(ca, name string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if ca == "" {
		return c, nil
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM([]byte(ca)) {
		return nil, errors.New("the CA of the receiver has no certificate in PEM")
	}
	return c, nil
}

// client makes the HTTP client of a receiver. It follows no redirect and uses no proxy: both would go around check.
func (d *dialer) client(ca string) (*http.Client, error) {
	config, err := tlsConfig(ca, "")
	if err != nil {
		return nil, err
	}
	return &http.Client{Timeout: sendTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DialContext: d.DialContext, TLSClientConfig: config, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: connectTime, ResponseHeaderTimeout: sendTime, MaxResponseHeaderBytes: maxAnswer,
			IdleConnTimeout: time.Minute, MaxIdleConns: 2, DisableCompression: true}}, nil
}

// rejected is an answer that says that this very message will never be accepted.
type rejected struct{ error }

// do sends a request and reads the beginning of its answer. An answer that is not from 200 to 299 is an error.
func do(c *http.Client, req *http.Request) ([]byte, error) {
	req.Header.Set("User-Agent", "gozzard")
	res, err := c.Do(req)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer func() { _ = res.Body.Close() }() // only the beginning counts
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))

	switch {
	case res.StatusCode == http.StatusBadRequest || res.StatusCode == http.StatusRequestEntityTooLarge ||
		res.StatusCode == http.StatusUnprocessableEntity:
		return nil, rejected{errors.New("the receiver rejects the message with " + answered(res.Status, body))}
	case res.StatusCode < 200 || res.StatusCode > 299:
		return nil, errors.New("the receiver answers " + answered(res.Status, body))
	case err != nil:
		return nil, fmt.Errorf("cannot read the answer of the receiver: %w", err)
	}
	return body, nil
}

// answered is a status with the beginning of what the receiver wrote, if it wrote anything.
func answered(status string, body []byte) string {
	if text := strings.TrimSpace(clean(string(body), 200)); text != "" {
		return clean(status, 60) + ": " + text
	}
	return clean(status, 60)
}
