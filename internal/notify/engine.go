package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/lease"
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
	RemoveReceiver(ctx context.Context, id string, audit gozzard.AuditRow) error
	Subscriptions(ctx context.Context) ([]record.Subscription, error)
	AddSubscription(ctx context.Context, v record.Subscription, audit gozzard.AuditRow) error
	RemoveSubscription(ctx context.Context, id string, audit gozzard.AuditRow) error

	// NotifyState reads what the engine recorded before; SaveNotify records a step of it as a whole, and SaveLost which
	// hosts are lost.
	NotifyState(ctx context.Context) (record.NotifyState, error)
	SaveNotify(ctx context.Context, ch *record.NotifyChange) error
	SaveLost(ctx context.Context, lost map[gozzard.AgentID]time.Time, back []gozzard.AgentID) error

	// Waiting reads the oldest messages of a receiver that can still be delivered, and CountWaiting counts them.
	Waiting(ctx context.Context, receiver string, limit int) ([]record.Notification, error)
	CountWaiting(ctx context.Context) (map[string]int, error)
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
	commands commands

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
	return &Engine{o: o, dial: d, commands: c, beat: map[string][]record.Alert{}}, nil
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
	if err := e.readConfig(ctx); err != nil {
		return err
	}

	// Look at hosts and tasks. Both become events.
	e.change, e.dirty = record.NotifyChange{}, map[record.AlertKey]bool{}
	e.sights, e.rights = map[string]func(gozzard.AgentID, gozzard.HostAddr, string) bool{}, map[string]*gozzard.Rights{}
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
		e.sub(subs[i].ID).sub = subs[i]
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

// rightsOf are the present rights of an owner, read once in a step.
func (e *Engine) rightsOf(owner gozzard.Caller) *gozzard.Rights {
	id := owner.App + "\x00" + owner.User
	r, ok := e.rights[id]
	if !ok {
		r = e.o.Rights(owner)
		e.rights[id] = r
	}
	return r
}

func (e *Engine) sees(owner gozzard.Caller, a *record.Alert) bool {
	id := owner.App + "\x00" + owner.User
	sight, ok := e.sights[id]
	if !ok {
		sight = e.o.Plane.Sight(e.rightsOf(owner))
		e.sights[id] = sight
	}
	owner.Rights = e.rightsOf(owner)
	return maySee(owner, a, sight)
}

// maySee reports whether an owner may see an alert now. Only people that see everything see tasks of others.
func maySee(owner gozzard.Caller, a *record.Alert, sight func(gozzard.AgentID, gozzard.HostAddr, string) bool) bool {
	if owner.Rights == nil {
		return false
	}
	if a.Kind == kindTaskFailed {
		return owner.ReadsTasksOf(a.App) && (a.User == owner.User && a.App == owner.App || owner.Rights.SeesAll())
	}
	return sight(a.Agent, a.Addr, a.Key.Namespace)
}

// readEvents turns new events into alerts, and returns how far it came.
func (e *Engine) readEvents(ctx context.Context, now time.Time) (last uint64, err error) {
	st, err := e.o.Store.EventState(ctx)
	if err != nil || st.Last <= e.state.Event {
		return e.state.Event, err
	}
	if len(e.subs) == 0 {
		return st.Last, nil
	}
	if e.state.Event < st.Removed {
		e.o.Log.Warn("events were removed before they became alerts", "after", e.state.Event, "removed", st.Removed)
	}

	events, err := e.o.Store.Events(ctx, record.EventQuery{After: e.state.Event, UpTo: st.Last, Limit: readRows})
	if err != nil {
		return 0, err
	}
	for i := range events {
		e.apply(&events[i], now)
	}
	if len(events) == readRows {
		return events[len(events)-1].ID, nil
	}
	return st.Last, nil
}

// apply changes the alerts of all subscriptions as an event says.
func (e *Engine) apply(ev *record.Event, now time.Time) {
	what := effectOf(ev)
	for _, kind := range what.ends {
		print := fingerprint(kind, ev)
		for _, s := range e.subs {
			if a := s.alerts[print]; a != nil && a.Firing() {
				e.end(s, a, ev.Message, time.UnixMilli(ev.At), now)
			}
		}
	}
	if what.begins == "" {
		return
	}

	fresh := e.newAlert(ev, what, now)
	for _, s := range e.subs {
		if !fits(&s.sub.SubscriptionSpec, &fresh) || !e.sees(s.sub.Owner, &fresh) {
			continue
		}
		e.begin(s, fresh, now)
	}
}

// newAlert is the alert of an event.
func (e *Engine) newAlert(ev *record.Event, what effect, now time.Time) record.Alert {
	a := record.Alert{Fingerprint: fingerprint(what.begins, ev), Kind: what.begins, Agent: ev.Agent, Addr: ev.Addr, Key: ev.Key,
		Message: clean(ev.Message, maxText), Starts: time.UnixMilli(ev.At).UTC(), Moment: what.moment, Changed: now}
	if a.Kind == kindTaskFailed {
		a.Task, a.App, a.User = string(ev.Task), ev.App, ev.User
	}
	if h, ok := e.o.Fleet.Host(ev.Agent); ok {
		a.Hostname = clean(h.Info.Hostname, maxText)
	}
	if row, ok := e.o.Fleet.Get(ev.Agent, ev.Key); ok {
		a.Labels = row.Status.Labels
	}
	return a
}

// begin adds an alert to a subscription. One that fires already goes on.
func (e *Engine) begin(s *subState, fresh record.Alert, now time.Time) {
	if a := s.alerts[fresh.Fingerprint]; a != nil {
		a.Message, a.Changed, a.Labels = fresh.Message, now, fresh.Labels
		if !a.Firing() { // its end was not sent yet
			a.Starts, a.Ends, a.News = fresh.Starts, time.Time{}, true
			if a.NewsAt.IsZero() {
				a.NewsAt = now
			}
		}
		e.touch(s, a)
		return
	}

	if len(s.alerts) >= maxOfSubscription || e.total >= maxOfAll {
		if !e.full {
			e.o.Log.Warn("too many alerts fire: more are left out", "of_one", maxOfSubscription, "of_all", maxOfAll)
		}
		e.full = true
		return
	}
	fresh.News, fresh.NewsAt = true, now
	s.alerts[fresh.Fingerprint] = &fresh
	e.total++
	e.touch(s, &fresh)
}

// end ends an alert.
func (e *Engine) end(s *subState, a *record.Alert, why string, at, now time.Time) {
	if at.Before(a.Starts) {
		at = now
	}
	a.Ends, a.Changed, a.News = at.UTC(), now, true
	if a.NewsAt.IsZero() {
		a.NewsAt = now
	}
	if why != "" {
		a.Message = clean(why, maxText)
	}
	e.touch(s, a)
}

// touch makes an alert one that is recorded at the end of the step.
func (e *Engine) touch(s *subState, a *record.Alert) {
	e.dirty[record.AlertKey{Subscription: s.sub.ID, Fingerprint: a.Fingerprint}] = true
}

// endAlerts ends alerts whose processes and hosts are well by now.
func (e *Engine) endAlerts(now time.Time) {
	for _, s := range e.subs {
		for _, a := range s.alerts {
			if a.Moment || !a.Firing() {
				continue
			}
			if a.Kind == kindHostLost {
				if _, lost := e.state.Lost[a.Agent]; !lost {
					e.end(s, a, "the host is not lost any more", now, now)
				}
				continue
			}
			row, known := e.o.Fleet.Get(a.Agent, a.Key)
			if a.Key == (gozzard.Key{}) || a.Key.Name == "" { // of a pool
				if now.Sub(a.Changed) > 10*time.Minute {
					e.end(s, a, "", now, now)
				}
				continue
			}
			if why, ended := hasEnded(a, row, known, now); ended {
				e.end(s, a, why, now, now)
			}
		}
	}
}

// makeMessages makes the messages that are due, one for each receiver.
func (e *Engine) makeMessages(now time.Time) error {
	for id, s := range e.subs {
		for _, g := range s.due(now) {
			// Leave out what the owner may not see any more.
			list := make([]*record.Alert, 0, len(g.alerts))
			for _, a := range g.alerts {
				if e.sees(s.sub.Owner, a) {
					list = append(list, a)
				}
			}
			if len(list) > 0 {
				m := newMessage(&s.sub, newID(), g.labels, list, now)
				body, err := json.Marshal(m)
				if err != nil {
					return fmt.Errorf("cannot encode a message: %w", err)
				}
				for _, r := range s.sub.Receivers {
					if _, known := e.receives[r]; known && !(m.Repeated && e.receives[r].Kind == record.ReceiverAlertmanager) {
						e.change.Messages = append(e.change.Messages, record.Notification{Receiver: r, Subscription: id, Body: body,
							Created: now, Next: now})
					}
				}
			}

			for _, a := range g.alerts {
				e.touch(s, a)
			}
			for _, print := range s.wasSent(&g, now) {
				e.total--
				e.full = false
				key := record.AlertKey{Subscription: id, Fingerprint: print}
				delete(e.dirty, key)
				e.change.Gone = append(e.change.Gone, key)
			}
		}
	}
	return nil
}

// save records the step.
func (e *Engine) save(ctx context.Context, event uint64, audit int64) error {
	for key := range e.dirty {
		s := e.subs[key.Subscription]
		if s == nil || s.alerts[key.Fingerprint] == nil {
			continue
		}
		e.change.Alerts = append(e.change.Alerts, record.SubscribedAlert{Subscription: key.Subscription,
			Alert: *s.alerts[key.Fingerprint]})
	}
	if event == e.state.Event && audit == e.state.Audit && e.state.Known &&
		len(e.change.Alerts)+len(e.change.Gone)+len(e.change.Messages) == 0 {
		return nil
	}

	e.change.Event, e.change.Audit = event, audit
	if err := lease.Check(ctx); err != nil {
		return err
	}
	if err := e.o.Store.SaveNotify(ctx, &e.change); err != nil {
		return err
	}
	e.state.Event, e.state.Audit, e.state.Known = event, audit, true
	for i := range e.change.Messages {
		if s := e.senders[e.change.Messages[i].Receiver]; s != nil {
			s.wakeUp()
		}
	}
	return nil
}

// publish shows the alerts that fire to the senders.
func (e *Engine) publish() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.beat)
	for id, s := range e.subs {
		wanted := false
		for _, r := range s.sub.Receivers {
			wanted = wanted || e.receives[r].Kind == record.ReceiverAlertmanager
		}
		if !wanted {
			continue
		}
		list := []record.Alert{}
		for _, a := range s.alerts {
			if a.Firing() && !a.Moment && !a.Sent.IsZero() {
				list = append(list, *a)
			}
		}
		e.beat[id] = list
	}
}

// countWaiting shows how many messages wait, and wakes the senders that have some.
func (e *Engine) countWaiting(ctx context.Context, look bool) error {
	if !look {
		return nil
	}
	n, err := e.o.Store.CountWaiting(ctx)
	if err != nil {
		return err
	}
	byKind := map[string]int{}
	for _, kind := range allKinds() {
		byKind[string(kind)] = 0
	}
	for id, count := range n {
		if r, ok := e.receives[id]; ok {
			byKind[string(r.Kind)] += count
		}
		if s := e.senders[id]; s != nil { // an admin may have asked for a dead letter again
			s.wakeUp()
		}
	}
	if e.o.Metrics != nil {
		e.o.Metrics.NotificationsWaiting(byKind)
	}
	return nil
}
