package delivery

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/statelock"
)

// Store is the part of the record that delivery needs. Its writes are compare-and-sets; a write that does not fit the
// record changes nothing and is no error.
type Store interface {
	// OpenOf lists the attempts of some agents that are not final.
	OpenOf(ctx context.Context, agents []gozzard.AgentID) ([]gozzard.Attempt, error)

	// Sessions gives the registered sessions of agents. Those without one are left out.
	Sessions(ctx context.Context, agents []gozzard.AgentID) (map[gozzard.AgentID]uint64, error)

	// Dispatch marks attempts as sent in a session: from pending only, and only while that session is the agent's
	// registered one. It returns, for each row, whether it was changed.
	Dispatch(ctx context.Context, rows []Dispatch) ([]bool, error)

	// Settle moves attempts to the state of each row if their present state is among its Sources, is From, and their
	// session is FromSession, where those are not 0. It returns, for each row, whether it was changed.
	Settle(ctx context.Context, rows []Settlement) ([]bool, error)
}

// Dispatch is a row of Store.Dispatch.
type Dispatch struct {
	Ref      gozzard.AttemptRef
	Agent    gozzard.AgentID
	Session  uint64
	Deadline time.Time
}

// Settlement is a row of Store.Settle.
type Settlement struct {
	Ref         gozzard.AttemptRef
	Op          gozzard.OpID
	Agent       gozzard.AgentID
	Action      gozzard.Action // ActionNone when this server does not know the operation
	Key         gozzard.Key
	App         string // of its task; "" when this server does not know the operation
	To          gozzard.AttemptState
	From        gozzard.AttemptState // 0: any of To's Sources
	FromSession uint64               // 0: any
	Outcome     gozzard.Outcome
	Journal     *gozzard.JournalPos // the agent's journal when it reported
}

// Dispatcher carries commands to agents. It promises nothing: delivery repeats what matters until it is answered.
type Dispatcher interface {
	// Send hands a command to the fabric and does not wait for the agent.
	Send(to gozzard.AgentID, cloud int, cmd *gozzard.Command) error
}

// Options are the parts and settings of an Engine. All are required except Quota and Rand.
type Options struct {
	Store      Store
	Dispatcher Dispatcher
	Log        *slog.Logger
	Now        func() time.Time

	Lease  time.Duration // silence after which an agent is offline
	Slack  time.Duration // on top of a command's own time before an attempt is given up
	Resend time.Duration // the shortest pause between repeats of what an agent has not answered
	Keep   time.Duration // how long results are kept
	Window int           // attempts of all tasks that are sent and not answered, at most
	Quota  int           // attempts of one app without a verdict; 0: no limit

	Rand func() float64 // in [0, 1), spreads repeats; nil: they are not spread

	// Silent is called when the lease of an agent ends. The engine holds its lock: Silent must be quick and must not
	// call the engine.
	Silent func(agent gozzard.AgentID, since time.Time)
	// Recheck is asked about attempts that waited for their agent, before they are dispatched: it gives an outcome for
	// each that may not be executed any more, and nil for the others. It may be nil.
	Recheck func(ctx context.Context, agent gozzard.AgentID, list []Waited) ([]*gozzard.Outcome, error)
	// Foreign is called when an agent reports about another agent's operation.
	Foreign func(agent gozzard.AgentID)

	// Shared says that other servers share the record: this one does not have all open attempts.
	Shared bool
	// Apps reads which apps the tasks of attempts belong to.
	Apps func(ctx context.Context, list []gozzard.Attempt) (map[gozzard.TaskSeq]string, error)
}

// Waited is an attempt that waited for its agent.
type Waited struct {
	Ref     gozzard.AttemptRef
	Action  gozzard.Action
	Key     gozzard.Key
	Account string // under which its commands run; "" is that of Spec
	Spec    []byte
}

// Engine delivers attempts: it holds the queue and carries out what the queue asks for.
type Engine struct {
	o    Options
	seed maphash.Seed

	mu    statelock.Mutex // a panic while it is held ends the program
	queue *queue

	leaseEnds time.Time // no lease ends before

	doubts   map[gozzard.AgentID]bool // agents to look at soon, see Doubt
	releases map[gozzard.AgentID]bool // agents for which something waits that may be dispatched

	// By agent: held while its session is opened, or what waits for it is dispatched, one at a time.
	// So many that the sessions of a fleet that comes back rarely wait for each other.
	agentLocks [4096]sync.Mutex

	wake     chan struct{} // the sender
	released chan struct{} // wakes the release loop
	later    later         // what the timer asked for
	verdicts *verdicts     // on their way into the record
	quit     chan struct{} // closed when Run ends
}

// New makes an engine without attempts.
func New(o Options) *Engine {
	if o.Rand == nil {
		o.Rand = func() float64 { return 0 }
	}
	return &Engine{
		o: o, seed: maphash.MakeSeed(), wake: make(chan struct{}, 1), verdicts: newVerdicts(),
		quit: make(chan struct{}), doubts: map[gozzard.AgentID]bool{}, releases: map[gozzard.AgentID]bool{},
		released: make(chan struct{}, 1), later: later{wake: make(chan struct{}, 1)},
		queue: newQueue(limits{resend: o.Resend, keep: o.Keep, window: o.Window, random: o.Rand}),
	}
}

// Run sends, repeats, times out and records verdicts until ctx ends. It runs once.
func (e *Engine) Run(ctx context.Context) {
	context.AfterFunc(ctx, func() { close(e.quit) })
	var wg sync.WaitGroup
	settle := func(kind laneKind) func(context.Context) {
		return func(ctx context.Context) { e.settleLoop(ctx, kind) }
	}
	for _, loop := range []func(context.Context){e.sendLoop, e.timerLoop, e.recordLoop, e.releaseLoop, e.lookLoop, settle(laneMany),
		settle(laneFew)} {
		wg.Go(func() { loop(ctx) })
	}
	wg.Wait()
}

// Restore takes up attempts that an earlier run of the server, or another server, left open, if this server does not have
// them. Nothing is sent before their agents say HELLO; what does not come back in time is given up. apps has the app of
// each task.
func (e *Engine) Restore(open []gozzard.Attempt, apps map[gozzard.TaskSeq]string) {
	e.change(func(now time.Time) {
		for i := range open {
			if a := &open[i]; e.queue.attempts[a.Op] == nil {
				e.add(a, apps[a.Ref.Task], 0, now)
			}
		}
	})
}

// Admit rejects a call of an app that has so much waiting that the attempts of the call would miss their deadlines. If it
// does not, the n attempts of the call wait too, until Leave: of calls that come together each one sees those before it.
// The queue is the one before the call.
func (e *Engine) Admit(app string, n int) (Queue, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.queue.backlog.admit(app, n)
}

// Leave undoes Admit for a call that was rejected for another reason, or whose attempts are counted by Reserve.
func (e *Engine) Leave(app string, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue.backlog.expect(app, -n)
}

// Queue is how long attempts of an app wait for their turn.
func (e *Engine) Queue(app string) Queue {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.queue.backlog.of(app)
}

// Reserve counts attempts for an app before their task is accepted. They are released one by one as attempts get
// their verdicts, or with Unreserve.
func (e *Engine) Reserve(app string, attempts int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.queue.quotas.reserve(app, attempts, e.o.Quota); err != nil {
		return err
	}
	e.queue.backlog.expect(app, attempts)
	return nil
}

// Unreserve undoes Reserve for a task that was not accepted.
func (e *Engine) Unreserve(app string, attempts int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue.quotas.release(app, attempts)
	e.queue.backlog.expect(app, -attempts)
}

// Launch takes up the open attempts of an accepted task. Tasks must be launched in the order of their numbers.
func (e *Engine) Launch(app string, attempts []gozzard.Attempt) {
	e.change(func(now time.Time) {
		for i := range attempts {
			a := &attempts[i]
			if a.State.Final() {
				continue
			}
			e.queue.backlog.expect(app, -1) // of Reserve
			switch {
			case e.queue.attempts[a.Op] != nil: // found in the record before, and counted
				e.queue.quotas.release(app, 1)
			case a.State == gozzard.AttemptPending:
				e.queue.add(a, app, AddedPending, now)
			case a.State == gozzard.AttemptDispatched:
				e.queue.add(a, app, AddedDispatched, now)
			}
		}
	})
}

// Await blocks until a task has no open attempt, or ctx ends.
func (e *Engine) Await(ctx context.Context, seq gozzard.TaskSeq) {
	e.mu.Lock()
	t := e.queue.tasks[seq]
	e.mu.Unlock()
	if t == nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-t.done:
	}
}

// BusyKeys are the processes of an agent that open operations are about.
func (e *Engine) BusyKeys(id gozzard.AgentID) map[gozzard.Key]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	busy := map[gozzard.Key]bool{}
	if g := e.queue.agents[id]; g != nil {
		for _, a := range g.attempts {
			if !a.op.Action.ReadOnly() {
				busy[a.op.Key] = true
			}
		}
	}
	return busy
}

// Budget is the time that an attempt may stay dispatched.
func (e *Engine) Budget(a gozzard.Action, spec *gozzard.Spec) time.Duration {
	if spec == nil {
		spec = &gozzard.Spec{Policy: gozzard.DefaultPolicy()}
	}
	return spec.Budget(a) + e.o.Slack
}

// BudgetOf is Budget with an encoded definition, which may be empty.
func (e *Engine) BudgetOf(a gozzard.Action, encoded []byte) time.Duration {
	if len(encoded) == 0 {
		return e.Budget(a, nil)
	}
	spec, err := gozzard.DecodeSpec(encoded)
	if err != nil { // this server wrote it; the agent will reject it with a reason
		return e.o.Slack
	}
	return e.Budget(a, spec)
}

// change runs f with the lock held and wakes the sender when there is something to send. It returns the work that
// transitions asked for, to be carried out without the lock.
func (e *Engine) change(f func(now time.Time)) work {
	w, sendable := e.changeLocked(e.o.Now(), f)

	for _, m := range w.mistakes {
		e.o.Log.Error("an attempt got an event that its state excludes", "agent", m.attempt.agent.id,
			"op", m.attempt.op.ID, "state", m.state.String(), "event", m.event.String())
	}

	if sendable {
		signal(e.wake)
	}
	return w
}

// changeLocked is the part of change that holds the lock.
func (e *Engine) changeLocked(now time.Time, f func(now time.Time)) (w work, sendable bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(now)
	return e.queue.drainWork(), e.queue.sendable()
}
