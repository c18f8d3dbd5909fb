package specjson

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard/internal/strictjson"
)

// Loopback is the address of a health check that names a port only.
const loopback = "127.0.0.1"

// readTCP reads the address of a health check: a port, :port, or an address of the host with a port. The agent checks that
// the address is one of its host.
func readTCP(v strictjson.Value) string {
	if v.IsNumber() {
		return net.JoinHostPort(loopback, itoa(int(v.Int(1, 65535))))
	}
	text := strings.TrimPrefix(line(v, maxShort), "tcp://")
	if text == "" {
		if v.IsString() {
			v.Fault("required, is empty")
		}
		return ""
	}
	if !strings.Contains(text, ":") {
		text = ":" + text
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || !isPort(port) {
		v.Fault("must be a port or an address of the host with a port, such as 6379 or 127.0.0.1:6379, is %s",
			strictjson.Quote(text))
		return ""
	}
	return net.JoinHostPort(probeHost(v, host), port)
}

// readHTTP reads the URL of a health check.
func readHTTP(v strictjson.Value) string {
	text := line(v, maxPath)
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" ||
		u.Port() != "" && !isPort(u.Port()) {
		if text != "" || v.IsString() {
			v.Fault("must be a URL such as http://127.0.0.1:8080/ping, is %s", strictjson.Quote(text))
		}
		return ""
	}
	probeHost(v, u.Hostname())
	return u.String()
}

// probeHost checks the host of a health check. A name would need a name server, which could lead the agent to another host.
func probeHost(v strictjson.Value, host string) string {
	switch {
	case host == "":
		return loopback
	case host == "localhost", net.ParseIP(host) != nil:
		return host
	}
	v.Fault("must be localhost or an IP address of the host, is %s: the agent checks its own host only",
		strictjson.Quote(host))
	return host
}

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 1 && n <= 65535
}

func itoa(n int) string { return strconv.Itoa(n) }
