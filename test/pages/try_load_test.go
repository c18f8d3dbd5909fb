//go:build linux

package pages_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// run kills one part after the other under load, and judges what happened.
func (x *try) run() {
	x.settled()
	began := x.starts()
	x.browser = x.signIn()
	x.live()
	end := x.load()
	seen := x.follow()

	for range *tryRounds {
		for _, p := range x.browser.parts() {
			x.kill(p)
			x.browser.holds()
		}
		x.live()
	}
	x.impostor()
	end()
	x.judge()
	seen.judge()

	// Each restart has started the process once on each host.
	now := x.starts()
	for ip, n := range began {
		if now[ip] != n+x.restarts {
			x.Errorf("%s has started the process %d times for %d restarts", ip, now[ip]-n, x.restarts)
		}
	}
	if len(began) != tryHosts || len(now) != tryHosts {
		x.Errorf("not %d hosts have started the process: %v, %v", tryHosts, began, now)
	}
	x.Logf("%d restarts on %d hosts, %d reads through the load balancer", x.restarts, tryHosts, x.reads.Load())
}

// starts counts how often each host has started the process of the page.
func (x *try) starts() map[string]int {
	x.Helper()
	n := map[string]int{}
	for _, ip := range strings.Fields(x.read("web/starts")) {
		n[ip]++
	}
	return n
}

// load operates other processes on all hosts, and reads through the load balancer. No read may fail.
func (x *try) load() (end func()) {
	var ends []func()
	for host := 1; host <= tryHosts; host++ {
		l := x.direct
		if host > 2 {
			l = x.closed
		}
		ends = append(ends, l.Steady(host, 400*time.Millisecond))
	}

	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			before := x.pardoned.Load()
			page, err := x.balancer.Hosts(x.Context(), 0, 100)
			switch {
			case err == nil && page.Count == tryHosts:
				x.reads.Add(1)
			case !before && !x.pardoned.Load():
				x.Errorf("a read through the load balancer: %d hosts, %v", page.Count, err)
			}
			select {
			case <-quit:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	ends = append(ends, func() { close(quit); wg.Wait() })

	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// judge compares the verdicts of the load with its effects.
func (x *try) judge() {
	x.Helper()
	x.direct.Afterwards(4, 1, 2)
	x.closed.Afterwards(6, 3, 4, 5)
	x.direct.Judge("of the page, direct hosts", ledger.Floor{OK: 10, Percent: 50})
	x.closed.Judge("of the page, hosts behind the relay", ledger.Floor{OK: 10, Percent: 40})
}

// live reads live data through the load balancer: its calls must reach one server.
func (x *try) live() {
	x.Helper()
	table, err := x.balancer.LiveSnapshot(x.Context())
	if err != nil {
		x.Fatal(err)
	}
	ids := slices.Collect(maps.Keys(table.Rows))
	for range 6 {
		if _, err := x.balancer.LiveRows(x.Context(), table.Epoch, ids); err != nil {
			x.Errorf("live rows: %v", err)
		}
	}

	// A restart is in the stream.
	ctx, cancel := context.WithTimeout(x.Context(), time.Minute)
	defer cancel()
	_, done := x.restart(x.balancer)
	changed := false
	for e, err := range x.balancer.FollowLive(ctx, table) {
		if err != nil {
			x.Errorf("live stream: %v", err)
		}
		if changed = e.Batch != nil; changed || err != nil {
			break
		}
	}
	if !changed {
		x.Error("the live stream has no changes")
	}
	done()
}

// impostor puts a web server with another certificate in the place of a server. The load balancer must send it nothing: no
// read fails, although the impostor answers everything, also the health check.
func (x *try) impostor() {
	x.Helper()
	third := part{machine: "s3", signal: syscall.SIGKILL}
	x.signal(third)
	x.fleet("up s3 openssl s_server -www -accept 10.77.1.13:8443 -cert lb.crt -key lb.key")
	x.fleet("await on me curl -ksf https://10.77.1.13:8443/readyz")
	before := x.reads.Load()
	ft.Until(x, time.Minute, func() string { return "no reads through the load balancer beside an impostor" },
		func() bool { return x.reads.Load() > before+60 }) // the health check runs every second
	x.signal(third)
	x.fleet("server 3")
	x.settled()
}

// seenEvents are the events of the process that a reader got through the load balancer.
type seenEvents struct {
	x     *try
	first uint64
	stop  func()
	mu    sync.Mutex
	times map[uint64]int
}

// follow reads the events of the process while parts are killed.
func (x *try) follow() *seenEvents {
	x.Helper()
	page, err := x.balancer.Events(x.Context(), client.EventQuery{}, 1)
	if err != nil {
		x.Fatal(err)
	}
	ctx, cancel := context.WithCancel(x.Context())
	s := &seenEvents{x: x, first: page.Next, times: map[uint64]int{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for e, err := range x.balancer.FollowEvents(ctx, client.EventQuery{Names: []string{"web"}}, s.first) {
			if err != nil {
				continue // a broken connection; it goes on behind the last event
			}
			s.mu.Lock()
			s.times[e.ID]++
			s.mu.Unlock()
		}
	})
	s.stop = func() { cancel(); wg.Wait() }
	x.Cleanup(s.stop)
	return s
}

// judge compares what the reader got with what the servers list.
func (s *seenEvents) judge() {
	s.x.Helper()
	page, err := s.x.balancer.Events(s.x.Context(), client.EventQuery{Names: []string{"web"}}, client.MaxPage)
	if err != nil {
		s.x.Fatal(err)
	}
	listed := 0
	for _, e := range page.Events {
		if e.ID <= s.first {
			continue
		}
		listed++
		ft.Until(s.x, time.Minute, func() string { return fmt.Sprintf("the reader did not get event %d", e.ID) }, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.times[e.ID] > 0
		})
	}
	s.stop()
	for id, n := range s.times {
		if n != 1 {
			s.x.Errorf("the reader got event %d %d times", id, n)
		}
	}
	if listed == 0 || listed > len(s.times) {
		s.x.Errorf("%d events are listed, the reader got %d", listed, len(s.times))
	}
}

// console is a browser with a session.
type console struct {
	x    *try
	http *http.Client
	base *url.URL
}

// signIn opens a session through the load balancer. It must be valid in the same moment, and then on every server.
func (x *try) signIn() *console {
	x.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		x.Fatal(err)
	}
	base, err := url.Parse(tryBalancer)
	if err != nil {
		x.Fatal(err)
	}
	b := &console{x: x, base: base, http: &http.Client{Timeout: time.Minute, Jar: jar, Transport: x.transport()}}
	body, err := json.Marshal(client.LoginRequest{User: "ops", Password: strings.TrimSpace(x.read("password"))})
	if err != nil {
		x.Fatal(err)
	}
	res, err := b.http.Post(tryBalancer+"/api/v1/session", "application/json", bytes.NewReader(body))
	if err != nil {
		x.Fatal(err)
	}
	answer, err := io.ReadAll(res.Body)
	_ = res.Body.Close() // it was only read
	if err != nil || res.StatusCode != http.StatusOK {
		x.Fatalf("sign in: %d %s (%v)", res.StatusCode, answer, err)
	}

	server := b.server()
	for range 12 {
		b.holds()
	}
	if b.server() != server {
		x.Errorf("the browser went from server %d to server %d", server, b.server())
	}
	b.everywhere()
	return b
}

// holds checks that the session is valid.
func (b *console) holds() {
	b.x.Helper()
	res, err := b.http.Get(tryBalancer + "/api/v1/session")
	if err != nil {
		b.x.Errorf("the session of the console: %v", err)
		return
	}
	_ = res.Body.Close() // the status is all that counts
	if res.StatusCode != http.StatusOK {
		b.x.Errorf("the session of the console: %s", res.Status)
	}
}

// everywhere waits until the session is valid on all servers, for a browser that drops the cookie of the load balancer.
func (b *console) everywhere() {
	b.x.Helper()
	var session []*http.Cookie
	for _, c := range b.http.Jar.Cookies(b.base) {
		if c.Name != "fleet-server" {
			session = append(session, c)
		}
	}
	for n := 1; n <= len(b.x.servers); n++ {
		ft.Until(b.x, time.Minute, func() string { return fmt.Sprintf("server %d does not know the session", n) }, func() bool {
			req, err := http.NewRequestWithContext(b.x.Context(), http.MethodGet, tryServer(n)+"/api/v1/session", nil)
			if err != nil {
				b.x.Fatal(err)
			}
			for _, c := range session {
				req.AddCookie(c)
			}
			res, err := (&http.Client{Timeout: time.Minute, Transport: b.http.Transport}).Do(req)
			if err != nil {
				return false
			}
			_ = res.Body.Close() // the status is all that counts
			return res.StatusCode == http.StatusOK
		})
	}
}

// server is the number of the server that the load balancer chose for the browser.
func (b *console) server() int {
	b.x.Helper()
	for _, c := range b.http.Jar.Cookies(b.base) {
		if n, err := strconv.Atoi(strings.TrimPrefix(c.Value, "s")); c.Name == "fleet-server" && err == nil {
			return n
		}
	}
	b.x.Fatal("the browser has no cookie of the load balancer")
	return 0
}

// parts are the parts of the page that are killed, the server of the browser first.
func (b *console) parts() []part {
	first := b.server()
	var list []part
	for n := range 3 {
		number := (first-1+n)%3 + 1
		list = append(list, part{machine: fmt.Sprint("s", number), signal: syscall.SIGKILL, server: number,
			again: fmt.Sprint("server ", number)})
	}
	return append(list,
		part{machine: "relay", signal: syscall.SIGKILL, again: "relay"},
		part{machine: "h1", signal: syscall.SIGKILL, again: "agent 1"},
		part{machine: "h4", signal: syscall.SIGKILL, again: "agent 4"},
		part{machine: "db", signal: syscall.SIGQUIT, again: "database", away: true},
		part{machine: "lb", signal: syscall.SIGKILL, again: "balancer", away: true})
}
