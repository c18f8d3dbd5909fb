package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/gozzard/gozzard"
)

const (
	probeBody   = 64 << 10 // how much of an answer is read
	probeHeader = 64 << 10
)

// Probe makes a health check that is no command. It reaches addresses of this host only, whatever the definition says: the
// agent must not become a way into the services of other hosts.
func (h *Host) Probe(ctx context.Context, c *gozzard.Control) error {
	switch {
	case c.HealthTCP != "":
		conn, err := dialSelf(ctx, "tcp", c.HealthTCP)
		if err != nil {
			return fmt.Errorf("health: %w", err)
		}
		_ = conn.Close() // it was only opened to be seen
		return nil
	case c.HealthHTTP != "":
		return probeHTTP(ctx, c.HealthHTTP)
	}
	return errors.New("health: the definition has no check")
}

// probeHTTP reads a URL. It follows no redirect, because that could lead to another host, and uses no proxy.
func probeHTTP(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("health: %q is not a URL", gozzard.Clip(address, 100))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	req.Header.Set("User-Agent", "gozzard")

	// The certificate is not checked: it seldom names the loopback address, and the connection does not leave the host.
	transport := &http.Transport{DialContext: dialSelf, DisableKeepAlives: true, MaxResponseHeaderBytes: probeHeader,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	answer, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, probeBody)) // only the status counts

	if answer.StatusCode < 200 || answer.StatusCode > 399 {
		return fmt.Errorf("health: %s answers with %d", gozzard.Clip(address, 200), answer.StatusCode)
	}
	return nil
}

// dialSelf connects to an address of this host.
func dialSelf(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if host == "localhost" { // without a name server
		conn, err := new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return conn, nil
		}
		if six, sixErr := new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("::1", port)); sixErr == nil {
			return six, nil
		}
		return nil, err
	}

	ip, err := netip.ParseAddr(host)
	if err != nil {
		return nil, fmt.Errorf("%q is not an IP address", gozzard.Clip(host, 100))
	}
	own, err := isOwnAddress(ip.Unmap())
	switch {
	case err != nil:
		return nil, err
	case !own:
		return nil, fmt.Errorf("%s is not an address of this host: the agent checks its own host only", ip)
	}
	return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(ip.String(), port))
}

// isOwnAddress reports whether this host has an address.
func isOwnAddress(ip netip.Addr) (bool, error) {
	if ip.IsLoopback() {
		return true, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("cannot list the addresses of this host: %w", err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == ip.WithZone("") {
			return true, nil
		}
	}
	return false, nil
}
