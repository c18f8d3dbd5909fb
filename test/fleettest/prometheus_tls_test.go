//go:build linux

package fleettest_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// certificate makes a certificate of 127.0.0.1 by the command of docs/monitor.md, and returns it in DER.
func (x *watched) certificate(cert, key string) []byte {
	x.Helper()
	page, err := os.ReadFile("../../docs/monitor.md")
	if err != nil {
		x.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n(umask 077; openssl req ")
	text, _, found := strings.Cut(text, ")\n")
	if !found {
		x.Fatal("docs/monitor.md does not say how to make a certificate")
	}
	text = strings.NewReplacer("metrics.key", key, "metrics.pem", cert, "10.0.0.1", "127.0.0.1").Replace(text)
	cmd := exec.Command("bash", "-c", "umask 077; openssl req "+text)
	cmd.Dir = x.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		x.Fatalf("openssl req %s: %v\n%s", text, err, out)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(x.dir, cert), filepath.Join(x.dir, key))
	if err != nil {
		x.Fatal(err)
	}
	return pair.Certificate[0]
}

// TestPrometheusOverTLS: a real Prometheus with the shipped configuration scrapes an agent over TLS. Without the right authority, the
// token or TLS nobody gets metrics. A new certificate counts at the next connection.
func TestPrometheusOverTLS(t *testing.T) {
	t.Parallel() // it mostly waits
	prometheus := debian(t, "prometheus")
	debian(t, "openssl")
	x := &watched{T: t, dir: t.TempDir(), server: ft.StartServer(t, "")}
	listen := "127.0.0.1:" + strconv.Itoa(ft.FreePort(t))
	first := x.certificate("metrics.pem", "metrics.key")
	second := x.certificate("new.pem", "new.key")
	x.server.StartAgent(t, 1, "", "GOZZARD_METRICS_LISTEN="+listen,
		"GOZZARD_METRICS_TOKEN_FILE="+x.write("agents.token", metricsToken+"\n"),
		"GOZZARD_METRICS_TLS_CERT="+filepath.Join(x.dir, "metrics.pem"), "GOZZARD_METRICS_TLS_KEY="+filepath.Join(x.dir, "metrics.key"))
	x.run(1, "over-tls", `command: [sleep, "3600"], restart: always, start_check: 0`)

	// Prometheus with the line about TLS, which people uncomment; and one that knows another authority.
	x.write("gozzard.key", x.viewerToken()+"\n")
	x.write("gozzard.rules.yml", shippedFile(t, "gozzard.rules.yml"))
	start := func(name, ca string) *watched {
		t.Helper()
		y := *x
		at := "127.0.0.1:" + strconv.Itoa(ft.FreePort(t))
		y.url = "http://" + at
		y.write(name+".yml", shippedFile(t, "prometheus.yml", "127.0.0.1:8080", strings.TrimPrefix(x.server.Cred.URL, "http://"),
			"# tls_config: {ca_file: agents.pem}", "tls_config: {ca_file: "+ca+"}", "interval: 15s", "interval: 1s", "refresh_interval: 30s",
			"refresh_interval: 1s"))
		y.foreign(prometheus, "--config.file="+name+".yml", "--storage.tsdb.path="+filepath.Join(x.dir, name), "--web.listen-address="+at)
		return &y
	}
	good, wrong := start("good", "metrics.pem"), start("wrong", "new.pem")
	good.has(`up{job="gozzard-agents",instance="0:127.0.0.1"} == 1`)
	good.has(`gozzard_process_wanted{name="over-tls"} == 1`)
	wrong.has(`up{job="gozzard-agents",instance="0:127.0.0.1"} == 0`)

	// Others get nothing: without the token, and without TLS.
	roots := x509.NewCertPool()
	for _, der := range [][]byte{first, second} {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		roots.AddCert(cert)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	get := func(url, bearer string) (status int, presented []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+bearer)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.TLS != nil {
			presented = res.TLS.PeerCertificates[0].Raw
		}
		return res.StatusCode, presented
	}
	if status, presented := get("https://"+listen+"/metrics", metricsToken); status != http.StatusOK || !bytes.Equal(presented, first) {
		t.Errorf("with the token: %d", status)
	}
	if status, _ := get("https://"+listen+"/metrics", "x"); status != http.StatusUnauthorized {
		t.Errorf("without the token: %d", status)
	}
	if status, _ := get("http://"+listen+"/metrics", metricsToken); status != http.StatusBadRequest {
		t.Errorf("without TLS: %d", status)
	}
	if _, err := tls.Dial("tcp", listen, &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is accepted")
	}

	// Files that do not fit each other change nothing, and the new pair counts without a restart.
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(x.dir, from), filepath.Join(x.dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	rename("new.pem", "metrics.pem")
	if status, presented := get("https://"+listen+"/metrics", metricsToken); status != http.StatusOK || !bytes.Equal(presented, first) {
		t.Errorf("with half of a new certificate: %d", status)
	}
	rename("new.key", "metrics.key")
	ft.Until(t, time.Minute, func() string { return "the new certificate is not used" }, func() bool {
		status, presented := get("https://"+listen+"/metrics", metricsToken)
		return status == http.StatusOK && bytes.Equal(presented, second)
	})
	if up, err := good.query(`up{job="gozzard-agents"}`); err != nil || up != 1 {
		t.Errorf("%d targets, %v", up, err)
	}
}
