package nats_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/nats"
)

func TestThereAndBack(t *testing.T) {
	ways(t, func(t *testing.T, b *nats.Broker, o nats.LinkOptions) {
		var in inbox
		h := hub(t, nats.HubOptions{Broker: b, Receive: in.receive})
		o.Agent, o.Cloud = "a1", 7
		a := link(t, o)
		eventually(t, "the link", a.isUp)

		if err := h.Send("a1", 7, &gozzard.Command{Kind: gozzard.CommandWelcome, Session: 3,
			Interval: time.Minute}); err != nil {
			t.Fatal(err)
		}

		eventually(t, "the command", func() bool { return len(a.got()) == 1 })

		if c := a.got()[0]; c.Kind != gozzard.CommandWelcome || c.Session != 3 || c.Interval != time.Minute {
			t.Errorf("got command %+v", c)
		}

		for kind := gozzard.ReportHello; kind <= gozzard.ReportHeartbeat; kind++ {
			// The connection identifies the sender: the name in the report does not count.
			hello := &gozzard.Hello{Host: gozzard.HostInfo{Agent: "another-agent"}}
			if err := a.Send(&gozzard.Report{Kind: kind, Session: 3, Hello: hello}); err != nil {
				t.Fatal(err)
			}
		}

		eventually(t, "the reports", func() bool { return len(in.all()) == 4 })

		for _, r := range in.all() {
			if r.from != "a1" || r.cloud != 7 || r.Session != 3 {
				t.Errorf("got report %+v from %s in %d", r.Report, r.from, r.cloud)
			}
		}

		if s := h.Stats(); s.Results != 2 || s.Statuses != 2 || s.Sent != 1 || s.Dropped+s.Malformed+s.Newer != 0 {
			t.Errorf("got %+v", s)
		}
		if s := a.Stats(); s.Sent != 4 || s.Received != 1 || s.Connects != 1 {
			t.Errorf("got %+v", s)
		}
	})
}

func TestLinksComeBackAfterTheBrokerDid(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	addr := b.Addr()
	var links []*end
	for i := range 5 {
		links = append(links, link(t, nats.LinkOptions{URL: addr, Agent: agentID(i)}))
	}

	allUp := func(times int) func() bool {
		return func() bool {
			for _, l := range links {
				if !l.isUp() || l.upCount() != times {
					return false
				}
			}
			return true
		}
	}

	eventually(t, "all links", allUp(1))
	b.Close()

	eventually(t, "all links to notice", func() bool {
		for _, l := range links {
			if l.isUp() {
				return false
			}
		}
		return true
	})

	if err := links[0].Send(&gozzard.Report{Kind: gozzard.ReportHello}); !errors.Is(err, nats.ErrDown) {
		t.Errorf("sent without a connection: %v", err)
	}

	b = broker(t, addr)
	eventually(t, "all links again", allUp(2))

	h := hub(t, nats.HubOptions{Broker: b, Receive: new(inbox).receive})
	for i, l := range links {
		if err := h.Send(agentID(i), 0, &gozzard.Command{Kind: gozzard.CommandGreet}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a command on the renewed link", func() bool { return len(l.got()) == 1 })
	}
}

func TestLinkWaitsForABrokerThatStartsLater(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	addr := b.Addr()
	b.Close()
	l := link(t, nats.LinkOptions{URL: addr, Agent: "early"})
	if err := l.Send(&gozzard.Report{Kind: gozzard.ReportHello}); !errors.Is(err, nats.ErrDown) {
		t.Errorf("sent without a connection: %v", err)
	}
	broker(t, addr)
	eventually(t, "the link", l.isUp)
}

func TestLinkEndsWhileTheServerIsSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	accepted := make(chan net.Conn, 1)
	go func() {
		defer close(accepted)
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()

	a := link(t, nats.LinkOptions{URL: l.Addr().String(), Agent: "patient"})
	c := <-accepted
	start := time.Now()
	a.stop()

	if took := time.Since(start); took > 20*time.Second { // the library's own time-out is 30 s
		t.Errorf("took %v to end", took)
	}

	_ = c.Close()
	_ = l.Close()
}

func TestManyLinks(t *testing.T) {
	const n = 200
	b := broker(t, "127.0.0.1:0")
	var in inbox
	h := hub(t, nats.HubOptions{Broker: b, Receive: in.receive})
	var links [n]*end
	for i := range links {
		links[i] = link(t, nats.LinkOptions{URL: b.Addr(), Agent: agentID(i), Cloud: i % 3,
			Command: func(c *gozzard.Command) {
				results := []gozzard.OpReport{{ID: c.Ops[0].ID, Phase: gozzard.PhaseDone}}
				if err := links[i].Send(&gozzard.Report{Kind: gozzard.ReportResults, Results: results}); err != nil {
					t.Error(err)
				}
			}})
	}

	for i := range links {
		eventually(t, "the links", links[i].isUp)
	}

	ids := make(map[gozzard.AgentID]gozzard.OpID)
	for i := range links {
		ids[agentID(i)] = gozzard.NewOpID()
		cmd := &gozzard.Command{Kind: gozzard.CommandOperate, Ops: []gozzard.Op{{ID: ids[agentID(i)]}}}
		if err := h.Send(agentID(i), i%3, cmd); err != nil {
			t.Fatal(err)
		}
	}

	eventually(t, "all results", func() bool { return len(in.all()) == n })

	for _, r := range in.all() {
		if ids[r.from] != r.Results[0].ID {
			t.Errorf("result of %s came from %s", r.Results[0].ID, r.from)
		}
		delete(ids, r.from)
	}

	if len(ids) != 0 {
		t.Errorf("%d agents did not answer", len(ids))
	}
}

func TestOrderPerAgentAndSubject(t *testing.T) {
	const agents, each = 8, 500
	b := broker(t, "")
	type place struct {
		from   gozzard.AgentID
		status bool
	}
	next := make(map[place]*atomic.Uint64)
	for i := range agents {
		next[place{agentID(i), false}], next[place{agentID(i), true}] = new(atomic.Uint64), new(atomic.Uint64)
	}

	hub(t, nats.HubOptions{Broker: b, Receive: func(from gozzard.AgentID, _ int, r *gozzard.Report) {
		n := next[place{from, r.Kind == gozzard.ReportHeartbeat}]
		if !n.CompareAndSwap(r.Beat-1, r.Beat) {
			t.Errorf("%s: %d came after %d", from, r.Beat, n.Load())
		}
	}})

	for i := range agents {
		l := link(t, nats.LinkOptions{Broker: b, Agent: agentID(i)})
		eventually(t, "the link", l.isUp)
		go func() {
			for beat := range uint64(each) {
				if err := errors.Join(
					l.Send(&gozzard.Report{Kind: gozzard.ReportResults, Beat: beat + 1}),
					l.Send(&gozzard.Report{Kind: gozzard.ReportHeartbeat, Beat: beat + 1}),
				); err != nil {
					t.Error(err)
				}
			}
		}()
	}

	for p, n := range next {
		eventually(t, "all of "+string(p.from), func() bool { return n.Load() == each })
	}
}

// TestFloodOfStatus: a receiver that blocks on status does not delay results, and the flood of one agent does not
// delay the others.
func TestFloodOfStatus(t *testing.T) {
	b := broker(t, "")
	stuck, release := make(chan struct{}), make(chan struct{})
	var results, normal atomic.Uint64
	var once atomic.Bool
	// No limits: the test is about the queues behind them.
	h := hub(t, nats.HubOptions{Broker: b, Limits: nats.Limits{Messages: -1, Bytes: -1},
		Receive: func(from gozzard.AgentID, _ int, r *gozzard.Report) {
			switch {
			case r.Kind == gozzard.ReportResults:
				results.Add(1)
			case from == "normal":
				normal.Add(1)
			case !once.Swap(true):
				close(stuck)
				<-release
			}
		}})

	flooder := link(t, nats.LinkOptions{Broker: b, Agent: "flooder"})
	other := link(t, nats.LinkOptions{Broker: b, Agent: "normal"})
	eventually(t, "the links", func() bool { return flooder.isUp() && other.isUp() })
	status := &gozzard.Report{Kind: gozzard.ReportStatus,
		Statuses: []gozzard.Status{{Message: strings.Repeat("x", 60_000)}}}
	for i := range 400 { // 24 MB
		if err := flooder.Send(status); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-stuck
		}
	}

	for range 10 {
		if err := errors.Join(other.Send(status),
			flooder.Send(&gozzard.Report{Kind: gozzard.ReportResults})); err != nil {
			t.Fatal(err)
		}
	}

	eventually(t, "results of the flooder", func() bool { return results.Load() == 10 })
	eventually(t, "status of the other", func() bool { return normal.Load() == 10 })
	eventually(t, "the flood to be dropped", func() bool { return h.Stats().Dropped > 0 })
	close(release)
	eventually(t, "everything", func() bool { return h.Stats().Statuses == 410 })
}

func TestReportsBeforeRunAreKept(t *testing.T) {
	b := broker(t, "")
	var in inbox
	h, err := nats.NewHub(nats.HubOptions{Broker: b, Receive: in.receive})
	if err != nil {
		t.Fatal(err)
	}

	l := link(t, nats.LinkOptions{Broker: b, Agent: "a"})
	eventually(t, "the link", l.isUp)

	if err := l.Send(&gozzard.Report{Kind: gozzard.ReportHello}); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the hub", func() bool { return h.Stats().Results == 1 })
	run(t, h.Run)
	eventually(t, "the report", func() bool { return len(in.all()) == 1 })
}

func TestLastReportIsSentBeforeTheEnd(t *testing.T) {
	ways(t, func(t *testing.T, b *nats.Broker, o nats.LinkOptions) {
		var in inbox
		hub(t, nats.HubOptions{Broker: b, Receive: in.receive})
		o.Agent = "leaving"
		l := link(t, o)
		eventually(t, "the link", l.isUp)

		if err := l.Send(&gozzard.Report{Kind: gozzard.ReportResults}); err != nil {
			t.Fatal(err)
		}

		l.stop()
		eventually(t, "the last report", func() bool { return len(in.all()) == 1 })

		if l.isUp() {
			t.Error("ended without Down")
		}
	})
}

func TestSendRefuses(t *testing.T) {
	b := broker(t, "")
	h := hub(t, nats.HubOptions{Broker: b, Receive: new(inbox).receive})
	big := &gozzard.Command{Kind: gozzard.CommandOperate, Ops: []gozzard.Op{{Spec: make([]byte, nats.MaxMessage)}}}
	for name, err := range map[string]error{
		"at most 1048576":      h.Send("a", 0, big),
		"may only have":        h.Send("a.b", 0, &gozzard.Command{}),
		"1 to 64":              h.Send("", 0, &gozzard.Command{}),
		"cloud id -1":          h.Send("a", -1, &gozzard.Command{}),
		"may only have letter": h.Send("*", 0, &gozzard.Command{}),
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error with %q", err, name)
		}
	}

	h.Close()

	if err := h.Send("a", 0, &gozzard.Command{}); !errors.Is(err, nats.ErrDown) {
		t.Errorf("sent after the end: %v", err)
	}
}

func TestHubOutlivesItsBrokerAndEnds(t *testing.T) {
	b := broker(t, "")
	h, err := nats.NewHub(nats.HubOptions{Broker: b, Receive: new(inbox).receive})
	if err != nil {
		t.Fatal(err)
	}

	done := make(chan error, 1)
	go func() { done <- h.Run(context.Background()) }()
	b.Close()

	eventually(t, "the hub to notice", func() bool {
		return errors.Is(h.Send("a", 0, &gozzard.Command{}), nats.ErrDown)
	})

	h.Close()

	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCommandsOfANewerServer(t *testing.T) {
	b := broker(t, "")
	h := hub(t, nats.HubOptions{Broker: b, Receive: new(inbox).receive})
	var lines logLines
	l := link(t, nats.LinkOptions{Broker: b, Agent: "old", Log: lines.logger()})
	eventually(t, "the link", l.isUp)

	for range 3 {
		if err := h.Send("old", 0, &gozzard.Command{Version: gozzard.ProtocolVersion + 1,
			Kind: gozzard.CommandAck}); err != nil {
			t.Fatal(err)
		}
	}

	eventually(t, "all to be counted", func() bool { return l.Stats().Newer == 3 })

	if n := lines.count("the server uses a newer protocol"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	if len(l.got()) != 0 {
		t.Errorf("got %v", l.got())
	}
}
