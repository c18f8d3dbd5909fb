package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
)

// sentEvents lists the events in the reports so far.
func (r *rig) sentEvents() (out []gozzard.Event) {
	for _, rep := range r.taken(gozzard.ReportEvents) {
		out = append(out, rep.Events...)
	}
	return out
}

func (r *rig) note(n int) {
	for i := range n {
		r.a.Note(gozzard.Event{Key: key, Kind: gozzard.EventExited, PID: i + 1, Message: fmt.Sprint("event ", i)})
	}
	synctest.Wait()
}

func ascending(events []gozzard.Event) bool {
	return slices.IsSortedFunc(events, func(a, b gozzard.Event) int {
		if a.Seq < b.Seq {
			return -1
		}
		return 1
	})
}

func TestEventsAreReportedOnceInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		defer r.stop()
		r.note(1000)
		pass(10 * time.Second)
		got := r.sentEvents()
		if len(got) != 1000 || !ascending(got) || got[0].Message != "event 0" || got[0].At == 0 {
			t.Fatalf("%d events, in order %v, first %+v", len(got), ascending(got), got[:min(1, len(got))])
		}
	})
}

func TestEventsAreRepeatedUntilTheyArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		defer r.stop()
		r.set(func() { r.deaf = true })
		r.note(500)
		pass(30 * time.Second)
		reports := r.taken(gozzard.ReportEvents)
		if len(reports) < 4 {
			t.Fatalf("%d reports", len(reports))
		}

		for _, rep := range reports { // no later batch is sent before the first has arrived
			if rep.Events[0].Seq != reports[0].Events[0].Seq {
				t.Fatalf("went on with %d before %d was acknowledged", rep.Events[0].Seq, reports[0].Events[0].Seq)
			}
		}

		r.set(func() { r.deaf = false })
		r.forget()
		pass(30 * time.Second)

		if got := r.sentEvents(); len(got) != 500 || !ascending(got) {
			t.Fatalf("%d events", len(got))
		}
	})
}

// Numbers go on over a restart, events that had not arrived are sent then, and others are not.
func TestEventsOutliveTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.note(3)
		pass(10 * time.Second)
		r.set(func() { r.deaf = true })
		r.note(2)
		last := r.a.Events()[4].Seq
		r.stop()
		r.set(func() { r.deaf, r.reports = false, nil })
		r.start()
		r.connect()
		defer r.stop()
		r.note(1)
		pass(10 * time.Second)
		got := r.sentEvents()
		if len(got) != 3 || !ascending(got) || got[1].Seq != last {
			t.Fatalf("%+v", got)
		}
	})
}

func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		defer r.stop()

		for range 12 {
			r.note(1000)
		}

		if n := len(r.a.Events()); n != 10_000 {
			t.Errorf("%d events are kept for a server that is away", n)
		}

		r.connect()
		pass(30 * time.Second)

		if n := len(r.a.Events()); n != 1000 {
			t.Errorf("%d events are kept after they arrived", n)
		}

		r.a.Note(gozzard.Event{Key: key, Kind: gozzard.EventExited, Message: strings.Repeat("长\xff", 5000)})
		pass(10 * time.Second)

		if got := r.sentEvents(); len(got[len(got)-1].Message) > 2<<10 {
			t.Errorf("a message of %d bytes", len(got[len(got)-1].Message))
		}
	})
}

// TestTD18EventsOfANamespaceStay: a namespace with very many events does not push out those of another one, neither
// while the server is away, nor when it has them, nor over a restart of the agent.
func TestTD18EventsOfANamespaceStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		quiet := gozzard.Key{Namespace: "quiet", Name: "db"}
		ofQuiet := func() (n int) {
			for _, e := range r.a.Events() {
				if e.Key == quiet {
					n++
				}
			}
			return n
		}

		for range 5 {
			r.a.Note(gozzard.Event{Key: quiet, Kind: gozzard.EventExited})
		}
		for range 12 {
			r.note(1000)
		}
		if n, all := ofQuiet(), len(r.a.Events()); n != 5 || all != 10_000 {
			t.Errorf("the server is away: %d of 5 events of %d", n, all)
		}

		r.connect()
		pass(30 * time.Second)
		if n, all := ofQuiet(), len(r.a.Events()); n != 5 || all != 1000 {
			t.Errorf("the server has them: %d of 5 events of %d", n, all)
		}
		r.set(func() { r.deaf = true })
		for range 11 {
			r.note(1000)
		}
		before := r.a.Events()

		r.stop()
		r.start()
		defer r.stop()
		if after := r.a.Events(); ofQuiet() != 5 || !slices.Equal(after, before) {
			t.Errorf("after a restart there are %d of 5 events, and %d of %d", ofQuiet(), len(after), len(before))
		}
	})
}

func TestGroupsOutliveTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		good := gozzard.Group{Namespace: "shop", ID: "pool", CPULimit: 40, MemWeight: 1}

		set := func(session uint64, groups ...gozzard.Group) {
			r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandGroups, Session: session, Groups: groups})
			synctest.Wait()
		}

		set(r.session, good, gozzard.Group{Namespace: "../x"},
			gozzard.Group{Namespace: "shop", ID: "minus", CPULimit: -1})
		want := []gozzard.Group{good}
		if got := r.a.Groups(); !slices.Equal(got, want) {
			t.Fatalf("%+v", got)
		}

		set(r.session+5, gozzard.Group{Namespace: "other"})
		r.stop()
		r.start()

		if got := r.a.Groups(); !slices.Equal(got, want) {
			t.Fatalf("after a restart: %+v", got)
		}

		r.connect()
		defer r.stop()
		set(r.session)

		if got := r.a.Groups(); len(got) != 0 {
			t.Fatalf("pools that are gone: %+v", got)
		}
	})
}

func TestLogsAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		defer r.stop()

		ask := func(session uint64, q gozzard.LogQuery) {
			r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandLogs, Session: session, Logs: &q})
			synctest.Wait()
		}

		id := gozzard.NewOpID()
		ask(r.session, gozzard.LogQuery{ID: id, Key: key, Lines: 10, Offset: -1, Max: 1 << 40})
		ask(r.session+1, gozzard.LogQuery{ID: gozzard.NewOpID(), Key: key})
		ask(r.session, gozzard.LogQuery{ID: gozzard.NewOpID(), Key: gozzard.Key{Namespace: "..", Name: "a/b"}})
		got := r.taken(gozzard.ReportLogs)
		if len(got) != 2 || got[0].Logs.ID != id || got[1].Logs.Error == "" {
			t.Fatalf("%d answers", len(got))
		}
	})
}
