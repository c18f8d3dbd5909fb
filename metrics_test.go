package gozzard_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

// TestTI5MetricsOfOtherHosts: an agent cannot send Prometheus, with its token, to another address than its own.
func TestTI5MetricsOfOtherHosts(t *testing.T) {
	h := gozzard.HostInfo{Addrs: []gozzard.HostAddr{{Cloud: 3, IP: netip.MustParseAddr("10.0.0.1")},
		{IP: netip.MustParseAddr("2001:db8::1")}}}
	for text, want := range map[string]string{
		"http://10.0.0.1:9436":       "http 10.0.0.1:9436",
		"https://[2001:db8::1]:9436": "https [2001:db8::1]:9436",

		"":                                            "",
		"http://10.0.0.2:9436":                        "",
		"http://127.0.0.1:9436":                       "",
		"http://169.254.169.254:80":                   "",
		"http://10.0.0.1":                             "",
		"http://10.0.0.1:0":                           "",
		"http://10.0.0.1:99999":                       "",
		"http://10.0.0.1:9436/admin":                  "",
		"http://10.0.0.1:9436@evil:80":                "",
		"http://evil:9436":                            "",
		"http://10.0.0.1%eth0:9436":                   "",
		"http://[::ffff:10.0.0.1]:9436":               "",
		"file://10.0.0.1:9436":                        "",
		"HTTP://10.0.0.1:9436":                        "",
		"10.0.0.1:9436":                               "",
		"http://" + strings.Repeat("1", 1<<20) + ":1": "",
	} {
		h.Metrics = text
		got := ""
		if scheme, at, ok := h.MetricsAddr(); ok {
			got = scheme + " " + at.String()
		}
		if got != want {
			t.Errorf("%.60q is %q, want %q", text, got, want)
		}
	}
}
