//go:build linux

package faults_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// esbBody is a call of BlueKing with the admin's credentials in the body and some padding. last puts the credentials
// behind the padding, as clients do that add them to a finished request.
func (s *limited) esbBody(padding int, last bool) []byte {
	cred := fmt.Sprintf(`"bk_app_code":%q,"bk_app_secret":%q,"bk_username":%q`, s.Cred.AppCode, s.Cred.Secret,
		s.Cred.Username)
	rest := `"meta":{"namespace":"gse","name":"x"},"hosts":[{"ip":"127.0.0.1","bk_cloud_id":0}],"pad":"` +
		strings.Repeat("x", padding) + `"`
	if last {
		return []byte("{" + rest + "," + cred + "}")
	}
	return []byte("{" + cred + "," + rest + "}")
}

// post sends a body and returns the code of the answer.
func (s *limited) post(client *http.Client, body []byte) (int, string) {
	s.t.Helper()
	res, err := client.Post(s.Cred.URL+"/api/c/compapi/v2/gse/get_proc_status/", "application/json", bytes.NewReader(body))
	if err != nil {
		return -1, err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	var e struct{ Code int }
	if err != nil || json.Unmarshal(b, &e) != nil {
		return -1, fmt.Sprintf("%v in %s", err, b)
	}
	return e.Code, string(b)
}

// TestTD10BodiesOfStrangers: 300 strangers stop in the middle of their bodies, one MiB each. The memory of the server
// stays within its budget, and callers with credentials at the beginning or at the end of long bodies are served.
func TestTD10BodiesOfStrangers(t *testing.T) {
	s := startLimited(t)
	for _, last := range []bool{false, true} {
		if code, body := s.post(http.DefaultClient, s.esbBody(900_000, last)); code != 0 {
			t.Fatalf("a long body, credentials last: %v: %s", last, body)
		}
	}
	before := s.RSS()

	const strangers, length, sent = 300, 1_048_570, 1_040_000
	part := append([]byte(`{"pad":"`), bytes.Repeat([]byte("x"), sent-8)...)
	var open []net.Conn
	var wg sync.WaitGroup
	for i := range strangers {
		c, err := dialFrom(fmt.Sprintf("127.3.0.%d", 1+i%3), s.hostPort())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		wg.Go(func() {
			_ = c.SetWriteDeadline(time.Now().Add(8 * time.Second)) // those without room are read slowly or not at all
			_, _ = fmt.Fprintf(c, "POST /api/c/compapi/v2/gse/get_proc_status/ HTTP/1.1\r\nHost: x\r\n"+
				"Content-Length: %d\r\n\r\n", length)
			_, _ = c.Write(part)
		})
	}
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
		wg.Wait()
	}()

	// Serve others meanwhile.
	valid := from("127.4.0.1")
	highest, served := before, 0
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, size := range []int{10, 100_000} {
			if code, body := s.post(valid, s.esbBody(size, false)); code != 0 {
				t.Errorf("a caller among the strangers: %s", body)
			}
		}
		served++
		highest = max(highest, s.RSS())
	}
	if code, body := s.admin().esb("get_proc_status", ft.J{"meta": ft.J{"namespace": "gse", "name": "x"},
		"hosts": []ft.J{ft.Host(1)}}); code != 0 {
		t.Errorf("credentials in the header: %s", body)
	}
	fmt.Printf("threat TD10: %d strangers stop in their bodies: %d MiB before, at most %d MiB; %d rounds of others\n",
		strangers, before>>20, highest>>20, served)
	bound := int64(200 << 20)
	if ft.Race { // the detector keeps several bytes for each byte; the bodies themselves would be 300 MiB
		bound *= 4
	}
	if int64(highest-before) > bound {
		t.Errorf("the server grew from %d to %d MiB", before>>20, highest>>20)
	}

	// Without credentials in the first MiB the answer says so.
	big := append([]byte(`{"pad":"`), bytes.Repeat([]byte("x"), 2<<20)...)
	if code, body := s.post(valid, append(big, `"}`...)); code != 1306000 || !strings.Contains(body, "first 1 MiB") {
		t.Errorf("no credentials: %.300s", body)
	}
}

// TestTD11SilentConnections: a stranger opens more connections to the port of the agents than the server may have files,
// and says nothing. The API answers on new connections, and an agent still comes in.
func TestTD11SilentConnections(t *testing.T) {
	needs(t, "prlimit")
	s := startLimited(t)
	s.Kill(syscall.SIGTERM)
	s.Through("prlimit", "--nofile=1024:1024")
	s.Again()
	s.AwaitReady()

	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	fresh := from("127.4.0.2")

	// A connection above the total has a file until it is closed, a moment after it was accepted; a silent one has it
	// for longer than this waits.
	frees := func() {
		t.Helper()
		ft.Until(t, 4*time.Second, func() string { return fmt.Sprintf("the server has %d open files", s.Descriptors()) },
			func() bool { return s.Descriptors() <= 1000 })
	}
	for i := range 1100 {
		c, err := dialFrom("127.3.0.1", s.Agents)
		if err != nil {
			break // the queue of the kernel is full
		}
		open = append(open, c)
		if i%100 == 99 {
			frees()
			if code, body := s.post(fresh, s.esbBody(10, false)); code != 0 {
				t.Fatalf("the API after %d silent connections: %s", i+1, body)
			}
		}
	}
	if len(open) < 300 {
		t.Fatalf("only %d connections were opened", len(open))
	}
	s.StartAgent(t, 1, "")

	// The API has a total, too. Connections that say nothing last some seconds, so more come until the total is reached.
	var calls []net.Conn
	n := 0
	ft.Until(t, time.Minute, func() string { return "no connection above the total was closed" }, func() bool {
		for range 300 {
			n++
			if c, err := dialFrom(fmt.Sprintf("127.5.%d.%d", n>>8&255, n&255), s.hostPort()); err == nil {
				calls = append(calls, c)
			}
		}
		frees()
		for _, c := range calls[:len(calls)/2] {
			_ = c.Close()
		}
		return s.metric("connections") != ""
	})
	for _, c := range calls {
		_ = c.Close()
	}
	s.AwaitOnline(t, 1)
}

// metric is the line of /metrics about a rule that rejected something, "" if there is none or no connection is free.
func (s *limited) metric(rule string) string {
	res, err := (&http.Client{Timeout: 5 * time.Second}).Get(s.Cred.URL + "/metrics")
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	for scan := bufio.NewScanner(res.Body); scan.Scan(); {
		if strings.HasPrefix(scan.Text(), `gozzard_security_refused_total{rule="`+rule+`"}`) {
			return scan.Text()
		}
	}
	return ""
}

// TestTD15SharedAddress: a stranger guesses without a pause from the address that others use, behind a gateway or not.
// Whoever has the right secret, token or password is let in. Wrong ones are limited by address and name, and only a
// trusted proxy says which address that is.
func TestTD15SharedAddress(t *testing.T) {
	s := startLimited(t, ft.Known(t, "server", "--trusted-proxy=127.6.0.0/24")...)
	shop := s.operator("shop")
	for _, user := range []string{"alice", "bob"} {
		status, body := s.admin().send(http.MethodPost, "/api/v1/users", ft.J{"name": user, "password": "right horse " + user,
			"grants": []ft.J{{"role": "viewer"}}})
		if status >= 300 {
			t.Fatalf("user %s: %d %s", user, status, body)
		}
	}
	login := func(client *http.Client, user, password string, header ...string) int {
		c := appCaller{s: s, client: client}
		status, _ := c.send(http.MethodPost, "/api/v1/login", ft.J{"user": user, "password": password}, header...)
		return status
	}

	// Guess for a known app, an unknown one, and a known person.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer func() { close(stop); wg.Wait() }()
	guess := func(f func()) {
		wg.Go(func() {
			for tick := time.NewTicker(300 * time.Millisecond); ; {
				select {
				case <-stop:
					return
				case <-tick.C:
					f()
				}
			}
		})
	}
	wrong := func(app string) func() {
		return func() { s.post(http.DefaultClient, fmt.Appendf(nil, `{"bk_app_code":%q,"bk_app_secret":"x"}`, app)) }
	}
	guess(wrong("shop"))
	guess(wrong("unknown"))
	guess(func() { login(http.DefaultClient, "alice", "wrong horse alice") })
	ft.Until(t, time.Minute, func() string { return "the guesses are not limited" }, func() bool {
		code, _ := s.post(http.DefaultClient, []byte(`{"bk_app_code":"shop","bk_app_secret":"y"}`))
		return code == 1306429 && login(http.DefaultClient, "alice", "another wrong one") == http.StatusTooManyRequests
	})

	// The right ones are let in all the time.
	for range 30 {
		for _, c := range []*appCaller{s.admin(), shop} {
			if code, body := c.esb("get_proc_status", ft.J{"meta": ft.J{"namespace": "gse", "name": "x"},
				"hosts": []ft.J{ft.Host(1)}}); code != 0 {
				t.Fatalf("app %s at the locked address: %s", c.app, body)
			}
		}
	}
	if status := login(http.DefaultClient, "bob", "right horse bob"); status != http.StatusOK {
		t.Errorf("another person at the locked address: %d", status)
	}
	if status := login(from("127.4.0.3"), "alice", "right horse alice"); status != http.StatusOK {
		t.Errorf("the person at another address: %d", status)
	}
	ft.Until(t, time.Minute, func() string { return "the right password is never accepted" }, func() bool {
		return login(http.DefaultClient, "alice", "right horse alice") == http.StatusOK
	})

	// A trusted proxy names its callers. Others only say so.
	proxy, liar := from("127.6.0.9"), from("127.7.0.9")
	tries := func(client *http.Client, header func(i int) string) (limited int) {
		for i := range 25 {
			c := appCaller{s: s, app: "unknown", secret: "x", client: client}
			if status, _ := c.send(http.MethodGet, "/api/v1/whoami", nil, "X-Forwarded-For",
				header(i)); status == http.StatusTooManyRequests {
				limited++
			}
		}
		return limited
	}
	if n := tries(proxy, func(i int) string { return fmt.Sprintf("1.1.1.1, 10.0.%d.1", i) }); n != 0 {
		t.Errorf("%d of 25 callers of a proxy are limited by each other", n)
	}
	if n := tries(proxy, func(i int) string { return fmt.Sprintf("10.1.%d.1, 10.9.9.9", i) }); n == 0 {
		t.Error("a caller of a proxy gets around the limit by an address of its own")
	}
	if n := tries(liar, func(i int) string { return fmt.Sprintf("10.2.%d.1", i) }); n == 0 {
		t.Error("a caller that is no proxy gets around the limit by a header")
	}
}
