package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Link carries reports to the server. Nothing is promised about delivery: the agent repeats what matters until it
// is acknowledged. Send does not wait for the server and is safe for concurrent use; an error says that the report
// did not leave. The report is not changed afterwards.
type Link interface {
	Send(*gozzard.Report) error
}

// Policy is what the host's owner lets the server do. Its errors are what callers are told: one line that says
// where it is written.
type Policy interface {
	Action(gozzard.Action) error    // may that be asked for
	Definition(*gozzard.Spec) error // may a process be run like that
	Processes(n int) error          // may so many be kept
}

// Options of an agent. Dir and Host are required.
type Options struct {
	Dir  string           // state folder: journal and identity
	Info gozzard.HostInfo // Agent may be empty: then the id is made at the first start and kept in Dir
	Host supervise.Host

	// Policy is asked before an operation takes effect, and before anything is done for a process that nobody asks
	// for. Nil allows everything.
	Policy Policy

	Heartbeat   time.Duration // default 5 s
	Lease       time.Duration // default 15 s
	Interval    time.Duration // of full reports until a Welcome says otherwise, default 30 s
	SampleEvery time.Duration // of resource usage

	Now  func() time.Time
	Rand func() float64 // in [0, 1); safe for concurrent use
	Log  *slog.Logger

	// Fatal is called when the journal cannot be trusted any more; the program is expected to exit. Run ends with
	// the error in any case.
	Fatal func(error)

	// Acted is told what came of every operation that changes something, when it is durable. It may be nil.
	Acted func(Act)

	// Update takes an order of the server to become a release and says how far that is, without waiting. Nil refuses.
	Update func(gozzard.UpdateOrder) gozzard.UpdateReport

	// Welcomed is told of every session that the server opens. It may be nil.
	Welcomed func()

	// Failpoint is nil in production. Crash tests are told when an operation passes "intent", "after-intent",
	// "after-effect" and "after-done".
	Failpoint func(name string)

	// Sync is nil in production. Tests of slow and failing disks put their fdatasync of the journal here.
	Sync func(*os.File) error

	// Simulated is for fleets in one process: no fdatasync and no reserve of disk space.
	Simulated bool
}

// Agent obeys one server and reports to it.
type Agent struct {
	o       Options
	info    gozzard.HostInfo
	log     *slog.Logger
	journal *journal.Journal
	sup     *supervise.Supervisor
	run     uint64 // random: which run of the agent this is
	contact contact
	kick    chan struct{} // capacity 1: there is something for the loop
	beatNow chan struct{} // capacity 1: a heartbeat is wanted at once
	failed  chan error    // capacity 1: the journal is broken

	inMu    sync.Mutex
	inbox   []*gozzard.Command
	dropped int // commands since the last look

	// of what follows; held while records are written, not while they are synced (compaction apart) or reports are sent
	mu      sync.Mutex
	state   *state
	taken   map[gozzard.Key]uint64      // newest generation admitted and not yet begun
	coming  map[gozzard.Key]struct{}    // begun and not managed yet: they count as processes of the host
	buried  map[gozzard.OpID]*operation // acknowledged tombstones of this session
	fresh   []*operation                // to be told next
	unsaved []unsaved                   // ends of operations that found no room

	statusMu sync.Mutex
	changed  map[gozzard.Key]struct{} // since the last report
	since    time.Time                // of the first of them

	eventMu sync.Mutex
	lastSeq uint64          // given to an event
	news    []gozzard.Event // numbered, not in the journal yet
	missed  int             // events that found no room in news

	questions chan *gozzard.LogQuery // for logs

	plan agenda // of the loop only
}

// unsaved is an end that could not be written. The operation stays begun until it is: after a crash it is
// INTERRUPTED, which is true.
type unsaved struct {
	op  *operation
	end entry
}

// New opens the state folder and takes over what is in it; nothing happens before Run. Without Run the agent must
// be closed.
func New(o Options) (*Agent, error) {
	if o.Host == nil {
		return nil, errors.New("cannot make an agent without a host")
	}

	o.fill()
	a := &Agent{
		o: o, run: rand.Uint64(), info: o.Info, log: o.Log, kick: make(chan struct{}, 1),
		beatNow: make(chan struct{}, 1), failed: make(chan error, 1), contact: contact{lease: o.Lease},
		taken: map[gozzard.Key]uint64{}, coming: map[gozzard.Key]struct{}{}, buried: map[gozzard.OpID]*operation{},
		changed:   map[gozzard.Key]struct{}{},
		questions: make(chan *gozzard.LogQuery, maxQuestions),
	}
	jo := journal.Options{Fatal: a.fatal, Log: o.Log, Now: o.Now, Sync: o.Sync}

	if o.Simulated {
		jo.NoSync, jo.Reserve = true, -1
	}

	j, records, err := journal.Open(o.Dir, jo)
	if err != nil {
		return nil, err
	}

	a.journal = j
	if err := a.recover(records); err != nil {
		return nil, errors.Join(err, j.Close())
	}

	a.lastSeq = a.state.events.last()
	so := supervise.Options{
		Host: o.Host, Changed: func(st gozzard.Status) { a.mark(st.Key) }, Removed: a.mark, Event: a.note,
		SampleEvery: o.SampleEvery, Now: o.Now, Rand: o.Rand, Log: o.Log,
	}

	if o.Policy != nil {
		so.Permit = o.Policy.Definition
	}

	a.sup = supervise.New(so)
	a.sup.SetGroups(slices.Clone(a.state.groups))
	a.sup.Restore(a.state.records())
	return a, nil
}

func (o *Options) fill() {
	if o.Heartbeat <= 0 {
		o.Heartbeat = 5 * time.Second
	}
	if o.Lease <= 0 {
		o.Lease = 15 * time.Second
	}
	if o.Interval <= 0 {
		o.Interval = 30 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Fatal == nil {
		o.Fatal = func(error) {}
	}
	if o.Failpoint == nil {
		o.Failpoint = func(string) {}
	}
}

// recover takes over the journal: who the agent is, what it knows, and what was in the middle when it died.
func (a *Agent) recover(records []journal.Record) error {
	id, err := settleID(a.o.Dir, a.journal, a.o.Info.Agent)
	if err != nil {
		return err
	}

	a.info.Agent = id
	a.log = a.log.With("agent", string(id))
	if a.state, err = replay(records); err != nil {
		return err
	}
	if a.state.welcomed || a.state.session == 0 { // before anything is written: this is where the journal was found
		a.state.base, a.state.welcomed = a.journal.Synced(), false
	}

	for _, op := range a.state.ops {
		phase := gozzard.OnRecovery(op.phase)
		if phase == op.phase {
			continue
		}
		e := entry{Op: op.entry(), Outcome: &gozzard.Outcome{Code: gozzard.CodeInterrupted,
			Message: "the agent ended in the middle of the operation"}}
		lsn, err := a.journal.Write(true, e.encode(recordInterrupted))
		if err != nil && !errors.Is(err, journal.ErrNoSpace) {
			return err
		}
		// Without room it is found again in the same way at the next start.
		a.state.apply(recordInterrupted, &e, lsn)
		a.log.Warn("operation was interrupted", "op", op.id, "ns", op.key.Namespace, "proc", op.key.Name, "action",
			op.action)
	}

	return nil
}

// ID is the agent's name for its whole life.
func (a *Agent) ID() gozzard.AgentID { return a.info.Agent }

// Processes counts what the agent manages.
func (a *Agent) Processes() int { return a.sup.Len() }

// Run supervises, obeys and reports until ctx ends, then waits for its goroutines and gives the state folder free.
// Processes are left alone. It runs once.
func (a *Agent) Run(ctx context.Context, link Link) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var supErr error
	wg.Go(func() {
		supErr = a.sup.Run(ctx)
		cancel()
	})

	wg.Go(func() { a.beats(ctx, link) })
	wg.Go(func() { a.answerLogs(ctx, link) })
	err := a.loop(ctx, link)
	cancel()
	wg.Wait()
	a.saveEvents() // what the supervisor said last
	return errors.Join(err, supErr, a.Close())
}

// Close gives the state folder free. Run does it by itself.
func (a *Agent) Close() error {
	if err := a.journal.Close(); err != nil {
		return fmt.Errorf("cannot close journal: %w", err)
	}
	return nil
}

// fatal is called by the journal, with its lock held.
func (a *Agent) fatal(err error) {
	a.failed <- err // called once
	a.o.Fatal(err)
}

// wake has the loop look what is to be done.
func (a *Agent) wake() { nudge(a.kick) }

// nudge leaves one token in a channel of capacity 1.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// write puts a record into the journal and into the state. It is durable when the journal is synced up to the lsn.
// a.mu is held.
func (a *Agent) write(vital bool, t journal.Type, e *entry) (uint64, error) {
	lsn, err := a.journal.Write(vital, e.encode(t))
	if err != nil {
		return 0, err
	}
	a.state.apply(t, e, lsn)
	return lsn, nil
}
