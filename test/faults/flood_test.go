//go:build linux

package faults_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

var (
	floodSlow = flag.Int("faults.slow", 200, "slow connections beside valid callers, in TestTD1Flood")
	floodBad  = flag.Int("faults.bad", 100, "requests with wrong credentials a second, in TestTD1Flood")
	floodTime = flag.Duration("faults.flood", 2*time.Second, "how long each part of TestTD1Flood takes")
)

// flooder is one kind of attack, from addresses of 127.0.0.0/8 that no valid caller has.
type flooder struct {
	t    *testing.T
	addr string
	stop chan struct{}
	wg   sync.WaitGroup
	sent atomic.Int64
	kept atomic.Int64 // refused connections, or requests that were answered with the limit
}

func (f *flooder) dial(n int) (net.Conn, error) {
	from := &net.TCPAddr{IP: net.IPv4(127, 1, byte(n>>8), byte(n))}
	return (&net.Dialer{LocalAddr: from, Timeout: 5 * time.Second}).Dial("tcp", f.addr)
}

// slow keeps one connection that sends a byte of its header now and then. It reconnects when the server closes it.
func (f *flooder) slow(n int) {
	pause := func(d time.Duration) bool { // spread over time, as independent callers are
		select {
		case <-f.stop:
			return false
		case <-time.After(rand.N(d)):
			return true
		}
	}

	for pause(2 * time.Second) {
		c, err := f.dial(n)
		if err == nil {
			f.sent.Add(1)
			_, err = io.WriteString(c, "POST /api/v1/operations HTTP/1.1\r\nHost: x\r\nX-A: ")
		}
		for err == nil && pause(4*time.Second) {
			_, err = io.WriteString(c, "a")
		}
		if c != nil {
			_ = c.Close()
		}
		if err != nil {
			f.kept.Add(1)
		}
	}
}

// guess sends requests with wrong credentials at a rate, from one address.
func (f *flooder) guess(worker int, every time.Duration) {
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 2, 0, byte(worker+1))}}).DialContext,
	}}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(every)
	defer tick.Stop()

	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
		}
		body := fmt.Sprintf(`{"bk_app_code":"admin","bk_app_secret":"guess%d","bk_username":"admin"}`, f.sent.Add(1))
		res, err := client.Post("http://"+f.addr+"/api/c/compapi/v2/gse/get_proc_status/", "application/json",
			strings.NewReader(body))
		if err != nil {
			continue
		}
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		switch {
		case bytes.Contains(b, []byte("1306429")):
			f.kept.Add(1)
		case !bytes.Contains(b, []byte("1306000")):
			f.t.Errorf("a guess was answered with %.200s", b)
		}
	}
}

// valid measures valid callers for a while. Every request must succeed.
func valid(t *testing.T, s *ft.Server, d time.Duration) (p50, p99 time.Duration, n int) {
	t.Helper()
	stop := make(chan struct{})
	time.AfterFunc(d, func() { close(stop) })
	return validUntil(t, s, stop)
}

// validUntil measures valid callers until stop is closed.
func validUntil(t *testing.T, s *ft.Server, stop <-chan struct{}) (p50, p99 time.Duration, n int) {
	t.Helper()
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ; ; time.Sleep(5 * time.Millisecond) {
				select {
				case <-stop:
					return
				default:
				}
				began := time.Now()
				ans, err := s.Try("get_proc_status", ft.J{"meta": ft.J{"namespace": "gse", "name": "x"},
					"hosts": []ft.J{ft.Host(1)}})
				took := time.Since(began)
				if err != nil || ans.Code != 0 {
					t.Errorf("a valid request: %v %s", err, ans.Raw)
					return
				}
				mu.Lock()
				all = append(all, took)
				mu.Unlock()
			}
		})
	}

	wg.Wait()

	if len(all) == 0 {
		t.Fatal("no valid request was answered")
	}

	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100], len(all)
}

// TestTD1Flood sends slow connections and wrong credentials while valid callers work. In `make test` it is small and
// checks only that valid callers are served. `make flood` uses the figures of the threat table and checks that the p99
// stays below twice its value without the flood.
func TestTD1Flood(t *testing.T) {
	s := ft.StartServer(t, "", "--max-failed-logins=10", "--max-connections=1000")
	addr := strings.TrimPrefix(s.Cred.URL, "http://")
	valid(t, s, *floodTime/2) // warm
	_, base, n0 := valid(t, s, *floodTime)
	flood := func(name string, start func(f *flooder)) {
		f := &flooder{t: t, addr: addr, stop: make(chan struct{})}
		start(f)
		time.Sleep(*floodTime / 2)
		p50, p99, n := valid(t, s, *floodTime)
		memory := s.RSS()
		close(f.stop)
		f.wg.Wait()
		ratio := float64(p99) / float64(base)
		fmt.Printf("threat TD1 %s: %d sent, %d cut off; valid callers: %d requests, p50 %s, p99 %s, %.2f times that of before (%s of %d); server has %d MiB\n",
			name, f.sent.Load(), f.kept.Load(), n, p50.Round(time.Microsecond), p99.Round(time.Microsecond), ratio,
			base.Round(time.Microsecond), n0, memory>>20)

		if f.sent.Load() == 0 {
			t.Errorf("%s: nothing was sent", name)
		}
		if *floodSlow >= 2000 && (ratio > 2 || memory > 300<<20) {
			t.Errorf("%s: see the line above", name)
		}
	}

	slow := func(f *flooder) {
		for i := range *floodSlow {
			f.wg.Go(func() { f.slow(i) })
		}
	}

	guess := func(f *flooder) {
		const workers = 10
		for i := range workers {
			f.wg.Go(func() { f.guess(i, workers*time.Second/time.Duration(*floodBad)) })
		}
	}

	flood(fmt.Sprintf("%d slow connections", *floodSlow), slow)
	flood(fmt.Sprintf("%d wrong logins a second", *floodBad), guess)
	flood("both", func(f *flooder) { slow(f); guess(f) })
}

// TestBlastRadiusOfAServer: the native API asks for a confirmation before it stops many processes, BlueKing's doors
// have a quota, and a rejected request changes nothing.
func TestBlastRadiusOfAServer(t *testing.T) {
	s := ft.StartServer(t, "", "--confirm-above=2")
	s.StartSim(t, 3)

	native := func(body string) (int, string) {
		req, err := http.NewRequest(http.MethodPost, s.Cred.URL+"/api/v1/operations", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}

		cred, err := json.Marshal(ft.J{"bk_app_code": s.Cred.AppCode, "bk_app_secret": s.Cred.Secret,
			"bk_username": s.Cred.Username})
		if err != nil {
			t.Fatal(err)
		}

		req.Header.Set("X-Bkapi-Authorization", string(cred))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}

		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}

		return res.StatusCode, string(b)
	}

	op := func(confirm string) string {
		return `{"action":"stop","namespace":"ns","names":["p"],"hosts":[{"cloud":0,"ip":"10.9.9.1"},{"cloud":0,"ip":"10.9.9.2"},{"cloud":0,"ip":"10.9.9.3"}]` + confirm + `}`
	}

	for _, c := range []struct {
		confirm string
		status  int
		text    string
	}{
		{``, 400, "concerns 3 processes, more than 2: repeat it with confirm 3"},
		{`,"confirm":2`, 400, "concerns 3 processes, and confirm is 2"},
		{`,"confirm":0`, 400, "confirm"},
		{`,"confirm":3`, 202, "task_id"},
	} {
		if status, body := native(op(c.confirm)); status != c.status || !strings.Contains(body, c.text) {
			t.Errorf("confirm %q: %d %s", c.confirm, status, body)
		}
	}
}
