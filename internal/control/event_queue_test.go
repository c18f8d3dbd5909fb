package control_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// gatedEvents is a record that takes events while nobody holds its gate. The answer of one transaction can get lost.
type gatedEvents struct {
	control.Store
	gate   sync.Mutex
	begun  atomic.Int32 // transactions
	silent atomic.Bool  // the next answer gets lost
}

func (s *gatedEvents) AddEvents(ctx context.Context, events []record.Event) (uint64, error) {
	if len(events) > 0 {
		s.begun.Add(1)
		s.gate.Lock()
		defer s.gate.Unlock()
	}
	before, err := s.Store.AddEvents(ctx, events)
	if err == nil && s.silent.Swap(false) {
		return 0, errors.New("the answer is lost")
	}
	return before, err
}

func newGatedRig(t *testing.T) (r *rig, s *gatedEvents) {
	r = newRigAround(t, func(store *sqlstore.Store) control.Store {
		s = &gatedEvents{Store: store}
		return s
	})
	return r, s
}

// TestReportsOfEventsAreJoined: an acknowledgement stands for all events up to its number. So a report that comes while one
// of the same agent waits does not take its place, whichever begins first.
func TestReportsOfEventsAreJoined(t *testing.T) {
	type part struct {
		first, n uint64
		text     int // bytes of a message
	}
	for name, test := range map[string]struct {
		parts []part
		all   uint64
	}{
		"one behind the other":    {[]part{{1, 5, 0}, {6, 5, 0}}, 10},
		"with a part of it":       {[]part{{1, 5, 0}, {3, 8, 0}}, 10},
		"the same again":          {[]part{{1, 5, 0}, {1, 5, 0}, {1, 10, 0}}, 10},
		"before it":               {[]part{{6, 5, 0}, {1, 5, 0}}, 10},
		"inside":                  {[]part{{1, 10, 0}, {4, 3, 0}}, 10},
		"more than may wait":      {[]part{{1, 400, 0}, {401, 400, 0}, {801, 100, 0}}, 900},
		"more, before it":         {[]part{{501, 400, 0}, {1, 500, 0}}, 900},
		"behind one that is cut":  {[]part{{1, 300, 1000}, {301, 10, 0}}, 310},
		"before it, and cut":      {[]part{{301, 10, 0}, {1, 300, 1000}}, 310},
		"goes on where it is cut": {[]part{{1, 300, 1000}, {150, 161, 0}}, 310},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := newGatedRig(t)
			r.hello(me, 1, journalA)
			r.hello(other, 1, journalA)

			// Let reports wait behind those of another host.
			s.gate.Lock()
			open := sync.OnceFunc(s.gate.Unlock)
			defer open()
			r.send(other, 1, event(1, "db", gozzard.EventExited))
			r.until("events are not recorded", func() bool { return s.begun.Load() > 0 })
			for _, p := range test.parts {
				list := run(p.first, p.n, "web")
				for i := range list {
					list[i].Message = strings.Repeat("x", p.text)
				}
				r.send(me, 1, list...)
			}
			open()

			// The agent sends again what is not acknowledged, and nothing else.
			r.until("events are not acknowledged", func() bool {
				acked := r.acked(me)
				if acked > 0 && acked < test.all {
					r.send(me, 1, run(acked+1, min(400, test.all-acked), "web")...)
				}
				return acked == test.all
			})
			wantRun(t, "all", r.newest(caller, record.EventFilter{Names: []string{"web"}}, 1000).Events, 1, test.all)
		})
	}
}

// TestEventsWhoseAnswerIsLost: events that are recorded although the record gave no answer are shown and acknowledged when
// their agent repeats them, and once.
func TestEventsWhoseAnswerIsLost(t *testing.T) {
	r, s := newGatedRig(t)
	r.hello(me, 1, journalA)
	s.silent.Store(true)
	r.send(me, 1, run(1, 5, "web")...)
	r.until("events are not recorded", func() bool { return s.begun.Load() > 0 && !s.silent.Load() })
	r.until("events are not acknowledged", func() bool {
		r.send(me, 1, run(1, 5, "web")...)
		return r.acked(me) == 5
	})
	r.until("events are recorded and acknowledged, but not shown", func() bool {
		return len(r.newest(caller, record.EventFilter{}, 100).Events) == 5
	})
	wantRun(t, "all", r.newest(caller, record.EventFilter{}, 100).Events, 1, 5)
}

// TestEventsOfAJournalThatIsNewElsewhere: an agent lost its journal, and has lower numbers since. It says so to another
// server, and then comes back: its events are not taken for those of the journal before.
func TestEventsOfAJournalThatIsNewElsewhere(t *testing.T) {
	c := newCluster(t, time.Minute, "s1", "s2")
	first, second := c.servers["s1"], c.servers["s2"]
	first.hello(me, 1, journalA)
	first.events(me, 1, run(1000, 5, "old")...)

	second.hello(me, 2, journalB)
	second.events(me, 2, run(1, 5, "web")...)

	first.forget()
	first.hello(me, 3, journalB)
	first.events(me, 3, run(6, 5, "web")...)
	first.until("events of the new journal are missing", func() bool {
		return len(first.newest(caller, record.EventFilter{}, 100).Events) == 15
	})
	wantRun(t, "the new journal", first.newest(caller, record.EventFilter{Names: []string{"web"}}, 100).Events, 1, 10)
}

// TestEventsThatWaitOfALostJournal: what waits when an agent comes with another journal is not recorded any more, so that
// the lower numbers of the new one are not taken for known.
func TestEventsThatWaitOfALostJournal(t *testing.T) {
	r, s := newGatedRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalA)
	s.gate.Lock()
	open := sync.OnceFunc(s.gate.Unlock)
	defer open()
	r.send(other, 1, event(1, "db", gozzard.EventExited))
	r.until("events are not recorded", func() bool { return s.begun.Load() > 0 })
	r.send(me, 1, run(1000, 5, "old")...)

	r.hello(me, 2, journalB)
	open()
	r.events(me, 2, run(1, 5, "web")...)
	wantRun(t, "the new journal", r.newest(caller, record.EventFilter{Names: []string{"web"}}, 100).Events, 1, 5)
}
