package supervise

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// actor looks after one process. It is a mailbox and a state; its goroutine exists only while there is work, so
// that an idle process costs memory and nothing else.
type actor struct {
	s   *Supervisor
	key gozzard.Key
	log *slog.Logger

	wake chan struct{} // capacity 1: something arrived while the goroutine is busy

	mu     sync.Mutex
	busy   bool // the goroutine exists, or Run is about to start it
	events []event
	ops    []Op
	view   view

	// The rest belongs to the goroutine; it is handed on through mu.
	state
	operating bool // an operation or pull-up is going on: what is seen meanwhile is its doing
	holding   bool // a start command runs: events go to held
	held      []gozzard.Event
	slot      bool // it holds one of Supervisor.pulls
	// wakes for what is planned. It decides nothing: what is due is read from the state, so that a timer of an
	// earlier run can do no harm
	timer *time.Timer
}

// eventKind tells events apart.
type eventKind uint8

const (
	eventRestored eventKind = iota + 1 // taken over from the journal: look for it
	eventExited                        // the watched process of run is gone
	eventLook                          // somebody saw that the state is not true any more
	eventVersion                       // the version command of run has ended
	eventUsage                         // the usage has changed noticeably
	eventLimit                         // samples have shown something about limits
	eventHealth                        // a probe of the health command of run has ended
	eventWake                          // time has come for something
)

// event is something that happened to the process. It is about one run of it where that matters and is ignored when
// another one has begun.
type event struct {
	kind   eventKind
	run    uint64
	exit   Exit
	text   string
	breach *breach
}

func newActor(s *Supervisor, key gozzard.Key) *actor {
	return &actor{s: s, key: key, log: s.log.With("ns", key.Namespace, "proc", key.Name), wake: make(chan struct{}, 1)}
}

// enqueue takes in an operation; true: the caller must have work started.
func (a *actor) enqueue(op Op) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ops = append(a.ops, op)
	return a.rouse()
}

// post takes in an event. It never blocks.
func (a *actor) post(e event) {
	a.mu.Lock()
	a.events = append(a.events, e)
	start := a.rouse()
	a.mu.Unlock()
	if start {
		a.s.spawn(a.work)
	}
}

// rouse says whether a goroutine must be started; one that exists is told. mu is held.
func (a *actor) rouse() bool {
	if !a.busy {
		a.busy = true
		return true
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return false
}

// work goes on until there is nothing left to do.
func (a *actor) work(ctx context.Context) {
	for more := true; more && ctx.Err() == nil; {
		if !a.s.guard(&a.key, func() { more = a.step(ctx) }) {
			a.operating, a.stopping, a.restoring = false, false, false // and go on with what comes next
		}
	}
}

// step does the next thing: what happened comes before what is asked, what is asked before what supervision would
// do by itself.
func (a *actor) step(ctx context.Context) (more bool) {
	a.drain()

	if op, ok := a.nextOp(); ok {
		a.operate(ctx, op)
		return true
	}

	switch {
	case a.curbDue():
		a.curb(ctx)
	case a.cureDue():
		a.cure(ctx)
	case a.runDue():
		a.runPlanned(ctx)
	case a.pullUpDue():
		a.pullUp(ctx)
	default:
		a.probeHealth()
		return !a.rest()
	}

	return true
}

func (a *actor) nextOp() (Op, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.ops) == 0 {
		return Op{}, false
	}
	op := a.ops[0]
	a.ops[0] = Op{}
	if a.ops = a.ops[1:]; len(a.ops) == 0 {
		a.ops = nil
	}
	return op, true
}

func (a *actor) opWaiting() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ops) > 0
}

// rest ends the goroutine when nothing arrived meanwhile; a process that is not managed is forgotten altogether.
func (a *actor) rest() bool {
	a.arm()

	if !a.known {
		a.s.mu.Lock()
		defer a.s.mu.Unlock()
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	if len(a.events)+len(a.ops) > 0 {
		return false
	}

	a.busy, a.events = false, nil
	if !a.known && a.s.actors[a.key] == a {
		delete(a.s.actors, a.key)
	}

	return true
}

// drain handles the events that have arrived.
func (a *actor) drain() {
	for {
		a.mu.Lock()
		if len(a.events) == 0 {
			a.mu.Unlock()
			return
		}
		e := a.events[0]
		a.events = a.events[1:]
		a.mu.Unlock()
		a.s.guard(&a.key, func() { a.handle(e) })
	}
}

func (a *actor) handle(e event) {
	switch e.kind {
	case eventRestored:
		a.restoring = true
		if _, err := a.look(); err != nil {
			a.message = gozzard.Clip(err.Error(), maxStatusBytes)
		}
		a.restoring = false
		a.publish(true)
	case eventExited:
		if e.run == a.run && a.running() {
			a.exited(e.exit)
			a.publish(false)
		}
	case eventLook:
		if _, err := a.look(); err != nil {
			a.log.Warn("cannot look for the process", "error", err)
		}
		a.publish(false)
	case eventVersion:
		if e.run == a.run && a.running() {
			a.version = e.text
			a.publish(false)
		}
	case eventUsage:
		a.publish(true)
	case eventLimit:
		a.overLimit(*e.breach)
	case eventHealth:
		a.probed(e.run, e.text)
	case eventWake: // step looks what is due
	}
}

// pause lets time pass inside an operation while events are handled. It returns early when something arrived or ctx
// ended: callers look again.
func (a *actor) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.wake:
	case <-ctx.Done():
	}
	a.drain()
}

// arm sets the timer for what is planned first.
func (a *actor) arm() {
	a.disarm()
	if d, planned := a.untilNext(); planned {
		a.timer = time.AfterFunc(d, func() { a.post(event{kind: eventWake}) })
	}
}

// untilNext is how long there is nothing to do.
func (a *actor) untilNext() (d time.Duration, planned bool) {
	until := func(left time.Duration) {
		if !planned || left < d {
			d, planned = left, true
		}
	}

	if !a.pullAt.IsZero() {
		until(time.Until(a.pullAt))
	}
	if h := a.health; !h.at.IsZero() && !h.probing {
		until(time.Until(h.at))
	}
	if h := a.health; !h.cureAt.IsZero() {
		until(time.Until(h.cureAt))
	}
	if a.plan != nil && !a.plan.next.IsZero() {
		until(a.plan.next.Sub(a.s.now()))
	}

	return d, planned
}

func (a *actor) disarm() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}
