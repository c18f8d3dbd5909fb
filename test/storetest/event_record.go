package storetest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
)

// eventOf makes an event of a process. Its time says which one it is.
func eventOf(agent gozzard.AgentID, seq uint64, namespace, name string) record.Event {
	return record.Event{Agent: agent, Addr: gozzard.HostAddr{Cloud: 2, IP: netip.MustParseAddr("10.1.2.3")},
		Event: gozzard.Event{Seq: seq, Key: gozzard.Key{Namespace: namespace, Name: name}, Kind: gozzard.EventExited,
			At: start.UnixMilli() + int64(seq)}}
}

// eventsOf makes n events of a process.
func eventsOf(agent gozzard.AgentID, first uint64, n int, namespace, name string) (list []record.Event) {
	for i := range n {
		list = append(list, eventOf(agent, first+uint64(i), namespace, name))
	}
	return list
}

func addEvents(t *testing.T, s control.Store, list []record.Event) {
	t.Helper()
	_, err := s.AddEvents(t.Context(), list)
	must(t, err)
}

// allEvents reads all events, and the state after them.
func allEvents(t *testing.T, s control.Store) (list []record.Event, st record.EventState) {
	t.Helper()
	st, err := s.EventState(t.Context())
	must(t, err)
	list, err = s.Events(t.Context(), record.EventQuery{UpTo: st.Last, Limit: 1 << 20})
	must(t, err)
	return list, st
}

// eventRoundTrip: an event is read as it was recorded, whatever its texts are.
func eventRoundTrip(t *testing.T, s control.Store) {
	_, st := allEvents(t, s)
	equal(t, "the state of a new record", st, record.EventState{})

	full := eventOf("a1", 7, "网关", "w<e>b")
	full.PID, full.Code, full.Known, full.Core, full.Signal, full.Message = 77, -1, true, true, "SIGSEGV", "a\nb 网"
	full.Task, full.App, full.User = "20240102030405:17", "app", "me"
	host := record.Event{Agent: "a2", Event: gozzard.Event{Kind: gozzard.EventPolicyChanged, At: 5}}
	odd := eventOf("a1", 1<<63+5, "shop", "x")
	odd.Message, odd.Kind = "nul \x00 and \xff", "\x00"
	odd.At, odd.PID, odd.Code = -1<<62, -1<<40, 1<<40

	list := []record.Event{full, host, odd}
	before, err := s.AddEvents(t.Context(), list)
	must(t, err)
	if now := uint64(time.Now().UnixMicro()); before == 0 || before > now || before >= list[0].ID {
		t.Errorf("the number before is %d, the first one %d, at %d", before, list[0].ID, now)
	}
	got, st := allEvents(t, s)
	equal(t, "events", len(got), 3)
	equal(t, "the numbers that others may have given out", st.Removed, before)
	equal(t, "the newest number", st.Last, list[2].ID)
	full.Seq, full.ID = 0, list[0].ID
	host.ID = list[1].ID
	equal(t, "a full event", got[0], full)
	equal(t, "an event of a host", got[1], host)
	odd.ID, odd.Seq, odd.Message, odd.Kind = list[2].ID, 0, "nul \uFFFD and \uFFFD", "\uFFFD"
	equal(t, "an odd event", got[2], odd)

	// The numbers follow the clock, and go on.
	if now := uint64(time.Now().UnixMicro()); got[0].ID > now+1000 || got[0].ID < now-uint64(time.Hour.Microseconds()) {
		t.Errorf("the first number is %d at %d", got[0].ID, now)
	}
	again := []record.Event{host}
	before, err = s.AddEvents(t.Context(), again)
	must(t, err)
	equal(t, "the number before", before, st.Last)
	if again[0].ID <= st.Last {
		t.Errorf("number %d is not behind %d", again[0].ID, st.Last)
	}
	must(t, func() error { _, err := s.AddEvents(t.Context(), nil); return err }())
}

// eventOnce: what an agent repeats is recorded once, and numbers are in the order of commits: a reader that reads behind the
// newest number that it has seen misses nothing.
func eventOnce(t *testing.T, s control.Store) {
	const agents, each = 8, 40
	stop := make(chan struct{})
	seen := make(chan map[uint64]bool, 1)
	go func() { // follows as another server does
		ids, last := map[uint64]bool{}, uint64(0)
		for ended := false; ; {
			list, err := s.Events(t.Context(), record.EventQuery{After: last, UpTo: 1 << 60, Limit: 7})
			if err != nil {
				t.Error(err)
				break
			}
			for _, e := range list {
				ids[e.ID], last = true, e.ID
			}
			if ended && len(list) == 0 {
				break
			}
			select {
			case <-stop:
				ended = true
			default:
			}
		}
		seen <- ids
	}()

	var wg sync.WaitGroup
	for a := range agents {
		wg.Go(func() {
			agent := gozzard.AgentID(fmt.Sprint("a", a/2)) // two writers for each agent
			for i := 1; i <= each; i++ {
				list := eventsOf(agent, 1, i, "shop", fmt.Sprint("p", a/2))
				if _, err := s.AddEvents(t.Context(), list); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	close(stop)

	ids := <-seen
	list, _ := allEvents(t, s)
	equal(t, "events", len(list), agents/2*each)
	count := map[string]int{}
	for _, e := range list {
		count[fmt.Sprint(e.Agent, e.At)]++
		if !ids[e.ID] {
			t.Fatalf("a reader that followed did not see %d", e.ID)
		}
	}
	equal(t, "different events", len(count), len(list))
	equal(t, "events that a reader saw", len(ids), len(list))
}

// eventPages: every filter gives the same events in pages forward and backward as by looking at each event, with few and
// with many processes.
func eventPages(t *testing.T, s control.Store) {
	var list []record.Event
	for i := range 6000 {
		namespace := []string{"shop", "pay", ""}[i%3]
		if i < 150 {
			namespace = "old"
		}
		e := eventOf(gozzard.AgentID(fmt.Sprint("a", i%5)), uint64(i+1), namespace, fmt.Sprint("p", i%100))
		e.At = time.Now().UnixMilli() + int64(i)
		if i%4 == 0 {
			e.Kind = gozzard.EventStarted
		}
		list = append(list, e)
	}
	addEvents(t, s, list)
	all, st := allEvents(t, s)

	for name, q := range map[string]record.EventQuery{
		"all":             {},
		"namespace":       {Filter: record.EventFilter{Namespaces: []string{"sh*"}}},
		"many, long ago":  {Filter: record.EventFilter{Namespaces: []string{"old"}}},
		"names":           {Filter: record.EventFilter{Names: []string{"p1", "p2?"}}},
		"few":             {Filter: record.EventFilter{Names: []string{"p7"}, Namespaces: []string{"pay"}}},
		"agents":          {Filter: record.EventFilter{Agents: []gozzard.AgentID{"a3", "nobody"}}},
		"nobody":          {Filter: record.EventFilter{Agents: []gozzard.AgentID{"nobody"}}},
		"kinds":           {Filter: record.EventFilter{Kinds: []gozzard.EventKind{gozzard.EventStarted, gozzard.EventRan}}},
		"since":           {Filter: record.EventFilter{Since: time.UnixMilli(all[300].At)}},
		"everything else": {Filter: record.EventFilter{Names: []string{"p*"}, Kinds: []gozzard.EventKind{gozzard.EventExited}, Since: time.UnixMilli(all[9].At)}},
		"rights": {Sees: func(a gozzard.AgentID, at gozzard.HostAddr, ns string) bool {
			return a != "a1" && at.Cloud == 2 && ns == "pay"
		}},
	} {
		var want []uint64
		for i := range all {
			if e := &all[i]; q.Filter.Fits(e) && (q.Sees == nil || q.Sees(e.Agent, e.Addr, e.Key.Namespace)) {
				want = append(want, e.ID)
			}
		}
		if name != "nobody" && len(want) < 2 {
			t.Fatalf("%s: the test has %d events", name, len(want))
		}

		for _, newest := range []bool{false, true} {
			var got []uint64
			q.After, q.UpTo, q.Newest, q.Limit = 0, st.Last, newest, 170
			for {
				page, err := s.Events(t.Context(), q)
				must(t, err)
				if len(page) > 170 {
					t.Fatalf("%s: a page of %d", name, len(page))
				}
				var ids []uint64
				for i := range page {
					ids = append(ids, page[i].ID)
				}
				if len(ids) == 0 {
					break
				}
				if newest {
					got, q.UpTo = append(ids, got...), ids[0]-1
				} else {
					got, q.After = append(got, ids...), ids[len(ids)-1]
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, newest first %v: %d events, want %d", name, newest, len(got), len(want))
			}
		}
	}
}

// eventsByAge: events that were recorded before a time are removed, however many there are. What their agents say about the
// time does not matter.
func eventsByAge(t *testing.T, s control.Store) {
	old := eventsOf("a1", 1, 2500, "shop", "web")
	for i := range old {
		old[i].At = time.Now().AddDate(100, 0, 0).UnixMilli()
	}
	addEvents(t, s, old)
	time.Sleep(2 * time.Millisecond) // more than the numbers are ahead of the clock
	last := old[len(old)-1].ID
	addEvents(t, s, []record.Event{eventOf("a2", 1, "shop", "db")})

	n, err := s.PruneEvents(t.Context(), record.EventKeep{Before: time.UnixMicro(int64(old[0].ID))})
	must(t, err)
	equal(t, "removed before anything was old", n, 0)
	n, err = s.PruneEvents(t.Context(), record.EventKeep{Before: time.UnixMicro(int64(last) + 1)})
	must(t, err)
	equal(t, "removed", n, 2500)
	left, st := allEvents(t, s)
	if len(left) != 1 || left[0].Agent != "a2" || st.Removed != last {
		t.Errorf("%d events are left, removed up to %d, want %d", len(left), st.Removed, last)
	}

	// The agent is not heard again with what was removed, and its process can have events again.
	addEvents(t, s, eventsOf("a1", 2499, 4, "shop", "web"))
	left, _ = allEvents(t, s)
	equal(t, "events", len(left), 3)
}

// eventsByNumber: of too many events the oldest of the hosts with the most are removed, there of the namespaces with the
// most, and there of the processes with the most.
func eventsByNumber(t *testing.T, s control.Store) {
	// A host floods in many namespaces, another one has a loop in one of its three processes, a third one is quiet.
	for i := range 10 {
		addEvents(t, s, eventsOf("flood", uint64(1+300*i), 300, fmt.Sprint("made-up-", i), "x"))
	}
	addEvents(t, s, eventsOf("busy", 1, 10, "shop", "web"))
	addEvents(t, s, eventsOf("busy", 11, 10, "pay", "db"))
	addEvents(t, s, eventsOf("busy", 21, 400, "shop", "loop"))
	addEvents(t, s, eventsOf("quiet", 1, 20, "shop", "web"))

	n, err := s.PruneEvents(t.Context(), record.EventKeep{Most: 5000})
	must(t, err)
	equal(t, "removed below the limit", n, 0)
	n, err = s.PruneEvents(t.Context(), record.EventKeep{Most: 400})
	must(t, err)
	equal(t, "removed", n, 3440-380)

	left, _ := allEvents(t, s)
	count := map[string]int{}
	for _, e := range left {
		host := string(e.Agent)
		if host == "flood" {
			count["of "+host]++
			continue
		}
		count[strings.Join([]string{host, e.Key.Namespace, e.Key.Name}, " ")]++
	}
	want := map[string]int{"of flood": 180, "busy shop web": 10, "busy pay db": 10, "busy shop loop": 160, "quiet shop web": 20}
	equal(t, "events", count, want)
	for i := len(left) - 20; i < len(left); i++ {
		if left[i].Agent != "quiet" {
			t.Fatal("the quiet host does not have its events")
		}
	}
	if last := left[len(left)-21]; last.At != start.UnixMilli()+420 {
		t.Error("the newest event of a loop was removed")
	}
}
