package supervise

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	defaultSampleEvery = 10 * time.Second
	freshSampleAfter   = 300 * time.Millisecond // a new process has opened its files by then
	// version commands at a time: a restarted agent has one for every process it finds
	maxProbes  = 8
	maxHealths = 16 // health commands at a time
)

// Options are what a Supervisor is built from.
type Options struct {
	Host Host

	// Changed tells a visible change (state, pid, flags, message, version, labels), a noticeable change of usage,
	// and every process once after Restore. It must not block. Calls about one process come one after the other.
	Changed func(gozzard.Status)
	Removed func(gozzard.Key) // no longer managed

	// Event tells of something that happened to a process, in order for one process; numbering and keeping is the
	// agent's. It must not block.
	Event func(gozzard.Event)

	// Permit judges a definition before anything is done for it that nobody asks for: pull-ups, planned runs,
	// restarts of the unhealthy, acts on limits and probes. What operations ask for is judged by who passes them
	// on. Nil: everything is permitted.
	Permit func(*gozzard.Spec) error

	SampleEvery time.Duration // default 10 s, all processes in one Host.Sample pass

	// of times that are shown; waiting goes by the monotonic clock, so a clock that jumps delays nothing
	Now  func() time.Time
	Rand func() float64 // jitter
	Log  *slog.Logger
}

// Supervisor keeps the processes of one host.
type Supervisor struct {
	host        Host
	changed     func(gozzard.Status)
	removed     func(gozzard.Key)
	event       func(gozzard.Event) // may be nil
	permit      func(*gozzard.Spec) error
	sampleEvery time.Duration
	now         func() time.Time
	rand        func() float64
	log         *slog.Logger

	wake     chan struct{} // capacity 1: there is something in ready
	probes   chan struct{} // slots of version commands
	healths  chan struct{} // slots of health commands
	pulls    chan struct{} // slots of pull-ups
	sampling atomic.Bool
	regular  measuring // belongs to the pass that set sampling

	poolMu sync.Mutex // before mu
	pools  []pool

	mu     sync.Mutex // before actor.mu
	actors map[gozzard.Key]*actor
	ready  []func(context.Context) // what Run has yet to start
	fresh  []*actor                // began to run since the last sample
	ran    bool
	closed bool
}

// New builds a Supervisor; nothing happens before Run.
func New(o Options) *Supervisor {
	s := &Supervisor{
		host: o.Host, changed: o.Changed, removed: o.Removed, event: o.Event, permit: o.Permit,
		sampleEvery: o.SampleEvery, now: o.Now, rand: o.Rand, log: o.Log,
		wake: make(chan struct{}, 1), probes: make(chan struct{}, maxProbes), healths: make(chan struct{}, maxHealths),
		pulls: make(chan struct{}, maxPullUps), actors: make(map[gozzard.Key]*actor),
	}
	if s.changed == nil {
		s.changed = func(gozzard.Status) {}
	}
	if s.removed == nil {
		s.removed = func(gozzard.Key) {}
	}
	if s.permit == nil {
		s.permit = func(*gozzard.Spec) error { return nil }
	}
	if s.sampleEvery <= 0 {
		s.sampleEvery = defaultSampleEvery
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.rand == nil {
		s.rand = rand.Float64
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}

	return s
}

// Restore takes over what the journal has, before Run. What runs is found and watched, what is hosted and does not
// run is pulled up.
func (s *Supervisor) Restore(recs []Record) {
	for _, rec := range recs {
		a := s.actor(rec.Key)
		if a == nil {
			a = newActor(s, rec.Key)
			s.mu.Lock()
			s.actors[rec.Key] = a
			s.mu.Unlock()
			a.post(event{kind: eventRestored})
		}
		a.restore(rec) // of several with one key the last counts
	}
}

// Run supervises until ctx ends, then waits for its goroutines and lets go of the processes without touching them:
// a command in flight is given up, not killed.
func (s *Supervisor) Run(ctx context.Context) error {
	s.mu.Lock()
	again := s.ran
	s.ran = true
	s.mu.Unlock()

	if again {
		return errors.New("cannot run a supervisor twice")
	}

	var wg sync.WaitGroup
	tick := time.NewTicker(s.sampleEvery)
	defer tick.Stop()

	for {
		for _, f := range s.take() {
			wg.Go(func() { s.guard("work", func() { f(ctx) }) })
		}
		select {
		case <-s.wake:
		case <-tick.C:
			s.spawn(s.pass)
		case <-ctx.Done():
			s.close()
			wg.Wait()
			s.letGo()
			return nil
		}
	}
}

// Apply takes in an operation. It never blocks; operations on one process happen in the order of calls, queries at
// once.
func (s *Supervisor) Apply(op Op) {
	op.Labels = maps.Clone(op.Labels)
	op.Spec = slices.Clone(op.Spec)
	if op.Action == gozzard.ActionQuery {
		s.spawn(func(context.Context) { s.query(op) })
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.actors[op.Key]
	if a == nil {
		a = newActor(s, op.Key)
		s.actors[op.Key] = a
	}

	if a.enqueue(op) {
		s.spawnLocked(a.work)
	}
}

// Status tells of one process; false when it is not managed.
func (s *Supervisor) Status(key gozzard.Key) (gozzard.Status, bool) {
	a := s.actor(key)
	if a == nil {
		return gozzard.Status{}, false
	}
	return a.statusNow(s.now())
}

// Definition is how a process is defined now; nil when it is not managed or its definition cannot be read. It must
// not be changed.
func (s *Supervisor) Definition(key gozzard.Key) *gozzard.Spec {
	a := s.actor(key)
	if a == nil {
		return nil
	}
	v := a.snapshot()
	if !v.known {
		return nil
	}
	return v.spec
}

// Statuses tells of all processes, sorted by key. The labels are shared and must not be changed.
func (s *Supervisor) Statuses() []gozzard.Status {
	now := s.now()
	all := s.all()
	out := make([]gozzard.Status, 0, len(all))
	for _, a := range all {
		if st, known := a.statusNow(now); known {
			out = append(out, st)
		}
	}
	slices.SortFunc(out, func(x, y gozzard.Status) int { return x.Key.Compare(y.Key) })
	return out
}

// Len counts the managed processes.
func (s *Supervisor) Len() int {
	n := 0
	for _, a := range s.all() {
		if a.snapshot().known {
			n++
		}
	}
	return n
}

func (s *Supervisor) actor(key gozzard.Key) *actor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.actors[key]
}

func (s *Supervisor) all() []*actor { return s.list(nil) }

// list appends all actors.
func (s *Supervisor) list(to []*actor) []*actor {
	s.mu.Lock()
	defer s.mu.Unlock()
	to = slices.Grow(to, len(s.actors))
	for _, a := range s.actors {
		to = append(to, a)
	}
	return to
}

// spawn has Run start f on a goroutine of its own. Run waits for it; after Run's context ended nothing is started
// any more.
func (s *Supervisor) spawn(f func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spawnLocked(f)
}

func (s *Supervisor) spawnLocked(f func(context.Context)) {
	if s.closed {
		return
	}
	s.ready = append(s.ready, f)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Supervisor) take() []func(context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fs := s.ready
	s.ready = nil
	return fs
}

func (s *Supervisor) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.ready = nil
}

// letGo ends watches and timers. No actor works any more.
func (s *Supervisor) letGo() {
	for _, a := range s.all() {
		a.disarm()
		a.unwatch()
	}
}

// guard runs f and survives its panic: one broken process must not take the others' supervision away. It reports
// whether f came to its end.
func (s *Supervisor) guard(what any, f func()) (ended bool) {
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("panic in supervision", "in", what, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	f()
	return true
}
