package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	freshSampleAfter   = 300 * time.Millisecond // by then a new process has opened its files
	freshSampleEvery   = 2 * time.Second        // between two samples of new processes

	maxProbes = 8 // version commands that run at the same time; a restarted agent needs one for every process
)

// Options are what a Supervisor is built from. Only Host is required.
type Options struct {
	// Host is the machine.
	Host Host

	// Changed is called when the status of a process has visibly changed (state, pid, flags, message, version,
	// labels), when its resource usage has noticeably changed, and once for every process after Restore. It must not
	// block. Calls about one process never overlap.
	Changed func(gozzard.Status)

	// Removed is called when a process is no longer managed. It must not block.
	Removed func(gozzard.Key)

	// Held is called when what is on record about a process changes. The agent stores it, so that an agent that starts
	// again knows the process by its identity. It must not block on the disk: after a crash of the machine no identity
	// is valid.
	Held func(gozzard.Key, Held)

	// Past is called when what is on record about earlier runs of a process changes. The agent stores it. It must not
	// block on the disk.
	Past func(gozzard.Key, Past)

	// Event is called for everything that happens to a process, in order for one process and kind. Events of one kind
	// that are too many are merged into one with their number. The agent numbers and stores the events. It must not
	// block.
	Event func(gozzard.Event)

	// Measured is called with what a regular pass measured, one element for each managed process. The list belongs to the
	// supervisor and changes after the call. It must not block. It may be nil.
	Measured func([]Measurement)

	// Permit decides whether the supervisor may act on a definition without a request: pull-ups, planned runs,
	// restarts of unhealthy processes, actions on limits, and probes. Operations are checked by the caller of
	// Apply. Nil permits everything.
	Permit func(gozzard.Key, *gozzard.Spec) error

	// Boot is the id of this boot. Counts that are on record go on only in the same boot. Without it they are not
	// recorded.
	Boot string

	// Former is the account of definitions that name none and that an earlier version recorded. "" means none.
	Former string

	// SampleEvery is the time between two measurements. One pass measures all processes. The default is 10 s.
	SampleEvery time.Duration

	// Now is the clock for times that are shown. Waiting uses the monotonic clock, so a clock that is set causes no
	// delay.
	Now func() time.Time

	// Rand returns random numbers in [0, 1), for jitter.
	Rand func() float64

	Log *slog.Logger
}

// Supervisor looks after the processes of one host.
type Supervisor struct {
	host        Host
	changed     func(gozzard.Status)
	removed     func(gozzard.Key)
	event       func(gozzard.Event) // may be nil
	measured    func([]Measurement) // may be nil
	permit      func(gozzard.Key, *gozzard.Spec) error
	former      string
	boot        string
	sampleEvery time.Duration
	now         func() time.Time
	rand        func() float64
	log         *slog.Logger

	wake     chan struct{} // capacity 1: ready is not empty
	probes   chan struct{} // one element for each version command that runs
	healths  *turns        // places for health commands
	pulls    chan struct{} // one element for each pull-up whose start command runs
	sampling atomic.Bool   // a regular pass is running
	regular  sampleBuffers // owned by the pass that set sampling

	overdueMu     sync.Mutex
	overdueLogged time.Time

	heldChanged func(gozzard.Key, Held)
	pastChanged func(gozzard.Key, Past)
	holdMu      sync.Mutex
	holders     map[Proc]gozzard.Key // the processes that are on record

	order order // what the definitions say in after

	poolMu sync.Mutex // locked before mu
	pools  []pool

	mu      sync.Mutex // locked before actor.mu
	actors  map[gozzard.Key]*actor
	ready   []func(context.Context) // functions that Run must start
	known   map[gozzard.Key]Held    // what is on record about processes that are not managed
	pasts   map[gozzard.Key]Past    // what Remember was given and no actor has taken yet
	fresh   []*actor                // actors whose process started after the last sample
	freshAt time.Time               // of the last sample of new processes
	ran     bool                    // Run was called
	closed  bool                    // Run is ending
}

// New builds a Supervisor. It does nothing before Run.
func New(o Options) *Supervisor {
	s := &Supervisor{
		host: o.Host, changed: o.Changed, removed: o.Removed, event: o.Event, permit: o.Permit, former: o.Former,
		measured: o.Measured,
		boot:     o.Boot, sampleEvery: o.SampleEvery, now: o.Now, rand: o.Rand, log: o.Log,
		wake: make(chan struct{}, 1), probes: make(chan struct{}, maxProbes), healths: newTurns(),
		pulls: make(chan struct{}, maxPullUps), actors: make(map[gozzard.Key]*actor),
		heldChanged: o.Held, holders: make(map[Proc]gozzard.Key), known: make(map[gozzard.Key]Held),
		pastChanged: o.Past, pasts: make(map[gozzard.Key]Past),
	}
	if s.pastChanged == nil {
		s.pastChanged = func(gozzard.Key, Past) {}
	}
	if s.heldChanged == nil {
		s.heldChanged = func(gozzard.Key, Held) {}
	}
	if s.changed == nil {
		s.changed = func(gozzard.Status) {}
	}
	if s.removed == nil {
		s.removed = func(gozzard.Key) {}
	}
	if s.permit == nil {
		s.permit = func(gozzard.Key, *gozzard.Spec) error { return nil }
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

// Restore adds the processes that the journal has, and what is on record about them. It must be called before Run. Run
// then finds and watches the processes that are running, and starts those that are supervised but not running.
func (s *Supervisor) Restore(recs []Record, held map[gozzard.Key]Held) {
	// Claim what is alive before any actor looks, so that no other definition can adopt it. What was unregistered and
	// still runs may be adopted under another name.
	maps.Copy(s.known, held)
	for _, rec := range recs {
		if h, ok := held[rec.Key]; ok && s.host.Alive(h.Proc) {
			s.claim(h.Proc, rec.Key)
		}
	}

	defer clear(s.pasts)
	for _, rec := range recs {
		a := s.actor(rec.Key)
		if a == nil {
			s.mu.Lock()
			a = s.addActor(rec.Key)
			a.past = s.pasts[rec.Key]
			s.mu.Unlock()
			a.post(event{kind: eventRestored})
		}
		a.restore(rec) // if several records have one key, the last one counts
	}
}

// addActor makes the actor of a process. The caller holds mu.
func (s *Supervisor) addActor(key gozzard.Key) *actor {
	a := newActor(s, key)
	a.held = s.known[key]
	delete(s.known, key)
	s.actors[key] = a
	return a
}

// Run supervises until ctx ends. Then it waits for its goroutines. It does not touch the processes: they keep
// running, and so does a command that is still running.
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
		for _, f := range s.claimReady() {
			wg.Go(func() { s.guard("work", func() { f(ctx) }) })
		}
		select {
		case <-s.wake:
		case <-tick.C:
			s.spawn(s.pass)
		case <-ctx.Done():
			s.close()
			wg.Wait()
			s.stopWatching()
			for _, a := range s.all() {
				a.merger.flushAll()
			}
			return nil
		}
	}
}

// Apply queues an operation. It never blocks. Operations on one process are carried out in the order of the calls;
// queries are answered at once.
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
		a = s.addActor(op.Key)
	}

	if a.enqueue(op) {
		s.spawnLocked(a.work)
	}
}

// Status returns the status of one process. It returns false if the process is not managed.
func (s *Supervisor) Status(key gozzard.Key) (gozzard.Status, bool) {
	a := s.actor(key)
	if a == nil {
		return gozzard.Status{}, false
	}
	return a.statusNow(s.now())
}

// Definition returns the present definition of a process. It returns nil if the process is not managed or its
// definition cannot be read. The caller must not change it.
func (s *Supervisor) Definition(key gozzard.Key) *gozzard.Spec {
	a := s.actor(key)
	if a == nil {
		return nil
	}
	v := a.snapshot()
	if !v.managed {
		return nil
	}
	return v.spec
}

// Keeps reports whether an operation that brings a definition leaves the present one as it is, with its account: it does not
// define, and brings the same one. The server adds the definition of its record to most operations.
func (s *Supervisor) Keeps(key gozzard.Key, action gozzard.Action, given []byte) bool {
	a := s.actor(key)
	if a == nil {
		return false
	}
	v := a.snapshot()
	return v.managed && v.spec != nil && keepsDefinition(action, given, v.encoded)
}

// keepsDefinition compares a definition that came with the present one, in the form of this version.
func keepsDefinition(action gozzard.Action, given, present []byte) bool {
	if action == gozzard.ActionRegister || action == gozzard.ActionUpdate {
		return false
	}
	if bytes.Equal(given, present) {
		return true
	}
	a, errA := gozzard.DecodeSpec(given)
	b, errB := gozzard.DecodeSpec(present)
	return errA == nil && errB == nil && bytes.Equal(gozzard.EncodeSpec(a), gozzard.EncodeSpec(b))
}

// Statuses returns the status of all processes, sorted by key. The labels are shared; the caller must not change
// them.
func (s *Supervisor) Statuses() []gozzard.Status {
	now := s.now()
	all := s.all()
	out := make([]gozzard.Status, 0, len(all))
	for _, a := range all {
		if st, managed := a.statusNow(now); managed {
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
		if a.snapshot().managed {
			n++
		}
	}
	return n
}

// CountRunning looks for every managed process and counts those that run. It must be called before Run. What is on record
// from another boot is left out: a program in a container may see another boot id than the agent that wrote it, and what
// the commands of a definition started is found all the same.
func (s *Supervisor) CountRunning() (n int, err error) {
	for _, a := range s.all() {
		if !a.managed || a.spec == nil {
			continue
		}
		q := a.query()
		if s.boot != "" && q.Held.BootID != s.boot {
			q.Held = Held{}
		}
		f, findErr := s.host.Find(q)
		if findErr != nil {
			err = errors.Join(err, fmt.Errorf("cannot look for %s: %w", a.key, findErr))
		}
		if !f.Proc.IsZero() {
			n++
		}
	}
	return n, err
}

func (s *Supervisor) actor(key gozzard.Key) *actor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.actors[key]
}

func (s *Supervisor) all() []*actor { return s.list(nil) }

// list appends all actors to a slice.
func (s *Supervisor) list(to []*actor) []*actor {
	s.mu.Lock()
	defer s.mu.Unlock()
	to = slices.Grow(to, len(s.actors))
	for _, a := range s.actors {
		to = append(to, a)
	}
	return to
}

// spawn makes Run start f in a new goroutine. Run waits for it. After Run's context has ended nothing is started.
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

// claimReady returns the functions that Run must start, and removes them from ready.
func (s *Supervisor) claimReady() []func(context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fs := s.ready
	s.ready = nil
	return fs
}

// close makes spawn ignore everything from now on.
func (s *Supervisor) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.ready = nil
}

// stopWatching ends all watches and timers. It must be called when no actor's goroutine runs any more.
func (s *Supervisor) stopWatching() {
	for _, a := range s.all() {
		a.disarm()
		a.unwatch()
	}
}

// guard runs f and recovers from a panic in it, so that a defect that one process triggers does not end the
// supervision of the others. It reports whether f returned normally.
func (s *Supervisor) guard(what any, f func()) (ended bool) {
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("recovered from a panic", "in", what, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	f()
	return true
}
