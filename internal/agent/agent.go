package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/history"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/pace"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Link carries reports to the server. It promises nothing about delivery: the agent repeats what matters until the
// server has acknowledged it. Send does not wait for the server and is safe for concurrent use. An error means that
// the report was not sent. The agent does not change a report afterwards.
type Link interface {
	Send(*gozzard.Report) error
}

// Policy is what the owner of the host allows. Callers see its errors: one line that names the setting and its file.
type Policy interface {
	Action(gozzard.Action) error // reports whether an action is allowed
	// Definition reports whether a process with this definition is allowed in a namespace.
	Definition(namespace string, s *gozzard.Spec) error
	Processes(n int) error // reports whether so many processes are allowed
	// File reports whether a file of an account may be written or read for a namespace.
	File(namespace, account, path string, size int64) error
	// Script reports whether a script may run as an account for a namespace.
	Script(namespace, account string, s *gozzard.ScriptSpec) error
	// DefaultAccount is the account of definitions that name none, or "": then they do not run. KeptAccount is the form of
	// it that the record of a process keeps.
	DefaultAccount() string
	KeptAccount() string
	// FormerAccount is what earlier versions meant by a definition without an account.
	FormerAccount() string
}

// Options of an agent. Dir and Host are required.
type Options struct {
	Dir  string           // the state folder: journal and identity
	Info gozzard.HostInfo // if Agent is empty, the agent makes an id at its first start and stores it in Dir
	Host supervise.Host

	// Policy is asked before an operation takes effect, and before supervision acts on a process without a request.
	// Nil allows everything.
	Policy Policy

	// IsRoot reports whether an account of this host may do everything, whatever its name is. nil: only names count.
	IsRoot func(account string) bool

	Heartbeat   time.Duration // at most between two heartbeats that are answered; the default is 10 s
	Lease       time.Duration // the default is 15 s
	Interval    time.Duration // between full reports until a Welcome changes it; the default is 30 s
	SampleEvery time.Duration // between two measurements of resource usage

	Now  func() time.Time
	Rand func() float64 // in [0, 1); safe for concurrent use
	Log  *slog.Logger

	// Fatal is called when the journal cannot be trusted any more. The program must exit then. Run returns the error
	// in any case.
	Fatal func(error)

	// Acted is called with the result of every operation that changes something, when the result is durable. It may
	// be nil.
	Acted func(Act)

	// Files are the files of the host. If it is nil, the agent rejects operations on files.
	Files Files

	// Update handles an order of the server to run another release. It does not wait and returns the progress. If it
	// is nil, the agent rejects such orders.
	Update func(gozzard.UpdateOrder) gozzard.UpdateReport

	// Restart restarts the agent for an operation. If it is nil, the agent rejects such operations.
	Restart Restarter

	// Welcomed is called for every session that the server opens. It may be nil.
	Welcomed func()

	// Servers is called with the servers that this agent may use, whenever the server of the session names them. It may be
	// nil.
	Servers func([]gozzard.ServerAddress)

	// Trial says that the previous program may have to take over again: the journal keeps a form that it can read until
	// the server has opened a session.
	Trial bool

	// History keeps what is measured of processes. The agent closes it. If it is nil, nothing is kept.
	History *history.Store

	// Usage measures the load average of the last minute in thousandths and the memory that programs could still get, for
	// each heartbeat. It must not wait for anything. If it is nil, nothing is measured.
	Usage func() (load, memFree int64)

	// PolicyDigest identifies the policy of the host as it is now. It may be nil.
	PolicyDigest func() string

	// Described is called with the digest of the policy that a server has been sent. It may be nil.
	Described func(policyDigest string)

	// PolicyFault is why the policy file of the host is not in effect, nil if it is. It may be nil.
	PolicyFault func() error

	// Failpoint is nil in production. It is called when an operation passes "intent", "after-intent", "after-effect"
	// and "after-done", for crash tests.
	Failpoint func(name string)

	// Sync is nil in production. Tests of slow and failing disks replace the fdatasync of the journal with it.
	Sync func(*os.File) error

	// Simulated is for fleets in one process: no fdatasync and no reserve of disk space.
	Simulated bool
}

// Agent carries out the operations of one server and reports to it.
type Agent struct {
	o        Options
	info     gozzard.HostInfo
	log      *slog.Logger
	journal  *journal.Journal
	sup      *supervise.Supervisor
	run      uint64 // a random number that identifies this run of the agent
	contact  contact
	wakeLoop chan struct{} // capacity 1: the loop must check what is due
	beatNow  chan struct{} // capacity 1: a heartbeat must be sent at once
	failed   chan error    // capacity 1: the journal is broken
	ended    chan struct{} // closed when Run ends: nothing may wait for the loop any more

	inMu    sync.Mutex
	inbox   []*gozzard.Command
	dropped int // commands that did not fit into inbox

	// mu is held while records are written. It is not held while they are synced (except by a compaction) or while
	// reports are sent.
	mu         sync.Mutex
	state      *state
	trial      bool                        // nothing may be written that the previous program cannot read
	queuedGens map[gozzard.Key]uint64      // the newest generation that is queued and has not begun
	newProcs   map[gozzard.Key]struct{}    // begun but not managed yet; they count as processes of the host
	tombstones map[gozzard.OpID]*operation // the acknowledged tombstones of this session
	toSend     []*operation                // results for the next report
	acks       pace.Estimate               // how long the server takes to acknowledge verdicts
	restarting bool                        // no operation is accepted any more
	announced  [16]byte                    // the journal id with which the newest session was opened
	unsaved    []unsaved                   // ends of operations that found no room on the disk

	statusMu sync.Mutex
	changed  map[gozzard.Key]struct{} // processes that changed since the last report
	since    time.Time                // when the first of them changed

	eventMu       sync.Mutex
	lastSeq       uint64          // the number of the last event
	newEvents     []gozzard.Event // numbered, not in the journal yet
	droppedEvents int             // events that did not fit into newEvents

	logQueries     chan *gozzard.LogQuery
	historyQueries chan *gozzard.HistoryQuery
	fileQueries    chan *gozzard.FileQuery
	contentQueries chan gozzard.ContentQuery
	fetches        fetches
	files          fileQueue
	scripts        scriptQueue
	restarts       restartQueue

	faultMu sync.Mutex
	fault   string // why the state folder cannot be written; "" if it can

	plan agenda // used by the loop only
}

// New opens the state folder and reads what is in it. The agent does nothing before Run. If Run is never called, the
// caller must call Close.
func New(o Options) (*Agent, error) {
	if o.Host == nil {
		return nil, errors.New("cannot make an agent without a host")
	}

	o.fill()
	a := &Agent{
		o: o, run: rand.Uint64(), info: o.Info, log: o.Log, trial: o.Trial,
		contact:    contact{lease: o.Lease, heartbeat: o.Heartbeat},
		wakeLoop:   make(chan struct{}, 1),
		beatNow:    make(chan struct{}, 1),
		failed:     make(chan error, 1),
		ended:      make(chan struct{}),
		queuedGens: map[gozzard.Key]uint64{},
		newProcs:   map[gozzard.Key]struct{}{},
		tombstones: map[gozzard.OpID]*operation{},
		changed:    map[gozzard.Key]struct{}{},
		logQueries: make(chan *gozzard.LogQuery, maxLogQueries),

		historyQueries: make(chan *gozzard.HistoryQuery, maxHistoryQueries),
		fileQueries:    make(chan *gozzard.FileQuery, maxFileQueries),
		contentQueries: make(chan gozzard.ContentQuery, fileWorkers),
		restarts:       restartQueue{turn: make(chan struct{}, 1)},
	}

	// Restore the state from the journal.
	jo := journal.Options{Fatal: a.fatal, Unable: a.wake, Log: o.Log, Now: o.Now, Sync: o.Sync, KeepVersion: o.Trial}
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

	// Hand the processes over to the supervisor.
	so := supervise.Options{
		Host: o.Host, SampleEvery: o.SampleEvery, Now: o.Now, Rand: o.Rand, Log: o.Log,
		Changed: func(st gozzard.Status) { a.markChanged(st.Key) },
		Removed: a.removed,
		Event:   a.addEvent,
		Held:    a.recordHeld,
		Past:    a.recordPast,
		Boot:    bootOf(o.Info),
	}
	if o.History != nil {
		so.Measured = a.keepMeasured
		o.History.Keep(slices.Collect(maps.Keys(a.state.procs)))
	}
	if o.Policy != nil {
		so.Former = o.Policy.FormerAccount()
		so.Permit = func(k gozzard.Key, s *gozzard.Spec) error { return o.Policy.Definition(k.Namespace, s) }
	}
	a.sup = supervise.New(so)
	a.sup.SetGroups(slices.Clone(a.state.groups))
	a.state.forgetUnmanaged(o.Info.BootID, o.Host.Alive)
	a.sup.Remember(a.state.pasts)
	a.sup.Restore(a.state.records(), maps.Clone(a.state.held))
	return a, nil
}

// bootOf is the id of this boot, "" where every boot has the same id.
func bootOf(info gozzard.HostInfo) string {
	if info.OS == "windows" {
		return ""
	}
	return info.BootID
}

// fill sets the defaults.
func (o *Options) fill() {
	if o.Heartbeat <= 0 {
		o.Heartbeat = 10 * time.Second
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

// recover restores the state from the journal: the agent's id, what it knows, and the operations that were in progress
// when the agent died.
func (a *Agent) recover(records []journal.Record) error {
	// Read the records.
	var err error
	if a.state, err = replay(records); err != nil {
		return err
	}

	// Find out which agent this is.
	id, err := establishID(a.o.Dir, a.journal, a.o.Info.Agent, a.state.agent)
	if err != nil {
		return err
	}
	a.info.Agent = id
	a.log = a.log.With("agent", string(id))

	// Remember the position of the journal before anything is written.
	if a.state.welcomed || a.state.session == 0 {
		a.state.base, a.state.welcomed = a.journal.Synced(), false
	}

	// End the commands that the agent left running: what they do later would contradict the verdicts.
	left := a.endCommands()

	// Mark the operations that were in progress. If there is no room for the record, the next start does it again.
	for _, op := range a.state.ops {
		phase := gozzard.OnRecovery(op.phase)
		if phase == op.phase {
			continue
		}
		if message := a.recoverMessage(op); message != "" {
			if err := a.recoverDone(op, message); err != nil {
				return err
			}
			continue
		}
		e := entry{Op: op.entry(), Outcome: &gozzard.Outcome{
			Code: gozzard.CodeInterrupted, Message: interruptedMessage(left[op.id]),
		}}
		lsn, err := a.journal.Write(true, e.encode(recordInterrupted))
		if err != nil && !errors.Is(err, journal.ErrNoSpace) {
			return err
		}
		a.state.apply(recordInterrupted, &e, lsn)
		if err := a.keepStopped(op); err != nil {
			return err
		}
		a.log.Warn("operation was interrupted",
			"op", op.id, "ns", op.key.Namespace, "proc", op.key.Name, "action", op.action)
	}

	return nil
}

// recoverMessage is what is known about an operation in progress that was carried out although the agent died; "" if that is
// not known.
func (a *Agent) recoverMessage(op *operation) string {
	switch {
	case op.action.OnAgent(): // this run of the agent is its effect
		return a.restarted()
	case a.recoverFile(op):
		return "the agent ended in the middle of the operation, and the file is as it must be"
	}
	return ""
}

// recoverDone records that an operation was carried out although the agent died before it could record that.
func (a *Agent) recoverDone(op *operation, message string) error {
	e := entry{Op: op.entry(), Outcome: &gozzard.Outcome{Code: gozzard.CodeOK, Message: message}}
	lsn, err := a.journal.Write(true, e.encode(recordDone))
	if err != nil && !errors.Is(err, journal.ErrNoSpace) {
		return err
	}
	a.state.apply(recordDone, &e, lsn)
	a.log.Info("operation was carried out before the agent ended", "op", op.id, "ns", op.key.Namespace, "name", op.key.Name,
		"action", op.action)
	return nil
}

// ID returns the agent's id, which never changes.
func (a *Agent) ID() gozzard.AgentID { return a.info.Agent }

// Processes counts the managed processes.
func (a *Agent) Processes() int { return a.sup.Len() }

// Run supervises, operates and reports until ctx ends. Then it waits for its goroutines and releases the state folder.
// The processes keep running. Run can be called once.
func (a *Agent) Run(ctx context.Context, link Link) error {
	// Start the supervisor, the heartbeats, and the readers of logs and histories.
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var supErr error
	wg.Go(func() {
		supErr = a.sup.Run(ctx)
		cancel()
	})
	wg.Go(func() { a.sendHeartbeats(ctx, link) })
	wg.Go(func() { a.answerLogs(ctx, link) })
	if a.o.Files != nil {
		wg.Go(func() { a.answerFiles(ctx, link) })
		wg.Go(func() { a.askContents(ctx, link) })
	}
	if a.o.History != nil {
		wg.Go(func() { a.o.History.Run(ctx) })
		wg.Go(func() { a.answerHistory(ctx, link) })
	}

	// Work until ctx ends, then save the last events of the supervisor.
	err := a.loop(ctx, link)
	cancel()
	close(a.ended)
	wg.Wait()
	a.files.done.Wait()
	a.scripts.done.Wait()
	a.restarts.done.Wait()
	a.saveEvents()
	return errors.Join(err, supErr, a.Close())
}

// Close releases the state folder. Run calls it when it ends.
func (a *Agent) Close() (err error) {
	if a.o.History != nil {
		err = a.o.History.Close()
	}
	if e := a.journal.Close(); e != nil {
		return errors.Join(err, fmt.Errorf("cannot close the journal: %w", e))
	}
	return err
}

// fatal is called by the journal, once, while the journal holds its lock.
func (a *Agent) fatal(err error) {
	a.failed <- err // has room: fatal is called once
	a.o.Fatal(err)
}

// wake makes the loop check what is due.
func (a *Agent) wake() { signal(a.wakeLoop) }

// signal puts one element into a channel of capacity 1, unless there is one already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// recordHeld stores which process belongs to a definition. It is not synced: the record survives the agent, and after a
// crash of the machine no process of it runs any more. Without room on the disk the identity is known to this run of the
// agent only.
func (a *Agent) recordHeld(key gozzard.Key, held supervise.Held) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.trial {
		a.state.held[key] = held
		return
	}
	e := entry{Key: &key, Held: &held}
	if _, err := a.keep(false, recordHeld, &e); err != nil {
		a.state.held[key] = held
		a.log.Warn("cannot record which process it is", "ns", key.Namespace, "proc", key.Name, "err", err)
	}
}

// recordPast stores how earlier runs of a process ended. It is not synced, as in recordHeld.
func (a *Agent) recordPast(key gozzard.Key, past supervise.Past) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.trial {
		a.state.pasts[key] = past
		return
	}
	held := a.state.held[key]
	if _, err := a.keep(false, recordHeld, &entry{Key: &key, Held: &held, Past: &past}); err != nil {
		a.state.pasts[key] = past
		a.log.Warn("cannot record how the process ended", "ns", key.Namespace, "proc", key.Name, "err", err)
	}
}

// endTrial writes what had to wait for the end of the trial.
func (a *Agent) endTrial() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.trial {
		return
	}
	if err := a.journal.RaiseVersion(); err != nil { // it is tried again with the next session
		a.log.Error("cannot raise the version of the journal", "err", err)
		return
	}

	a.trial = false
	var held []entry // collected first, because write changes the maps
	a.state.eachHeld(func(e entry) { held = append(held, e) })
	for i := range held {
		if _, err := a.write(false, recordHeld, &held[i]); err != nil {
			key := held[i].Key
			a.log.Warn("cannot record which process it is", "ns", key.Namespace, "proc", key.Name, "err", err)
		}
	}
}

// write adds a record to the journal and applies it to the state. The record is durable when the journal is synced up
// to the returned LSN. The caller holds a.mu.
func (a *Agent) write(vital bool, t journal.Type, e *entry) (uint64, error) {
	lsn, err := a.journal.Write(vital, e.encode(t))
	if err != nil {
		return 0, err
	}
	a.state.apply(t, e, lsn)
	return lsn, nil
}

// writeEnding is write for the intent of an action that ends something.
func (a *Agent) writeEnding(_ bool, t journal.Type, e *entry) (uint64, error) {
	lsn, err := a.journal.WriteEnding(e.encode(t))
	if err != nil {
		return 0, err
	}
	a.state.apply(t, e, lsn)
	return lsn, nil
}
