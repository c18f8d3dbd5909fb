package control_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// run makes events with numbers from first on.
func run(first, n uint64, name string) (list []gozzard.Event) {
	for i := range n {
		list = append(list, event(first+i, name, gozzard.EventExited))
	}
	return list
}

// prune removes the events that are too many, and waits until the plane knows.
func (r *rig) prune(most int) {
	r.t.Helper()
	if _, err := r.store.PruneEvents(r.t.Context(), record.EventKeep{Most: most}); err != nil {
		r.t.Fatal(err)
	}
	r.plane.NotifyEvents()
	r.until("the plane has events that were removed", func() bool {
		return len(r.newest(caller, record.EventFilter{}, 1000).Events) <= most
	})
}

// wantRun checks that events are those of run, without gaps.
func wantRun(t *testing.T, what string, events []record.Event, first, n uint64) {
	t.Helper()
	if uint64(len(events)) != n {
		t.Fatalf("%s: %d events, want %d", what, len(events), n)
	}
	for i := range events {
		if want := event(first+uint64(i), "", "").At; events[i].At != want {
			t.Fatalf("%s: event %d happened at %d, want %d", what, i, events[i].At, want)
		}
		if i > 0 && events[i].ID <= events[i-1].ID {
			t.Fatalf("%s: number %d is behind %d", what, events[i].ID, events[i-1].ID)
		}
	}
}

// TestOlderEventsAreRead: the plane of the rig has 50 events in memory. Those before come from the record, for a list and
// for a reader that was away, with the same filters.
func TestOlderEventsAreRead(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.events(me, 1, event(1, "db", gozzard.EventExited))
	first := r.plane.LastEvent()
	r.events(me, 1, run(2, 60, "web")...)
	r.events(me, 1, run(62, 60, "web")...)

	web := record.EventFilter{Names: []string{"we*"}}
	wantRun(t, "everything", r.newest(caller, record.EventFilter{}, 1000).Events, 1, 121)
	wantRun(t, "the newest", r.newest(caller, record.EventFilter{}, 100).Events, 22, 100)
	wantRun(t, "by name", r.newest(caller, web, 1000).Events, 2, 120)
	wantRun(t, "by another name", r.newest(caller, record.EventFilter{Names: []string{"db"}}, 10).Events, 1, 1)

	var all []record.Event
	for next := first; ; {
		page, _ := r.after(caller, web, next, 7)
		if page.Lost {
			t.Fatal("nothing was removed, and a reader learns that events are missing")
		}
		all = append(all, page.Events...)
		if len(page.Events) < 7 {
			break
		}
		next = page.Next
	}
	wantRun(t, "a reader that was away", all, 2, 120)
}

// TestTI3OlderEvents: rights hold for events that are read from the record.
func TestTI3OlderEvents(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	secret := event(1, "vault", gozzard.EventExited)
	secret.Key.Namespace = "secret"
	r.events(me, 1, secret)
	r.events(me, 1, run(2, 120, "web")...)

	viewer := gozzard.Caller{App: "app", User: "eve", Rights: &gozzard.Rights{Grants: []gozzard.Grant{
		{Role: gozzard.RoleViewer, Namespaces: []string{"shop"}, Hosts: gozzard.HostsAny}}}}
	wantRun(t, "a list", r.newest(viewer, record.EventFilter{}, 1000).Events, 2, 120)
	page, _ := r.after(viewer, record.EventFilter{}, 0, 1000)
	wantRun(t, "a stream", page.Events, 2, 120)
	if n := len(r.newest(viewer, record.EventFilter{Names: []string{"vault"}}, 10).Events); n > 0 {
		t.Errorf("%d events of another namespace are seen", n)
	}
}

// TestEventsSurviveARestart: an agent that got no acknowledgement sends its events again to the next run of the server.
// They are there once, and a reader goes on behind the last number that it has seen.
func TestEventsSurviveARestart(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.events(me, 1, run(1, 30, "web")...)
	place := r.newest(caller, record.EventFilter{}, 10).Events[3].ID
	last := r.plane.LastEvent()
	r.stop()

	r.forget()
	r.start()
	r.hello(me, 2, journalA)
	if now := r.plane.LastEvent(); now != last {
		t.Errorf("the newest event was %d, and is %d after a restart", last, now)
	}
	r.events(me, 2, run(25, 10, "web")...)
	wantRun(t, "all", r.newest(caller, record.EventFilter{}, 100).Events, 1, 34)
	page, _ := r.after(caller, record.EventFilter{}, place, 100)
	if wantRun(t, "a reader", page.Events, 25, 10); page.Lost {
		t.Error("a reader learns that events are missing")
	}
	if page.Next <= last {
		t.Errorf("numbers went back from %d to %d", last, page.Next)
	}
}

// TestEventsOfANewJournal: an agent that lost its journal and whose clock was set back uses lower numbers. Its events are
// recorded. An older copy of its journal brings nothing twice.
func TestEventsOfANewJournal(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.events(me, 1, run(1000, 5, "web")...)
	older := journalA
	older.LSN--
	r.forget()
	r.hello(me, 2, older)
	r.events(me, 2, run(1000, 5, "web")...)
	if n := len(r.newest(caller, record.EventFilter{}, 100).Events); n != 5 {
		t.Fatalf("%d events after an older copy of the journal came back", n)
	}

	r.forget()
	r.hello(me, 3, journalB)
	r.events(me, 3, run(1, 5, "web")...)
	r.events(me, 3, run(1, 6, "web")...)
	all := r.newest(caller, record.EventFilter{}, 100).Events
	if len(all) != 11 {
		t.Fatalf("%d events", len(all))
	}
	wantRun(t, "the new journal", all[5:], 1, 6)
}

// slowEvents is a record that does not take events while closed, and counts the transactions with events.
type slowEvents struct {
	control.Store
	closed atomic.Bool
	added  atomic.Int32
}

func (s *slowEvents) AddEvents(ctx context.Context, events []record.Event) (uint64, error) {
	if s.closed.Load() {
		return 0, errors.New("no room")
	}
	s.added.Add(1)
	return s.Store.AddEvents(ctx, events)
}

// TestEventsAreAcknowledgedWhenRecorded: while the record takes nothing, no event is acknowledged or shown. What the
// server itself has noticed is recorded later.
func TestEventsAreAcknowledgedWhenRecorded(t *testing.T) {
	var slow *slowEvents
	r := newRigAround(t, func(s *sqlstore.Store) control.Store {
		slow = &slowEvents{Store: s}
		slow.closed.Store(true)
		return slow
	})
	r.hello(me, 1, journalA)
	foreign := gozzard.Hello{Host: gozzard.HostInfo{Agent: me}}
	for n := range 100 {
		foreign.Host.Addrs = append(foreign.Host.Addrs, gozzard.HostAddr{Cloud: 1 + n})
	}
	r.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHello, Session: 2, Journal: journalA,
		Hello: &foreign})
	r.until("no welcome", func() bool { return len(r.commands(me, gozzard.CommandWelcome)) > 1 })
	r.send(me, 2, run(1, 5, "web")...)
	time.Sleep(600 * time.Millisecond)
	if r.acked(me) > 0 || len(r.newest(caller, record.EventFilter{}, 10).Events) > 0 {
		t.Fatal("events that are not recorded are acknowledged or shown")
	}

	slow.closed.Store(false)
	r.until("events are not acknowledged", func() bool {
		r.send(me, 2, run(1, 5, "web")...)
		return r.acked(me) == 5
	})
	wantRun(t, "all", r.newest(caller, record.EventFilter{Names: []string{"web"}}, 100).Events, 1, 5)
	r.until("what the server noticed is not recorded", func() bool {
		return len(r.newest(caller, record.EventFilter{Kinds: []gozzard.EventKind{gozzard.EventForeignAddress}}, 9).Events) == 1
	})
}

// TestEventsShareTransactions: events of many agents at the same time need few transactions.
func TestEventsShareTransactions(t *testing.T) {
	var slow *slowEvents
	r := newRigAround(t, func(s *sqlstore.Store) control.Store {
		slow = &slowEvents{Store: s}
		return slow
	})
	var agents []gozzard.AgentID
	for i := range 9 {
		agents = append(agents, gozzard.AgentID("agent-"+string(rune('1'+i))))
		r.hello(agents[i], 1, journalA)
	}
	const rounds = 20
	for i := range uint64(rounds) {
		for _, a := range agents {
			r.send(a, 1, run(1, i+1, "web")...) // it has no acknowledgement, so it sends all again
		}
	}
	for _, a := range agents {
		r.until("events are not acknowledged", func() bool { return r.acked(a) == rounds })
	}
	if n := len(r.newest(caller, record.EventFilter{}, 1000).Events); n != rounds*len(agents) {
		t.Errorf("%d events, want %d", n, rounds*len(agents))
	}
	if n := slow.added.Load(); n > rounds {
		t.Errorf("%d transactions for %d reports", n, rounds*len(agents))
	}
}

// TestTD18EventsOfANamespaceStay: a namespace with very many events does not push out those of another one or of hosts.
func TestTD18EventsOfANamespaceStay(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	quiet := run(1, 5, "db")
	for i := range quiet {
		quiet[i].Key.Namespace = "quiet"
	}
	r.events(me, 1, append(quiet, gozzard.Event{Seq: 6, Kind: gozzard.EventPolicyChanged, At: event(6, "", "").At})...)
	place := r.plane.LastEvent()
	r.events(me, 1, run(10, 500, "loop")...)
	r.prune(100)

	page := r.newest(caller, record.EventFilter{}, 1000)
	wantRun(t, "the quiet ones", page.Events[:6], 1, 6)
	if n := len(page.Events); n != 95 { // a twentieth of the room is free then
		t.Errorf("%d events", n)
	}
	wantRun(t, "the loop", page.Events[6:], 10+500-89, 89)

	// A reader that followed them learns that some are missing, and goes on at the end.
	next, _ := r.after(caller, record.EventFilter{Namespaces: []string{"quiet"}}, place, 1000)
	if len(next.Events) != 0 || !next.Lost || next.Next != page.Next {
		t.Errorf("%+v", next)
	}
	if again, _ := r.after(caller, record.EventFilter{}, next.Next, 1000); again.Lost || len(again.Events) != 0 {
		t.Errorf("%+v", again)
	}
}

// TestTD25EventFlood: a host that sends a million events as fast as it can, without waiting for acknowledgements, and
// with names and texts of any length, gets a bounded number of them recorded. Meanwhile the events of another host are
// recorded, and operations get their verdicts.
func TestTD25EventFlood(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalB)
	begun := time.Now()
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		for seq := uint64(1); seq < 1_000_000; seq += 4000 {
			list := run(seq, 4000, "web")
			list[0].Key.Name = string(make([]byte, 60<<10))
			list[1].Message, list[2].Signal = string(make([]byte, 60<<10)), string(make([]byte, 60<<10))
			r.send(me, 1, list...)
			time.Sleep(time.Millisecond)
		}
	}()

	for i := range uint64(3) {
		r.events(other, 1, event(1+i, "quiet", gozzard.EventExited))
		task := r.operate(gozzard.ActionStop, 0, other)
		r.report(other, 1, done(r.op(other, 1, task), gozzard.CodeOK))
		r.verdict(task, other, gozzard.AttemptOK, gozzard.CodeOK)
	}
	<-flooded

	page, err := r.store.Events(t.Context(), record.EventQuery{UpTo: r.plane.LastEvent(), Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if most := 12_000 + 2*500 + 3 + 100*int(1+time.Since(begun).Seconds()); len(page) > most {
		t.Errorf("%d events are recorded, at most %d may be", len(page), most)
	}
	if i := slices.IndexFunc(page, func(e record.Event) bool { return len(e.Key.Name) > 128 || len(e.Message) > 1024 }); i >= 0 {
		t.Errorf("an event has a name of %d and a text of %d bytes", len(page[i].Key.Name), len(page[i].Message))
	}
	wantRun(t, "the quiet host", r.newest(caller, record.EventFilter{Agents: []gozzard.AgentID{other}}, 10).Events, 1, 3)
}

// TestEventsOfOtherServers: each server shows what another one has recorded, also when no news reach it. A reader that has
// seen more than this server goes on there, without a gap and without seeing anything twice.
func TestEventsOfOtherServers(t *testing.T) {
	c := newCluster(t, time.Minute, "s1", "s2")
	first, second := c.servers["s1"], c.servers["s2"]
	first.hello(me, 1, journalA)
	for round, lose := range []func(string, string, *gozzard.PeerNews) bool{nil,
		func(string, string, *gozzard.PeerNews) bool { return true }} {
		c.mu.Lock()
		c.lose = lose
		c.mu.Unlock()
		seen := uint64(60 * round)
		first.events(me, 1, run(seen+1, 30, "web")...)
		place := first.plane.LastEvent()

		// It may not know them yet.
		page, _ := second.after(caller, record.EventFilter{}, place, 10)
		if page.Next != place || page.Lost || len(page.Events) > 0 {
			t.Fatalf("a reader that has seen more gets %+v", page)
		}
		first.events(me, 1, run(seen+31, 30, "web")...)
		second.until("the second server does not see the events of the first", func() bool {
			return second.plane.LastEvent() == first.plane.LastEvent()
		})
		page, _ = second.after(caller, record.EventFilter{}, place, 100)
		wantRun(t, "a reader that came from the first server", page.Events, seen+31, 30)
		wantRun(t, "the second server", second.newest(caller, record.EventFilter{}, 1000).Events, 1, seen+60)
	}
}
