package delivery

import (
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/turns"
)

// verdicts has the verdicts that wait for a write of the record. There are two lanes, and each has a write of its own
// under way: the verdicts of a small task do not wait until those of a large one of another app are written. In a lane
// apps take turns.
type verdicts struct {
	places chan struct{} // one for each verdict that waits

	mu    sync.Mutex
	lanes [laneCount]lane
	open  map[gozzard.ProcID]*course
}

// laneKind names a lane.
type laneKind uint8

const (
	laneMany laneKind = iota // of apps with many operations in the air
	laneFew                  // of apps with few, while others have many
	laneCount
)

type lane struct {
	wake    chan struct{} // some wait
	waiting turns.Queue[reported]
}

// course is where the verdicts about one process are that are not recorded yet. Later ones follow the same way, whichever
// app they are of: the last verdict says what is wanted of the process, so they are recorded in their order.
type course struct {
	lane  laneKind
	owner string
	n     int
}

func newVerdicts() *verdicts {
	v := &verdicts{places: make(chan struct{}, settleQueue), open: map[gozzard.ProcID]*course{}}
	for i := range v.lanes {
		v.lanes[i].wake = make(chan struct{}, 1)
	}
	return v
}

// add appends a verdict, and waits while there are too many. It reports false when quit is closed.
func (v *verdicts) add(r reported, quit <-chan struct{}) bool {
	select {
	case v.places <- struct{}{}:
	case <-quit:
		return false
	}

	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.open[r.process()]
	if c == nil {
		c = &course{lane: r.lane, owner: r.app}
		v.open[r.process()] = c
	}
	c.n++

	l := &v.lanes[c.lane]
	l.waiting.Add(c.owner, r)
	l.signal()
	return true
}

// take moves verdicts of a lane to a batch until it has the given length.
func (v *verdicts) take(kind laneKind, batch []reported, most int) []reported {
	v.mu.Lock()
	defer v.mu.Unlock()
	l := &v.lanes[kind]
	for len(batch) < most {
		r, ok := l.waiting.Next()
		if !ok {
			return batch
		}
		<-v.places
		batch = append(batch, r)
	}

	if l.waiting.Len() > 0 {
		l.signal()
	}
	return batch
}

// written forgets where verdicts went that were taken: the record has them, or they have to be reported again.
func (v *verdicts) written(batch []reported) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range batch {
		id := batch[i].process()
		c := v.open[id]
		if c.n--; c.n == 0 {
			delete(v.open, id)
		}
	}
}

// process is what the verdict is about. Verdicts on operations that this server does not know have one for all of an agent.
func (r *reported) process() gozzard.ProcID {
	return gozzard.ProcID{Agent: r.row.Agent, Key: r.row.Key}
}

// signal wakes the loop that records.
func (l *lane) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
