package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/record"
)

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

// countWaiting shows how many messages wait, and wakes the senders that have some: an admin may have asked for them on another
// server.
func (e *Engine) countWaiting(ctx context.Context, look bool) error {
	if !look {
		return nil
	}
	list, err := e.o.Store.Backlogs(ctx)
	if err != nil {
		return err
	}
	byKind := map[string]int{}
	for _, kind := range allKinds() {
		byKind[string(kind)] = 0
	}
	for id, b := range list {
		if r, ok := e.receives[id]; ok {
			byKind[string(r.Kind)] += b.Waiting
		}
		if s := e.senders[id]; s != nil {
			s.look(&b)
		}
	}
	if e.o.Metrics != nil {
		e.o.Metrics.NotificationsWaiting(byKind)
	}
	return nil
}
