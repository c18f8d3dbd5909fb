//go:build linux

package faults_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
	"github.com/gozzard/gozzard/test/sim"
)

var crowdSize = flag.Int("faults.callers", 150, "callers that all retry at once, in TestV19CallersThatRetry")

const (
	crowdHosts = 100
	cutEvery   = 250 * time.Millisecond
)

// crowd is callers that begin at the same moment and retry until each of their operations is acknowledged.
type crowd struct {
	t    *testing.T
	l    *ledger.Ledger
	api  *ft.API
	stop chan struct{}

	mu    sync.Mutex
	conns map[net.Conn]struct{}

	sent, refused, lost, hurried atomic.Int64 // calls; lost: without an answer
}

// crowdRate is how many calls a second the server accepts: a third of the first ones, and few of the retries.
func crowdRate() int { return max(*crowdSize*3/10, 3) }

// V19: many callers (a thousand in make overload) call at the same moment, and all retry: after a refusal, some when the server says and some at
// once; after a connection that is cut before the answer; and after an answer that took too long for them. Each operation
// that is acknowledged is done once, its verdict is true, and a minute later the server is at rest.
func TestV19CallersThatRetry(t *testing.T) {
	s := ft.StartServer(t, "", "--log-level=warn", fmt.Sprintf("--rate-app=%d", crowdRate()),
		fmt.Sprintf("--rate-app-burst=%d", crowdRate()/3))
	fleet := s.StartSim(t, crowdHosts)
	awaitHosts(t, s, simulated(crowdHosts))
	rest := cpuPerSecond(s, 3*time.Second)

	c := newCrowd(t, s)
	c.l.Notes, c.l.Within = filepath.Join(fleet.Flag("--data"), sim.Notes), time.Minute
	c.l.Addr = func(host int) string { return simulatedIP(host % crowdHosts) }
	began := time.Now()
	c.callAll(2 * *scale)
	fmt.Printf("fault V19: %d callers made %d calls in %.0f s for %d operations: %d refused, %d without an answer, %d of "+
		"them given up by the caller\n", *crowdSize, c.sent.Load(), time.Since(began).Seconds(), len(c.l.Tasks()), c.refused.Load(),
		c.lost.Load(), c.hurried.Load())

	// Without these it proves nothing.
	if len(c.l.Tasks()) != *crowdSize*2**scale {
		t.Errorf("%d operations were acknowledged, not all", len(c.l.Tasks()))
	}
	if c.refused.Load() == 0 || c.lost.Load() == 0 || c.hurried.Load() == 0 {
		t.Error("no call was refused, cut or given up")
	}

	awaitRest(t, s, "V19", rest)
	c.l.Judge("V19", ledger.Floor{OK: *crowdSize, Percent: 95})
}

func newCrowd(t *testing.T, s *ft.Server) *crowd {
	c := &crowd{t: t, l: ledger.New(t, s.API), api: s.For(t), stop: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	transport := &http.Transport{DialContext: c.dial, MaxIdleConnsPerHost: *crowdSize}
	t.Cleanup(transport.CloseIdleConnections)
	c.api.Client = &http.Client{Transport: transport}
	return c
}

// callAll lets every caller do operations, one after another, and cuts connections meanwhile.
func (c *crowd) callAll(each int) {
	var callers, cutter sync.WaitGroup
	cutter.Go(c.cut)
	late := time.AfterFunc(3*time.Minute, func() { close(c.stop) })
	for caller := range *crowdSize {
		callers.Go(func() {
			for i := range each {
				c.call(caller, i)
			}
		})
	}

	callers.Wait()
	if late.Stop() {
		close(c.stop)
	}
	cutter.Wait()
}

// call retries one operation until it is acknowledged. It asks once more then: the acknowledgement may have been lost
// on the way.
func (c *crowd) call(caller, i int) {
	mark := fmt.Sprintf("c%d-%d", caller, i)
	body := c.l.Operation(mark, caller, caller)
	for acks := 0; acks < 2; {
		ans, err := c.try(mark, body)
		var pause time.Duration
		switch {
		case err != nil:
			c.lost.Add(1)
			pause = rand.N(20 * time.Millisecond)
		case ans.Code == 0:
			c.l.Acknowledged(mark, ans)
			acks++
			if caller%4 != 0 {
				return
			}
		case ans.Code == 1306429:
			c.refused.Add(1)
			pause = c.obey(caller, ans)
		default:
			c.t.Errorf("%s: %s", mark, ans.Raw)
			return
		}

		select {
		case <-c.stop:
			return
		case <-time.After(pause):
		}
	}
}

// try calls once. One caller in four has little patience: it hangs up and calls again.
func (c *crowd) try(mark string, body ft.J) (ft.Answer, error) {
	c.sent.Add(1)
	api := *c.api
	if rand.N(4) == 0 {
		hurry := *c.api.Client
		hurry.Timeout = 20*time.Millisecond + rand.N(200*time.Millisecond)
		api.Client = &hurry
	}
	ans, err := api.TryWith(ledger.Path, body, http.Header{"Idempotency-Key": {mark}})
	if e, ok := err.(net.Error); ok && e.Timeout() {
		c.hurried.Add(1)
	}
	return ans, err
}

// obey is the pause after a refusal. Half of the callers wait as long as the server says, the others do not care.
func (c *crowd) obey(caller int, ans ft.Answer) time.Duration {
	secs, err := strconv.Atoi(ans.Header.Get("Retry-After"))
	if err != nil || secs < 1 {
		c.t.Errorf("a refusal does not say when to retry: %v %s", ans.Header, ans.Raw)
	}
	if caller%2 == 0 {
		return time.Duration(secs) * time.Second
	}
	return rand.N(100 * time.Millisecond)
}

// dial remembers connections, so that they can be cut.
func (c *crowd) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[conn] = struct{}{}
	return conn, nil
}

// cut resets a tenth of the connections again and again, whatever is under way on them.
func (c *crowd) cut() {
	for {
		select {
		case <-c.stop:
			return
		case <-time.After(cutEvery):
		}
		c.cutSome()
	}
}

func (c *crowd) cutSome() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		if rand.N(10) == 0 {
			_ = conn.(*net.TCPConn).SetLinger(0) // a reset, not an end
			_ = conn.Close()
			delete(c.conns, conn)
		}
	}
}
