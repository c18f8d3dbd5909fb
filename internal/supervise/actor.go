package supervise

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
)

// actor looks after one process. It has queues of events and operations, and a state. Its goroutine exists only
// while there is work, so an idle process costs memory and nothing else.
type actor struct {
	s   *Supervisor
	key gozzard.Key
	log *slog.Logger

	wake chan struct{} // capacity 1: an event or operation arrived while the goroutine was busy

	mu     sync.Mutex
	busy   bool // the goroutine exists, or Run is about to start it
	events []event
	ops    []Op
	doing  gozzard.Action // of the operation in progress; ActionNone if there is none
	view   view

	exceeded atomic.Uint32 // Life.Exceeded

	// The goroutine owns everything below. The next goroutine takes it over through mu.

	state
	cause     gozzard.Cause   // the operation in progress, if the server asked for it
	operating bool            // an operation or pull-up is in progress and causes the changes that are seen
	delaying  bool            // a start command runs: events are collected in delayed
	delayed   []gozzard.Event // events that sendDelayedEvents sends later
	merger    *merger         // what announce sends goes through it
	slot      bool            // the actor has put an element into Supervisor.pulls

	// timer wakes the actor for planned work. It decides nothing: step reads from the state what is due, so a timer
	// that an earlier run has set does no harm.
	timer *time.Timer
}

// eventKind is what an event says.
type eventKind uint8

const (
	eventRestored eventKind = iota + 1 // the journal has this process: look for it
	eventExited                        // the watched process of a run has ended
	eventLook                          // the state and the machine disagree: look for the process
	eventVersion                       // the version command of a run has ended
	eventUsage                         // the resource usage has noticeably changed
	eventLimit                         // the process has exceeded a limit, or is within its limits again
	eventHealth                        // the health command of a run has ended
	eventWake                          // planned work is due
)

// event is something that the actor must react to.
type event struct {
	kind   eventKind
	run    uint64  // of eventExited, eventVersion and eventHealth: ignored when a later run has begun
	exit   Exit    // of eventExited
	text   string  // of eventVersion and eventHealth
	breach *breach // of eventLimit

	skipped bool // of eventHealth: the command did not run
}

func newActor(s *Supervisor, key gozzard.Key) *actor {
	log := slog.New(newFewLines(s.log.Handler())).With("ns", key.Namespace, "proc", key.Name)
	return &actor{s: s, key: key, log: log, wake: make(chan struct{}, 1), merger: &merger{send: s.event}}
}

// enqueue adds an operation. If it returns true, the caller must start work.
func (a *actor) enqueue(op Op) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ops = append(a.ops, op)
	return a.wakeOrStart()
}

// post adds an event. It never blocks.
func (a *actor) post(e event) {
	a.mu.Lock()
	a.events = append(a.events, e)
	start := a.wakeOrStart()
	a.mu.Unlock()
	if start {
		a.s.spawn(a.work)
	}
}

// wakeOrStart wakes the goroutine, or returns true if there is none and the caller must start one. The caller holds
// mu.
func (a *actor) wakeOrStart() bool {
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

// work is the actor's goroutine. It ends when there is nothing left to do.
func (a *actor) work(ctx context.Context) {
	for more := true; more && ctx.Err() == nil; {
		if !a.s.guard(&a.key, func() { more = a.step(ctx) }) {
			a.cause = gozzard.Cause{}
			a.operating, a.stopping, a.starting, a.restoring = false, false, false, false // after a panic, go on with the next step
			a.launching, a.lateEnd = false, nil
		}
	}
}

// step does the most urgent work. It reports whether there may be more.
func (a *actor) step(ctx context.Context) (more bool) {
	// First learn what has happened.
	a.drain()

	// Then do what was asked for.
	if op, ok := a.nextOp(); ok {
		defer a.opEnded()
		a.operate(ctx, op)
		return true
	}

	// Then do what supervision requires.
	switch {
	case a.settleDue():
		a.settleNow()
	case a.clearDue():
		a.clearAgain()
	case a.steadyDue():
		a.endCount()
	case a.limitActionDue():
		a.actOnBreach(ctx)
	case a.healthRestartDue():
		a.restartUnhealthy(ctx)
	case a.runDue():
		a.startPlannedRun(ctx)
	case a.pullUpDue():
		a.pullUp(ctx)
	default:
		a.probeHealth()
		return !a.goIdle()
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
	a.doing = op.Action
	return op, true
}

// opEnded notes that the operation of nextOp is over.
func (a *actor) opEnded() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.doing = gozzard.ActionNone
}

func (a *actor) opWaiting() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ops) > 0
}

// goIdle reports whether the goroutine may end. It may not if something arrived meanwhile. The actor of a process
// that is not managed is removed from the supervisor.
func (a *actor) goIdle() bool {
	a.arm()
	if !a.managed {
		a.merger.flushAll()
	}

	// Lock in the order that Supervisor demands.
	if !a.managed {
		a.s.mu.Lock()
		defer a.s.mu.Unlock()
	}
	a.mu.Lock()
	defer a.mu.Unlock()

	// Go on if something arrived.
	if len(a.events)+len(a.ops) > 0 {
		return false
	}

	// End, and remove the actor of a process that is not managed.
	a.busy, a.events = false, nil
	if !a.managed && a.s.actors[a.key] == a {
		delete(a.s.actors, a.key)
		if !a.held.IsZero() { // it may still run, and be managed again
			a.s.known[a.key] = a.held
		}
	}

	return true
}

// drain handles all events that have arrived.
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
		a.handleRestored()
	case eventExited:
		if e.run == a.run && a.running() {
			a.handleExit(e.exit)
			a.publish(false)
		}
	case eventLook:
		if _, err := a.look(); err != nil {
			a.log.Warn("cannot look for the process", "err", err)
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
		a.handleBreach(*e.breach)
	case eventHealth:
		a.handleProbe(e.run, e.text, e.skipped)
	case eventWake: // step finds out what is due
	}
}

// handleRestored looks for the process that the agent before this one had, and notes what it missed.
func (a *actor) handleRestored() {
	a.restoring = true
	if _, err := a.look(); err != nil {
		a.message = clipText(err.Error())
	}
	a.restoring, a.presumed = false, Proc{}

	if a.looked {
		before := a.past.Exit
		a.noteMissed()
		a.resumePause(before)
	}
	a.publish(true)
}

// pause waits inside an operation, then handles the events that arrived. It returns early when something arrives or
// ctx ends, so callers must check again.
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

// arm sets the timer for the earliest planned work.
func (a *actor) arm() {
	a.disarm()
	if d, planned := a.untilNext(); planned {
		a.timer = time.AfterFunc(d, func() { a.post(event{kind: eventWake}) })
	}
}

// untilNext returns the time until the earliest planned work. It returns false if nothing is planned.
func (a *actor) untilNext() (d time.Duration, planned bool) {
	earliest := func(left time.Duration) {
		if !planned || left < d {
			d, planned = left, true
		}
	}

	if !a.pullAt.IsZero() {
		earliest(time.Until(a.pullAt))
	}
	if !a.settleAt.IsZero() {
		earliest(time.Until(a.settleAt))
	}
	if !a.clearAt.IsZero() {
		earliest(time.Until(a.clearAt))
	}
	if at, counts := a.steadyAt(); counts {
		earliest(time.Until(at))
	}
	if h := a.health; !h.at.IsZero() && h.probe == nil {
		earliest(time.Until(h.at))
	}
	if h := a.health; !h.restartAt.IsZero() {
		earliest(time.Until(h.restartAt))
	}
	if at, waits := a.overdueAt(); waits {
		earliest(time.Until(at))
	}
	if a.plan != nil && !a.plan.next.IsZero() {
		earliest(a.plan.next.Sub(a.s.now()))
	}

	return d, planned
}

// disarm stops the timer.
func (a *actor) disarm() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}
