package nats

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// loopback splits host:port and reports whether the host is a loopback address or "localhost". It resolves no names,
// because a name can change its address between the check and the use. For the same reason it replaces "localhost" by
// 127.0.0.1.
func loopback(hostport string) (host string, port int, ok bool, err error) {
	host, p, err := net.SplitHostPort(hostport)
	if err != nil {
		return "", 0, false, err
	}

	port, err = strconv.Atoi(p)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, false, fmt.Errorf("%q is not a port", p)
	}
	if host == "localhost" {
		return "127.0.0.1", port, true, nil
	}

	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Zone() != "" || !addr.Unmap().IsLoopback() {
		return host, port, false, nil
	}

	return addr.Unmap().String(), port, true, nil
}

// listenAddr parses the address to listen on: any address with TLS, otherwise a loopback address.
func listenAddr(listen string, anywhere bool) (host string, port int, err error) {
	host, port, ok, err := loopback(listen)
	if err != nil {
		return "", 0, fmt.Errorf("cannot listen on %q: %w", listen, err)
	}
	if !ok && !anywhere {
		return "", 0, fmt.Errorf("agents can only be served on loopback until enrolment and TLS are set up: "+
			"%s is not a loopback address", listen)
	}
	return host, port, nil
}

// serverAddr parses the address of a server: nats://host:port or host:port. Without TLS it must be a loopback address.
func serverAddr(raw string, anywhere bool) (string, error) {
	hostport := raw

	if strings.Contains(raw, "://") {
		u, err := url.Parse(raw)
		if err != nil {
			return "", fmt.Errorf("cannot read the server's address: %w", err)
		}
		if u.Scheme != "nats" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" ||
			u.Fragment != "" {
			return "", fmt.Errorf("%q is not of the form nats://host:port", u.Redacted())
		}
		hostport = u.Host
	}

	host, port, ok, err := loopback(hostport)
	if err != nil {
		return "", fmt.Errorf("cannot read the server's address: %w", err)
	}
	if !ok && !anywhere {
		return "", fmt.Errorf("a server can only be joined on loopback until enrolment and TLS are set up: "+
			"%s is not a loopback address", hostport)
	}

	return "nats://" + net.JoinHostPort(host, strconv.Itoa(port)), nil
}
