package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// send sends events as an agent does.
func (r *rig) send(agent gozzard.AgentID, session uint64, events ...gozzard.Event) {
	r.plane.Receive(agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportEvents, Session: session, Events: events})
}

// events sends events and waits until they are acknowledged.
func (r *rig) events(agent gozzard.AgentID, session uint64, events ...gozzard.Event) {
	r.t.Helper()
	r.send(agent, session, events...)
	last := events[len(events)-1].Seq
	r.until("events are not acknowledged", func() bool { return r.acked(agent) >= last })
}

// acked is the highest number of an event that was acknowledged to an agent.
func (r *rig) acked(agent gozzard.AgentID) (last uint64) {
	for _, c := range r.commands(agent, gozzard.CommandAck) {
		last = max(last, c.AckEvents)
	}
	return last
}

func (r *rig) newest(caller gozzard.Caller, f record.EventFilter, limit int) record.EventPage {
	r.t.Helper()
	page, err := r.plane.Events(r.t.Context(), caller, f, limit)
	if err != nil {
		r.t.Fatal(err)
	}
	return page
}

func (r *rig) after(caller gozzard.Caller, f record.EventFilter, id uint64, limit int) (record.EventPage,
	<-chan struct{}) {
	r.t.Helper()
	page, changed, err := r.plane.EventsAfter(r.t.Context(), caller, f, id, limit)
	if err != nil {
		r.t.Fatal(err)
	}
	return page, changed
}

func event(seq uint64, name string, kind gozzard.EventKind) gozzard.Event {
	return gozzard.Event{Seq: seq, Key: gozzard.Key{Namespace: "shop", Name: name}, Kind: kind,
		At: int64(1_700_000_000_000 + seq)}
}

func TestEventsAreKeptOnceAndAcknowledged(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalA)
	r.events(me, 1, event(5, "web", gozzard.EventExited), event(9, "web", gozzard.EventRestarted))
	r.events(me, 1, event(5, "web", gozzard.EventExited), event(9, "web", gozzard.EventRestarted),
		event(10, "db", gozzard.EventStarted))
	r.events(other, 1, event(5, "web", gozzard.EventExited))
	// a session that was not opened
	r.send(other, 2, event(6, "web", gozzard.EventExited))
	r.send(other, 1, event(8, "x", gozzard.EventExited), event(7, "x", gozzard.EventExited)) // out of order

	for _, c := range []struct {
		f    record.EventFilter
		want int
	}{
		{record.EventFilter{}, 4}, {record.EventFilter{Names: []string{"w*"}}, 3},
		{record.EventFilter{Namespaces: []string{"other"}}, 0},
		{record.EventFilter{Agents: []gozzard.AgentID{other}}, 1},
		{record.EventFilter{Kinds: []gozzard.EventKind{gozzard.EventStarted, gozzard.EventExited}}, 3},
		{record.EventFilter{Since: time.UnixMilli(1_700_000_000_009)}, 2},
	} {
		if got := r.newest(caller, c.f, 100); len(got.Events) != c.want {
			t.Errorf("%+v: %d events, want %d", c.f, len(got.Events), c.want)
		}
	}

	acks := r.commands(me, gozzard.CommandAck)
	if len(acks) != 2 || acks[0].AckEvents != 9 || acks[1].AckEvents != 10 {
		t.Errorf("%+v", acks)
	}

	page := r.newest(caller, record.EventFilter{}, 2)
	if len(page.Events) != 2 || page.Events[0].Key.Name != "db" || !page.Events[0].Addr.IP.IsValid() {
		t.Errorf("the newest two: %+v", page.Events)
	}
}

func TestEventsAreFollowed(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.events(me, 1, event(1, "web", gozzard.EventExited), event(2, "db", gozzard.EventExited))
	f := record.EventFilter{Names: []string{"web"}}
	page, changed := r.after(caller, f, 0, 10)
	if len(page.Events) != 1 || page.Lost {
		t.Fatalf("%+v", page)
	}

	select {
	case <-changed:
		t.Fatal("nothing has changed")
	default:
	}

	r.events(me, 1, event(3, "db", gozzard.EventExited), event(4, "web", gozzard.EventStarted))
	<-changed
	page, _ = r.after(caller, f, page.Next, 10)
	if len(page.Events) != 1 || page.Events[0].At != event(4, "", "").At || page.Lost {
		t.Fatalf("%+v", page)
	}
	if again, _ := r.after(caller, f, page.Next, 10); len(again.Events) != 0 || again.Next != page.Next {
		t.Fatalf("%+v", again)
	}
	if ahead, _ := r.after(caller, f, page.Next+1000, 10); ahead.Next != page.Next {
		t.Fatalf("%+v", ahead)
	}
}

func TestGroupsReachTheHost(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)

	set := func(ns string, cpu float64) {
		t.Helper()
		if _, err := r.plane.SetGroups(t.Context(), record.GroupRequest{Caller: caller, Namespace: ns,
			Targets: []gozzard.Target{{Agent: me}, {Agent: other}},
			Groups:  []record.Group{{ID: "pool", CPULimit: cpu, MemWeight: 1}}}); err != nil {
			t.Fatal(err)
		}
	}

	last := func() []gozzard.Group {
		all := r.commands(me, gozzard.CommandGroups)
		return all[len(all)-1].Groups
	}

	r.until("no pools after the welcome", func() bool { return len(r.commands(me, gozzard.CommandGroups)) == 1 })

	if len(last()) != 0 {
		t.Fatalf("%+v", last())
	}

	set("b", 10)
	set("a", 20)

	if got := last(); len(got) != 2 || got[0] != (gozzard.Group{Namespace: "a", ID: "pool", CPULimit: 20,
		MemWeight: 1}) || got[1].CPULimit != 10 {
		t.Fatalf("%+v", got)
	}

	r.forget()
	r.hello(me, 2, journalA)
	r.until("no pools in a new session", func() bool { return len(r.commands(me, gozzard.CommandGroups)) > 0 })

	if c := r.commands(me, gozzard.CommandGroups)[0]; c.Session != 2 || len(c.Groups) != 2 {
		t.Fatalf("%+v", c)
	}

	r.until("not refreshed", func() bool { return len(r.commands(me, gozzard.CommandGroups)) > 2 })
}

func TestLogIsAskedFromItsHost(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalA)
	type answer struct {
		chunk gozzard.LogChunk
		err   error
	}

	ask := func(ctx context.Context) chan answer {
		r.forget()
		got := make(chan answer, 1)
		go func() {
			c, err := r.plane.Log(ctx, caller, gozzard.Target{Agent: me},
				gozzard.LogQuery{Key: key, Lines: 5, Offset: -1})
			got <- answer{c, err}
		}()
		r.until("not asked", func() bool { return len(r.commands(me, gozzard.CommandLogs)) > 0 })
		return got
	}

	reply := func(agent gozzard.AgentID, c gozzard.LogChunk) {
		c.ID = r.commands(me, gozzard.CommandLogs)[0].Logs.ID
		r.plane.Receive(agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportLogs, Session: 1, Logs: &c})
	}

	got := ask(t.Context())
	reply(other, gozzard.LogChunk{Data: []byte("forged")})
	reply(me, gozzard.LogChunk{Data: []byte("line\n"), Next: 5})
	reply(me, gozzard.LogChunk{Data: []byte("twice\n")})

	if a := <-got; a.err != nil || string(a.chunk.Data) != "line\n" || a.chunk.Next != 5 {
		t.Fatalf("%+v", a)
	}

	got = ask(t.Context())
	reply(me, gozzard.LogChunk{Error: "nothing was printed"})

	if a := <-got; gozzard.KindOf(a.err) != gozzard.ErrNotFound ||
		!strings.Contains(a.err.Error(), "nothing was printed") {
		t.Fatalf("%+v", a)
	}

	if a := <-ask(t.Context()); gozzard.KindOf(a.err) != gozzard.ErrUnavailable ||
		!strings.Contains(a.err.Error(), "did not answer") {
		t.Fatalf("%+v", a)
	}

	gone, cancel := context.WithCancel(t.Context())
	got = ask(gone)
	cancel()

	if a := <-got; !errors.Is(a.err, context.Canceled) {
		t.Fatalf("%+v", a)
	}
	if _, err := r.plane.Log(t.Context(), caller, gozzard.Target{Agent: "nobody"},
		gozzard.LogQuery{}); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Fatal(err)
	}
}
