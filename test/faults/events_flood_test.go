//go:build linux

package faults_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/signing"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// eventFlooder is a host with a credential of its own whose agent invents events. It knows the limits of the fabric, and stays
// below them.
type eventFlooder struct {
	link  *nats.Link
	acked atomic.Uint64 // the server says that it has the events up to this number
}

// joinFlooder connects it and opens its session.
func joinFlooder(t *testing.T, s *ft.Server, c *client.Client) *eventFlooder {
	t.Helper()
	secret, key, err := agentd.ReadJoinFile(filepath.Join(s.Data, "join.secret"))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := signing.OpenKeyRing(t.TempDir(), nil)
	if err == nil {
		err = ring.Trust(key)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := &eventFlooder{}
	f.link, err = nats.NewLink(nats.LinkOptions{URL: s.Agents, Agent: "flooder", Secret: secret,
		Open:    func(b []byte) ([]byte, error) { return ring.Open("flooder", b) },
		Command: func(cmd *gozzard.Command) { f.acked.Store(max(f.acked.Load(), cmd.AckEvents)) }})
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = f.link.Run(ctx) }) // ends with the context
	t.Cleanup(func() { stop(); wg.Wait() })
	info := gozzard.HostInfo{Agent: "flooder", Addrs: []gozzard.HostAddr{{IP: netip.MustParseAddr("127.0.0.9")}}}
	ft.Until(t, time.Minute, func() string { return "the server does not know the host that floods" }, func() bool {
		f.send(&gozzard.Report{Kind: gozzard.ReportHello, Hello: &gozzard.Hello{Run: 1, Host: info}})
		page, err := c.Hosts(t.Context(), 0, 10)
		return err == nil && len(page.Hosts) == 2
	})
	return f
}

func (f *eventFlooder) send(r *gozzard.Report) {
	r.Version, r.Session = gozzard.ProtocolVersion, 1
	r.Journal = gozzard.JournalPos{ID: [16]byte{1}, LSN: 1}
	_ = f.link.Send(r) // what is lost is sent again
}

// pour sends as many events as a report may have: with a new name and namespace each, and long texts. It sends the next ones
// as soon as it has an acknowledgement, and after a short while without one.
func (f *eventFlooder) pour(stop <-chan struct{}) {
	for {
		first := f.acked.Load() + 1
		r := &gozzard.Report{Kind: gozzard.ReportEvents}
		for seq := first; seq < first+500; seq++ {
			r.Events = append(r.Events, gozzard.Event{Seq: seq, Kind: gozzard.EventExited, At: time.Now().UnixMilli(),
				Key:     gozzard.Key{Namespace: fmt.Sprint("made-up-", seq%97), Name: fmt.Sprint("p", seq)},
				Message: strings.Repeat("x", int(seq%200))})
		}
		f.send(r)
		for end := time.Now().Add(200 * time.Millisecond); f.acked.Load() < first && time.Now().Before(end); {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// TestTD25EventsOfAFloodAreRemoved: a host brings events as fast as it may, to push those of others out and to fill the
// record. What it gets recorded is bounded, the events of another host are recorded meanwhile, and when there are too many
// the flood loses its own. That is so after kill -9, too.
func TestTD25EventsOfAFloodAreRemoved(t *testing.T) {
	t.Parallel() // it mostly waits
	const most, names = 1000, 10
	s := ft.StartServer(t, "", fmt.Sprint("--max-events=", most))
	s.StartAgent(t, 1, "")
	c := eventClient(t, s)
	ft.RegisterFailing(t, c, "127.0.0.1", names)
	want := ft.StartFailing(t, "before", c)

	// Flood, until the server says no, and for a while after that.
	f := joinFlooder(t, s, c)
	began, stop, poured := time.Now(), make(chan struct{}), make(chan struct{})
	go func() { f.pour(stop); close(poured) }()
	maps.Copy(want, ft.StartFailing(t, "meanwhile", c))
	ft.Until(t, time.Minute, func() string { return "the events of another host are not recorded" },
		func() bool { return ft.ListFailures(t, c).Has(want) == len(want) })
	refused := func() float64 { return metric(t, s, `gozzard_security_refused_total{rule="event_rate"}`) }
	ft.Until(t, 5*time.Minute, func() string { return fmt.Sprintf("%d events of one host are recorded", f.acked.Load()) },
		func() bool { return refused() > 0 }) // on a busy machine a flood is hardly faster than what is allowed
	time.Sleep(2 * time.Second)
	close(stop)
	<-poured

	brought, no := f.acked.Load(), refused()
	if bound := 12_000 + 2*500 + 100*uint64(1+time.Since(began).Seconds()); brought > bound || brought < 10*most {
		t.Errorf("one host got %d events recorded, at most %d and at least %d should be", brought, bound, 10*most)
	}
	if len(want) != 2*names {
		t.Fatalf("%d starts failed", len(want))
	}

	// Wait until the others are removed.
	list := func(q client.EventQuery) []client.Event {
		page, err := c.Events(t.Context(), q, client.MaxPage)
		if err != nil {
			t.Fatal(err)
		}
		return page.Events
	}
	ft.Until(t, 3*time.Minute, func() string { return "the server keeps too many events" },
		func() bool { return len(list(client.EventQuery{})) < most })
	for _, when := range []string{"after the flood", "after a kill"} {
		ft.ListFailures(t, c).Judge(when, want)
		own := list(client.EventQuery{Hosts: []string{"flooder"}})
		if all := len(list(client.EventQuery{})); len(own) < most/2 || all >= most {
			t.Errorf("%s: %d events, %d of the host that flooded", when, all, len(own))
		}
		s.Kill(syscall.SIGKILL)
		s.Again()
		s.AwaitReady()
	}
	fmt.Printf("threat TD25: one host got %d events recorded in %s, %.0f reports refused; 0 of %d events of another host removed\n",
		brought, time.Since(began).Round(time.Second), no, len(want))
}
