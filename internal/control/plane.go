package control

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/pace"
	"github.com/gozzard/gozzard/internal/record"
)

// Plane is the control plane of one server.
type Plane struct {
	businesses // its exported methods are the plane's

	o        Options
	started  time.Time
	delivery *delivery.Engine
	launcher launcher

	registering sync.Mutex // register looks before it writes; see Operate

	limiter   *helloLimiter
	hellos    chan hello
	protocols protocols
	copies    copies
	events    *EventRing
	queue     *eventQueue
	taskFeed  taskFeed
	results   *taskResults
	peers     *peers // nil: the server is alone
	questions questions
	contents  *contents
	restorer  *restorer
	claims    claims

	groupReads groupReads

	eventReads      chan struct{} // has a value for each caller that reads events from the record
	eventsElsewhere chan struct{} // has a value when another server may have recorded events

	forgeries atomic.Uint64 // reports of an agent about another agent's operations

	spreadUntil atomic.Int64  // until when acknowledgements name the servers, in Unix nanoseconds
	downgrades  atomic.Uint64 // HELLOs with an older protocol than before
}

// New makes a Plane over a record: it reads hosts and registered processes into the live index, takes up open
// attempts, and reads the newest events and businesses.
func New(ctx context.Context, o Options) (*Plane, error) {
	o.setDefaults()
	if o.Tracer != nil {
		o.Dispatch = tracedDispatcher{o.Dispatch, o.Tracer}
	}
	p := &Plane{
		o: o, started: o.Now(), launcher: newLauncher(), limiter: newHelloLimiter(o.HelloRate),
		hellos: make(chan hello, 1024), events: NewEventRing(o.Events), queue: newEventQueue(),
		eventReads: make(chan struct{}, eventReads), eventsElsewhere: make(chan struct{}, 1),
		questions: questions{open: map[gozzard.OpID]*question{}}, contents: newContents(),
	}
	p.delivery = delivery.New(delivery.Options{
		Store: recorder{p}, Dispatcher: o.Dispatch, Log: o.Log, Now: o.Now,
		Lease: o.Lease, Slack: o.Slack, Resend: o.Resend, Keep: o.Keep, Window: o.Window, Quota: o.Quota,
		Rand:   rand.Float64,
		Silent: p.silent, Recheck: p.recheck,
		Foreign: func(agent gozzard.AgentID) { p.forged("foreign_operation", agent) },
		Shared:  o.Peers != nil, Apps: p.appsOf,
	})
	p.results = newTaskResults(&p.o)
	p.peers = newPeers(&p.o, p)
	p.protocols = newProtocols(&p.o)
	p.restorer = newRestorer(&p.o, p.delivery, p.restore)
	p.businesses = newBusinesses(&p.o, p.Operate)
	p.businesses.note = p.note
	o.Live.OnLeftOut(p.leftOut)

	if err := p.loadFleet(ctx); err != nil {
		return nil, err
	}
	if p.peers == nil { // else another server may be delivering them
		if err := p.loadAttempts(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.loadEvents(ctx); err != nil {
		return nil, fmt.Errorf("cannot read events: %w", err)
	}
	p.beginEvents(ctx)
	if err := p.businesses.start(ctx); err != nil {
		return nil, err
	}

	return p, nil
}

// loadFleet reads hosts and registered processes into the live index.
func (p *Plane) loadFleet(ctx context.Context) error {
	hosts, err := p.o.Store.Hosts(ctx)
	if err != nil {
		return fmt.Errorf("cannot read hosts: %w", err)
	}

	for _, h := range hosts {
		if p.o.Addrs != nil { // the record may have what an agent claimed at an older server
			h.Info.Addrs = p.o.Addrs(h.Info.Agent, h.Info.Addrs)
		}
		p.o.Live.PutHost(fleet.Host{Info: h.Info, Session: h.Session, LastSeen: h.LastSeen})
	}

	for rec, err := range p.o.Store.Processes(ctx, nil) {
		if err != nil {
			return fmt.Errorf("cannot read processes: %w", err)
		}
		p.o.Live.Seed(rec.ID.Agent, seedStatus(&rec))
	}

	return nil
}

// loadAttempts takes up the attempts that an earlier run of the server left open.
func (p *Plane) loadAttempts(ctx context.Context) error {
	open, err := p.o.Store.Open(ctx)
	if err != nil {
		return fmt.Errorf("cannot read open attempts: %w", err)
	}

	apps, err := p.appsOf(ctx, open)
	if err != nil {
		return fmt.Errorf("cannot read tasks: %w", err)
	}
	p.delivery.Restore(open, apps)
	return nil
}

// appsOf reads which apps the tasks of attempts belong to.
func (p *Plane) appsOf(ctx context.Context, list []gozzard.Attempt) (map[gozzard.TaskSeq]string, error) {
	apps := map[gozzard.TaskSeq]string{}
	var traced []gozzard.Task
	for i := range list {
		seq := list[i].Ref.Task
		if _, known := apps[seq]; known {
			continue
		}
		task, err := p.o.Store.Task(ctx, seq)
		if err != nil {
			return nil, err
		}
		apps[seq] = task.Caller.App
		if p.o.Tracer != nil && task.Trace != "" {
			traced = append(traced, task)
		}
	}
	p.found(traced, list)
	return apps, nil
}

// Run does the plane's work until ctx ends. It runs once.
func (p *Plane) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	run := func(f func(context.Context)) {
		wg.Go(func() { f(ctx) })
	}

	run(p.delivery.Run)
	run(p.eventLoop)
	run(p.groupLoop)
	run(p.restorer.loop)
	run(p.protocols.loop)
	run(p.businesses.loop)
	if p.peers != nil {
		run(p.peers.loop)
	}

	for range contentWorkers {
		run(p.contentLoop)
	}
	for range helloWorkers {
		run(p.helloLoop)
	}

	wg.Wait()
	return nil
}

// Prune removes old results until ctx ends, in small steps, so that other writes do not wait for it. Of several servers one
// does it.
func (p *Plane) Prune(ctx context.Context) error {
	const every, step, pause = 10 * time.Minute, 50, 100 * time.Millisecond
	for wait := time.Minute; pace.Sleep(ctx, wait) == nil; {
		n, err := p.o.Store.Prune(ctx, p.o.Now().Add(-p.o.Keep), step)
		wait = every
		if err == nil && n < step {
			err = p.o.Store.PruneContents(ctx, p.o.Now())
		}
		if err != nil && ctx.Err() == nil {
			p.o.Log.Error("cannot prune old results", "err", err)
		} else if n == step {
			wait = pause
		}
	}
	return nil
}

// silent is called by delivery when the lease of an agent ends.
func (p *Plane) silent(agent gozzard.AgentID, since time.Time) {
	p.o.Live.SetOnline(agent, false, since)
	if h, ok := p.o.Live.Host(agent); ok {
		p.peers.noteSilent(agent, h.Session, since)
	}
	p.o.Log.Info("host is silent", "agent", agent, "since", since)
}

// Disconnected says that the server closed the connection of an agent: its host is offline from now on, until the agent
// opens a session again. Its attempts are decided by the lease, as for any host that went silent.
func (p *Plane) Disconnected(agent gozzard.AgentID) {
	now := p.o.Now()
	p.copies.forget(agent)
	p.o.Live.SetOnline(agent, false, now)
	if s, _, _ := p.delivery.Session(agent); s.ID != 0 {
		p.peers.noteSilent(agent, s.ID, now)
	}
}

// Connected counts the agents whose sessions this server has.
func (p *Plane) Connected() int { return p.delivery.Connected() }

// seedStatus is what is known of a registered process before its agent has reported it.
func seedStatus(rec *record.Process) gozzard.Status {
	return gozzard.Status{
		Key: rec.ID.Key, Labels: rec.Labels, Wanted: rec.Wanted, State: gozzard.StateStopped, Hosted: rec.Hosted,
		PID:          -1,
		RegisteredAt: rec.RegisteredAt.Unix(), Message: "not reported by its host yet",
	}
}
