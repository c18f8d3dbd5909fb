package notify

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

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
