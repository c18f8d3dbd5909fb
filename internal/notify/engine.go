package notify

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/language"
	"github.com/gozzard/gozzard/internal/record"
)

// How the engine works.
const (
	tickEvery = time.Second
	readRows  = 2000            // events that are read in one tick
	lookEvery = 2 * time.Second // between looks at the hosts, and at the processes of alerts that fire
	beatEvery = time.Minute     // between repetitions to Alertmanager, which forgets alerts that are not repeated

	maxOfSubscription = 20_000 // alerts; more are left out
	maxOfAll          = 100_000
)

// Store is the part of the record that the engine uses.
type Store interface {
	Receivers(ctx context.Context) ([]record.Receiver, error)
	AddReceiver(ctx context.Context, v record.Receiver, audit gozzard.AuditRow) error
	// ChangeReceiver replaces a receiver, if it is still as it was, and ChangeSubscription a subscription.
	ChangeReceiver(ctx context.Context, was, v record.Receiver, audit gozzard.AuditRow) error
	RemoveReceiver(ctx context.Context, id string, audit gozzard.AuditRow) error
	Subscriptions(ctx context.Context) ([]record.Subscription, error)
	AddSubscription(ctx context.Context, v record.Subscription, audit gozzard.AuditRow) error
	ChangeSubscription(ctx context.Context, was, v record.Subscription, audit gozzard.AuditRow) error
	RemoveSubscription(ctx context.Context, id string, audit gozzard.AuditRow) error

	// NotifyState reads what the engine recorded before; SaveNotify records a step of it as a whole, and SaveLost which
	// hosts are lost.
	NotifyState(ctx context.Context) (record.NotifyState, error)
	SaveNotify(ctx context.Context, ch *record.NotifyChange) error
	SaveLost(ctx context.Context, lost map[gozzard.AgentID]time.Time, back []gozzard.AgentID) error

	// Waiting reads the oldest messages of a receiver that can still be delivered. Backlogs are those of all receivers that
	// have messages, and RetryWaiting makes messages due at once.
	Waiting(ctx context.Context, receiver string, limit int) ([]record.Notification, error)
	Backlogs(ctx context.Context) (map[string]record.Backlog, error)
	RetryWaiting(ctx context.Context, receiver string, now time.Time) error
	Delivered(ctx context.Context, id int64) error
	Undelivered(ctx context.Context, n *record.Notification) error
	Dead(ctx context.Context, limit int) ([]record.Notification, error)
	RetryDead(ctx context.Context, id int64, now time.Time, audit gozzard.AuditRow) error
	RemoveDead(ctx context.Context, id int64, audit gozzard.AuditRow) error

	EventState(ctx context.Context) (record.EventState, error)
	Events(ctx context.Context, q record.EventQuery) ([]record.Event, error)
	AddEvents(ctx context.Context, events []record.Event) (before uint64, err error)
	AddAudit(ctx context.Context, rows []gozzard.AuditRow) error
	AuditAfter(ctx context.Context, seq int64, limit int) ([]gozzard.AuditLink, error)
	Audit(ctx context.Context, limit int) ([]gozzard.AuditRow, error)
	TaskItems(ctx context.Context, tasks []gozzard.TaskSeq) (map[gozzard.TaskSeq][]record.TaskItem, error)
}

// Plane is the part of the control plane that the engine uses.
type Plane interface {
	Sight(rights *gozzard.Rights) func(gozzard.AgentID, gozzard.HostAddr, string) bool
	NotifyEvents()
}

// Metrics count what is sent. The values are words of the program.
type Metrics interface {
	Notified(kind, result string)
	NotificationsWaiting(waiting map[string]int) // by the kind of receiver
}

// Options are the parts of an Engine.
type Options struct {
	Store    Store
	Plane    Plane
	Fleet    *fleet.Index
	Rights   func(gozzard.Caller) *gozzard.Rights // the present ones; nil: none
	Gone     func(gozzard.AgentID) bool           // a host that was taken out of the fleet; may be nil
	Settings Settings
	Metrics  Metrics
	Log      *slog.Logger
	Now      func() time.Time
}

// Settings are those of the server, which callers cannot change.
type Settings struct {
	HostLost time.Duration // for how long a host is silent before it counts as lost; 0: 30 s
	Allow    []string      // networks that receivers may be in although they are not of other machines
	Commands string        // folder of the commands; "": none
	Account  string        // OS account of the commands
}

// Engine turns events into alerts and sends them. Of several servers one runs it.
type Engine struct {
	o        Options
	dial     *dialer
	commands *commands
	verdicts func() *language.Catalogue // Chinese texts of agents

	mu   sync.Mutex
	beat map[string][]record.Alert // firing alerts of each subscription, for Alertmanager

	// Of Run only.
	state    record.NotifyState
	subs     map[string]*subState
	total    int
	full     bool
	change   record.NotifyChange
	dirty    map[record.AlertKey]bool
	sights   map[string]func(gozzard.AgentID, gozzard.HostAddr, string) bool
	rights   map[string]*gozzard.Rights
	looked   time.Time
	began    time.Time
	senders  map[string]*sender
	failures int
	receives map[string]record.Receiver
}

// New makes an Engine.
func New(o Options) (*Engine, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Settings.HostLost <= 0 {
		o.Settings.HostLost = 30 * time.Second
	}
	if o.Gone == nil {
		o.Gone = func(gozzard.AgentID) bool { return false }
	}
	d, err := newDialer(o.Settings.Allow)
	if err != nil {
		return nil, err
	}
	c, err := newCommands(o.Settings.Commands, o.Settings.Account)
	if err != nil {
		return nil, err
	}
	return &Engine{o: o, dial: d, commands: c, verdicts: sync.OnceValue(language.Verdicts), beat: map[string][]record.Alert{}}, nil
}

// Run works until ctx ends. It begins with what the record has: another server may have done this work before.
func (e *Engine) Run(ctx context.Context) error {
	e.subs, e.senders, e.began = map[string]*subState{}, map[string]*sender{}, e.o.Now()
	e.state, e.total = record.NotifyState{}, 0
	defer e.stopSenders()

	for loaded := false; ; {
		var err error
		if !loaded {
			err = e.load(ctx)
			loaded = err == nil
		}
		if err == nil {
			err = e.step(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			loaded = false // what is in memory may be ahead of the record
			if e.failures++; e.failures&(e.failures-1) == 0 {
				e.o.Log.Error("cannot work on alerts, trying again", "tries", e.failures, "err", err)
			}
		} else {
			e.failures = 0
		}

		select {
		case <-ctx.Done():
			return nil
		case <-time.After(tickEvery):
		}
	}
}

// load reads what was recorded. Without anything it begins with what happens from now on.
func (e *Engine) load(ctx context.Context) error {
	st, err := e.o.Store.NotifyState(ctx)
	if err != nil {
		return err
	}
	if !st.Known {
		events, err := e.o.Store.EventState(ctx)
		if err != nil {
			return err
		}
		rows, err := e.o.Store.Audit(ctx, 1)
		if err != nil {
			return err
		}
		st.Event = events.Last
		if len(rows) > 0 {
			st.Audit = rows[len(rows)-1].Seq
		}
	}

	e.state, e.total, e.subs = st, 0, map[string]*subState{}
	for i := range st.Alerts {
		a := st.Alerts[i].Alert
		s := e.sub(st.Alerts[i].Subscription)
		s.alerts[a.Fingerprint] = &a
		if a.Sent.After(e.began.Add(-time.Hour)) {
			key, _ := groupOf(&s.sub.SubscriptionSpec, &a)
			s.sent[key] = a.Sent
		}
		e.total++
	}
	return nil
}

// sub is the state of a subscription.
func (e *Engine) sub(id string) *subState {
	s := e.subs[id]
	if s == nil {
		s = &subState{alerts: map[string]*record.Alert{}, sent: map[string]time.Time{}}
		e.subs[id] = s
	}
	return s
}

// step does one round, and records it as a whole.
func (e *Engine) step(ctx context.Context) error {
	// Read who wants what.
	e.change, e.dirty = record.NotifyChange{}, map[record.AlertKey]bool{}
	e.sights, e.rights = map[string]func(gozzard.AgentID, gozzard.HostAddr, string) bool{}, map[string]*gozzard.Rights{}
	if err := e.readConfig(ctx); err != nil {
		return err
	}

	// Look at hosts and tasks. Both become events.
	now := e.o.Now()
	look := now.Sub(e.looked) >= lookEvery
	if look {
		e.looked = now
		if err := e.lookAtHosts(ctx, now); err != nil {
			return err
		}
	}
	audit, err := e.lookAtTasks(ctx)
	if err != nil {
		return err
	}

	// Turn events into alerts, and end those that are over.
	event, err := e.readEvents(ctx, now)
	if err != nil {
		return err
	}
	if look {
		e.endAlerts(now)
	}

	// Make messages, and record everything together.
	if err := e.makeMessages(now); err != nil {
		return err
	}
	if err := e.save(ctx, event, audit); err != nil {
		return err
	}
	e.publish()
	return e.countWaiting(ctx, look)
}

// readConfig reads receivers and subscriptions, and forgets the alerts of subscriptions that were removed.
func (e *Engine) readConfig(ctx context.Context) error {
	receivers, err := e.o.Store.Receivers(ctx)
	if err != nil {
		return err
	}
	subs, err := e.o.Store.Subscriptions(ctx)
	if err != nil {
		return err
	}

	known := map[string]bool{}
	for i := range subs {
		known[subs[i].ID] = true
		s := e.sub(subs[i].ID)
		changed := !reflect.DeepEqual(s.sub.SubscriptionSpec, subs[i].SubscriptionSpec)
		s.sub = subs[i]
		if changed {
			e.dropUnfit(s)
		}
	}
	for id, s := range e.subs {
		if !known[id] {
			e.total -= len(s.alerts)
			delete(e.subs, id)
		}
	}
	e.receives = map[string]record.Receiver{}
	for _, r := range append(receivers, e.commands.receivers()...) {
		e.receives[r.ID] = r
	}
	e.keepSenders(ctx)
	return nil
}
