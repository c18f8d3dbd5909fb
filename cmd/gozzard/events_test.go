package main

import (
	"bytes"
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// happen has a host report an event, and waits until it can be read.
func (c *cli) happen(seq uint64, name, message string) {
	c.t.Helper()
	c.event("a1", gozzard.Event{Seq: seq, Key: gozzard.Key{Namespace: "shop", Name: name}, Kind: gozzard.EventExited,
		At: 1_700_000_000_000, PID: 9, Code: 3, Message: message})
}

// event has a host report an event, and waits until it is recorded: it is shown only then.
func (c *cli) event(agent gozzard.AgentID, e gozzard.Event) {
	c.t.Helper()
	before := c.Plane.LastEvent()
	c.receive(agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportEvents, Session: 1, Events: []gozzard.Event{e}})
	for end := time.Now().Add(time.Minute); c.Plane.LastEvent() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("the event of %s is not recorded", e.Key.Name)
		}
	}
}

func TestEvents(t *testing.T) {
	c := newCLI(t)
	_, errs, code := c.run(t.Context(), "events")
	if code != 0 || !strings.Contains(errs, "no event") {
		t.Errorf("exit %d: %s", code, errs)
	}

	c.happen(1, "web", "ended \x1b[31m\nby itself")
	c.happen(2, "db", "")
	c.want(0, "0:10.0.0.1  shop/web  exited  pid 9  code 3  ended [31m by itself\n", "events", "w*", "-n", "shop",
		"--kind", "exited", "--host", "10.0.0.1")
	c.want(0, `"name": "db"`, "events", "-o", "json")
	c.want(0, "", "events", "--since", "10s", "--host", "a2")
	c.want(2, "", "events", "--since", "yesterday")
	c.want(2, "", "events", "--limit", "0")
	c.want(2, "", "events", `a\b`)
}

// TestEventsByTime: a host that reports late does not mix up the order.
func TestEventsByTime(t *testing.T) {
	c := newCLI(t)
	report := func(agent gozzard.AgentID, name string, at int64) {
		c.event(agent, gozzard.Event{Seq: 1, Key: gozzard.Key{Namespace: "shop", Name: name}, Kind: gozzard.EventStarted,
			At: at, PID: 9})
	}
	report("a1", "later", 1_700_000_002_000)
	report("a2", "earlier", 1_700_000_001_000)

	out, errs, code := c.run(t.Context(), "events")
	if first, second := strings.Index(out, "shop/earlier"), strings.Index(out, "shop/later"); code != 0 || first < 0 ||
		second < first {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// buffer is written by a command and read by the test.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *buffer) await(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(b.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %q in %q", text, b.String())
		}
	}
}

func TestEventsAreFollowed(t *testing.T) {
	c := newCLI(t)
	c.happen(1, "web", "first")
	var out buffer
	env := c.env
	env.out, env.errs = &out, &out
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		o := eventOptions{limit: 10, follow: true, output: outputFlag{format: "table", known: []string{"table"}}}
		done <- env.events(ctx, &o, []string{"web"})
	}()

	out.await(t, "first")
	c.happen(2, "db", "other")
	c.happen(3, "web", "second")
	out.await(t, "second")
	cancel()

	if err := <-done; err != nil || strings.Contains(out.String(), "other") {
		t.Errorf("%v, %s", err, out.String())
	}
}

func TestLogs(t *testing.T) {
	c := newCLI(t)
	c.log = func(q gozzard.LogQuery) gozzard.LogChunk {
		switch {
		case q.Key != gozzard.Key{Namespace: "shop", Name: "web"}:
			return gozzard.LogChunk{Error: "nothing was printed"}
		case q.Offset < 0:
			return gozzard.LogChunk{Data: []byte("old\n"), Next: 4}
		case q.Offset == 4:
			return gozzard.LogChunk{Data: []byte("new\n"), Offset: 4, Next: 8}
		}
		return gozzard.LogChunk{Offset: q.Offset, Next: q.Offset}
	}
	c.Fleet.PutHost(fleet.Host{Info: gozzard.HostInfo{Agent: "a3", // known, and not connected
		Addrs: []gozzard.HostAddr{{IP: netip.MustParseAddr("10.0.0.3")}}}, LastSeen: atStart})

	c.want(0, "old\n", "logs", "web", "-n", "shop", "--host", "10.0.0.1")
	c.want(0, "old\n", "logs", "web", "--host", "a1")
	c.want(1, "", "logs", "web", "-n", "shop", "--host", "10.0.0.3")
	c.want(5, "", "logs", "nothing")
	c.want(2, "", "logs", "web", "--lines", "0")
	c.want(2, "", "logs")

	if _, errs, code := c.run(t.Context(), "logs", "web"); code != 2 ||
		!strings.Contains(errs, "shop/web on 0:10.0.0.2") {
		t.Errorf("exit %d: %s", code, errs)
	}

	var out buffer
	env := c.env
	env.out, env.errs = &out, &out
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- env.logs(ctx, &logOptions{oneProcess: oneProcess{namespace: "shop", host: "a1"}, lines: 5, follow: true}, "web")
	}()

	out.await(t, "old\nnew\n")
	cancel()

	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestLogOnATerminal(t *testing.T) {
	var out bytes.Buffer
	env := cliEnv{out: &out, screen: true}
	if err := env.printLog("a\x1b]0;title\x07\tb\r\n\u202ec\u009b31m"); err != nil ||
		out.String() != "a]0;title\tb\nc31m" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
