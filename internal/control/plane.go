package control

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// Options are the parts and settings of a Plane. Zero settings get their defaults.
type Options struct {
	Store    Store
	Topology TopologyStore // nil: no businesses are kept
	Dispatch Dispatcher
	Live     *fleet.Index
	Log      *slog.Logger
	Now      func() time.Time
	Observe  Observer

	Interval time.Duration // between full reports of an agent; 30 s
	Lease    time.Duration // silence after which a host is offline; 14 s, so that it is known within 15
	Slack    time.Duration // on top of a command's own time before an attempt is given up; 8 s
	Resend   time.Duration // between repeats of what an agent has not answered; 1 s
	Keep     time.Duration // results stay at least that long; 24 h
	Window   int           // attempts of one task on their way at a time; 4096
	Quota    int           // attempts of one app without a verdict at a time; 0: any number

	HelloRate float64 // sessions opened in a second; 500, below 0 any number

	Events  int           // events kept in memory, the newest; 100,000
	Refresh time.Duration // between repeats of what agents are told anyway, such as pools; 5 min
	Answer  time.Duration // an agent may take to answer a question, such as one for a log; 10 s
}

func (o *Options) setDefaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}

	def(&o.Interval, 30*time.Second)
	def(&o.Lease, 14*time.Second)
	def(&o.Slack, 8*time.Second)
	def(&o.Resend, time.Second)
	def(&o.Keep, 24*time.Hour)
	def(&o.Refresh, 5*time.Minute)
	def(&o.Answer, 10*time.Second)

	if o.Events == 0 {
		o.Events = 100_000
	}
	if o.HelloRate == 0 {
		o.HelloRate = 500
	}
	if o.Window == 0 {
		o.Window = 4096
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Observer is told what happens, for metrics. Nil funcs are left out.
type Observer struct {
	Accepted func(targets int)
	Settled  func(state gozzard.AttemptState, code gozzard.Code)
	Refused  func(rule string) // what was not believed or not permitted, by its rule
	Update   func(from gozzard.AgentID, r gozzard.UpdateReport)

	// an agent came back with an older protocol and was not let in
	Downgraded func(agent gozzard.AgentID, said, known uint32)
}

// Plane is the control plane of one server.
type Plane struct {
	o       Options
	started time.Time
	seed    maphash.Seed

	registering sync.Mutex // register looks before it writes; see Operate
	launching   launching

	mu       sync.Mutex
	sessions map[gozzard.AgentID]*session
	tasks    map[gozzard.TaskSeq]*taskState
	flights  map[gozzard.OpID]*flight
	seats    seats
	byAgent  map[gozzard.AgentID]map[gozzard.OpID]*flight
	unsent   map[gozzard.ProcID]*flight
	waiting  map[gozzard.AgentID][]*flight // pending attempts of hosts that are expected back
	due      dueHeap
	ready    turns // tasks with something to send, in turn

	readying [64]sync.Mutex // by agent: who opens its session or sends what waits for it, one at a time

	forgeries  atomic.Uint64 // reports of an agent that spoke for another one
	downgrades atomic.Uint64 // HELLOs of an older protocol than before

	wake    chan struct{} // sender
	door    *admission
	hellos  chan hello
	settles chan settle
	raises  chan raise
	quit    chan struct{} // closed when Run ends: nobody takes reports any more

	events     *EventRing
	questions  questions
	relays     relays
	businesses businesses
}

// session is an agent's open session as this server knows it.
type session struct {
	id     uint64
	run    uint64 // of the agent
	cloud  int
	heard  time.Time
	online bool
	ready  bool // nothing older waits: operations may go straight to the agent

	protocol uint32 // the highest that is on record
}

// New makes a Plane over a record: hosts and registered processes are read into the live index, open attempts are
// taken up again, and businesses are read.
func New(ctx context.Context, o Options) (*Plane, error) {
	o.setDefaults()
	p := &Plane{
		o: o, started: o.Now(), seed: maphash.MakeSeed(),
		sessions: map[gozzard.AgentID]*session{}, tasks: map[gozzard.TaskSeq]*taskState{},
		flights: map[gozzard.OpID]*flight{},
		byAgent: map[gozzard.AgentID]map[gozzard.OpID]*flight{}, unsent: map[gozzard.ProcID]*flight{},
		waiting:   map[gozzard.AgentID][]*flight{},
		launching: newLaunching(),
		seats:     seats{}, wake: make(chan struct{}, 1), door: newAdmission(o.HelloRate), hellos: make(chan hello, 1024),
		settles: make(chan settle, 8192),
		raises:  make(chan raise, 1024),
		quit:    make(chan struct{}), events: NewEventRing(o.Events, o.Now()),
		questions:  questions{open: map[gozzard.OpID]*question{}},
		relays:     relays{open: map[gozzard.AgentID]*relay{}, wake: make(chan struct{}, 1)},
		businesses: businesses{index: topology.NewIndex(), heads: map[int]record.BusinessHead{}},
	}
	o.Live.OnLeftOut(p.leftOut)
	hosts, err := o.Store.Hosts(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read hosts: %w", err)
	}

	for _, h := range hosts {
		o.Live.PutHost(fleet.Host{Info: h.Info, Session: h.Session, LastSeen: h.LastSeen})
	}

	for rec, err := range o.Store.Processes(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("cannot read processes: %w", err)
		}
		o.Live.Seed(rec.ID.Agent, seedStatus(&rec))
	}

	open, err := o.Store.Open(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("cannot read open attempts: %w", err)
	}

	apps, err := p.seatOpen(ctx, open)
	if err != nil {
		return nil, fmt.Errorf("cannot read tasks: %w", err)
	}

	p.takeUp(open, apps)

	if o.Topology != nil {
		o.Live.Changed() // from here on changes are noted; what is loaded now is looked at whole
	}
	if err := p.loadTopology(ctx); err != nil {
		return nil, err
	}

	return p, nil
}

// Run does the plane's work until ctx ends. It runs once.
func (p *Plane) Run(ctx context.Context) error {
	context.AfterFunc(ctx, func() { close(p.quit) })
	var wg sync.WaitGroup
	run := func(f func(context.Context)) {
		wg.Go(func() { f(ctx) })
	}

	run(p.sendLoop)
	run(p.timerLoop)
	run(p.settleLoop)
	run(p.pruneLoop)
	run(p.groupLoop)
	run(p.relayLoop)
	run(p.protocolLoop)
	run(p.topologyLoop)

	for range helloWorkers {
		run(p.helloLoop)
	}

	wg.Wait()
	return nil
}

// seedStatus is what is known of a registered process before its agent has reported it.
func seedStatus(rec *record.Process) gozzard.Status {
	return gozzard.Status{
		Key: rec.ID.Key, Labels: rec.Labels, Wanted: rec.Wanted, State: gozzard.StateStopped, Hosted: rec.Hosted,
		PID:          -1,
		RegisteredAt: rec.RegisteredAt.Unix(), Message: "not reported by its host yet",
	}
}

// takeUp puts attempts that a former run of the server left open back to work: nothing is sent before their agents
// say HELLO, which decides about them; what does not come back in time is given up by the timer.
func (p *Plane) takeUp(open []gozzard.Attempt, apps map[gozzard.TaskSeq]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range open {
		a := &open[i]
		f := p.newFlight(a, apps[a.Ref.Task])
		p.track(f)
		if a.State == gozzard.AttemptPending {
			p.hold(f, a.Expires)
		}
	}
}

// readyLock is held by whoever opens an agent's session or sends what waits for it, so that operations leave in the
// order of their tasks.
func (p *Plane) readyLock(agent gozzard.AgentID) *sync.Mutex {
	return &p.readying[maphash.String(p.seed, string(agent))%uint64(len(p.readying))]
}

// onlineSession is a copy of an agent's session that is open and alive; its number is 0 otherwise.
func (p *Plane) onlineSession(agent gozzard.AgentID) session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sessions[agent]; s != nil && s.online {
		return *s
	}
	return session{}
}
