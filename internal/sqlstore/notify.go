package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Subscriptions implements notify.Store.
func (s *Store) Subscriptions(ctx context.Context) (list []record.Subscription, err error) {
	defer s.timed("subscriptions", &err)()
	err = s.read.each(ctx, `SELECT id, body, app, caller, created FROM notify_subscriptions ORDER BY created, id`, nil,
		func(r *sql.Rows) error {
			var v record.Subscription
			var body string
			if err := r.Scan(&v.ID, &body, &v.Owner.App, &v.Owner.User, (*stamp)(&v.Created)); err != nil {
				return err
			}
			list = append(list, v)
			return json.Unmarshal([]byte(body), &list[len(list)-1].SubscriptionSpec)
		})
	return list, s.readError("subscriptions", err)
}

// AddSubscription implements notify.Store.
func (s *Store) AddSubscription(ctx context.Context, v record.Subscription, audit gozzard.AuditRow) (err error) {
	defer s.timed("add_subscription", &err)()
	body, err := json.Marshal(v.SubscriptionSpec)
	if err != nil {
		return fmt.Errorf("cannot encode a subscription: %w", err)
	}

	audit = withOrigin(ctx, audit)
	return s.w.submit(ctx, &job{op: "a subscription", rows: 1, grows: true, run: func(ctx context.Context, c *conn) error {
		// Bound their number.
		var n, own int64
		if _, err := c.one(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN app = $1 AND caller = $2 THEN 1 ELSE 0 END), 0)
			FROM notify_subscriptions`, []any{text(v.Owner.App), text(v.Owner.User)}, &n, &own); err != nil {
			return err
		}
		if n >= record.MaxSubscriptions || own >= record.MaxOwnedSubs {
			return gozzard.Errorf(gozzard.ErrConflict, "the limit of %d subscriptions of one owner and %d of all is reached: "+
				"remove one first", record.MaxOwnedSubs, record.MaxSubscriptions)
		}

		if err := checkOwnName(ctx, c, &v); err != nil {
			return err
		}
		_, err := c.change(ctx, `INSERT INTO notify_subscriptions (id, body, app, caller, created) VALUES ($1, $2, $3, $4, $5)`,
			text(v.ID), text(string(body)), text(v.Owner.App), text(v.Owner.User), millis(v.Created))
		if err != nil {
			return err
		}
		return addAudit(ctx, c, audit)
	}})
}

// checkOwnName lets a name mean one of the subscriptions of an owner. Others may use the same name: they do not see each other.
func checkOwnName(ctx context.Context, c *conn, v *record.Subscription) error {
	return c.each(ctx, `SELECT id, body FROM notify_subscriptions WHERE app = $1 AND caller = $2 AND id <> $3`,
		[]any{text(v.Owner.App), text(v.Owner.User), text(v.ID)}, func(r *sql.Rows) error {
			var id, body string
			var other record.SubscriptionSpec
			if err := r.Scan(&id, &body); err != nil {
				return err
			}
			if err := json.Unmarshal([]byte(body), &other); err != nil || other.Name != v.Name {
				return err
			}
			return gozzard.Errorf(gozzard.ErrConflict, "there is a subscription with the name %q, id %s: change that one, or use another name",
				v.Name, id)
		})
}

// ChangeSubscription implements notify.Store.
func (s *Store) ChangeSubscription(ctx context.Context, was, v record.Subscription, audit gozzard.AuditRow) (err error) {
	defer s.timed("change_subscription", &err)()
	body, err := json.Marshal(v.SubscriptionSpec)
	if err != nil {
		return fmt.Errorf("cannot encode a subscription: %w", err)
	}

	audit = withOrigin(ctx, audit)
	return s.w.submit(ctx, &job{op: "a subscription", rows: 1, run: func(ctx context.Context, c *conn) error {
		// What is kept comes from what the caller has read: nobody may have changed that since.
		var known record.SubscriptionSpec
		n := 0
		err := c.each(ctx, `SELECT body FROM notify_subscriptions WHERE id = $1`+c.d.forUpdate, []any{text(was.ID)}, func(r *sql.Rows) error {
			var body string
			n++
			if err := r.Scan(&body); err != nil {
				return err
			}
			return json.Unmarshal([]byte(body), &known)
		})
		switch {
		case err != nil:
			return err
		case n == 0:
			return gozzard.Errorf(gozzard.ErrNotFound, "there is no subscription %.40q", was.ID)
		case !reflect.DeepEqual(known, was.SubscriptionSpec):
			return gozzard.Errorf(gozzard.ErrConflict, "the subscription %q was changed at the same time: look at it and try again", was.Name)
		}
		if err := checkOwnName(ctx, c, &v); err != nil {
			return err
		}

		// Receivers that it does not use any more get nothing more of it.
		if _, err := c.change(ctx, `UPDATE notify_subscriptions SET body = $2 WHERE id = $1`, text(was.ID), text(string(body))); err != nil {
			return err
		}
		for _, r := range was.Receivers {
			if slices.Contains(v.Receivers, r) {
				continue
			}
			if _, err := c.change(ctx, `DELETE FROM notify_messages WHERE sub = $1 AND receiver = $2`, text(was.ID), text(r)); err != nil {
				return err
			}
		}
		return addAudit(ctx, c, audit)
	}})
}

// RemoveSubscription implements notify.Store.
func (s *Store) RemoveSubscription(ctx context.Context, id string, audit gozzard.AuditRow) (err error) {
	defer s.timed("remove_subscription", &err)()
	audit = withOrigin(ctx, audit)
	return s.w.submit(ctx, &job{op: "a subscription", rows: 1, run: func(ctx context.Context, c *conn) error {
		n, err := c.change(ctx, `DELETE FROM notify_subscriptions WHERE id = $1`, text(id))
		if err != nil {
			return err
		}
		if n == 0 {
			return gozzard.Errorf(gozzard.ErrNotFound, "there is no subscription %.40q", id)
		}
		for _, from := range []string{`DELETE FROM notify_messages WHERE sub = $1`, `DELETE FROM notify_alerts WHERE sub = $1`} {
			if _, err := c.change(ctx, from, text(id)); err != nil {
				return err
			}
		}
		return addAudit(ctx, c, audit)
	}})
}

// NotifyState implements notify.Store.
func (s *Store) NotifyState(ctx context.Context) (st record.NotifyState, err error) {
	defer s.timed("notify_state", &err)()
	err = s.read.each(ctx, `SELECT name, value FROM notify_positions`, nil, func(r *sql.Rows) error {
		var name string
		var value int64
		err := r.Scan(&name, &value)
		st.Known = true
		if name == "event" {
			st.Event = uint64(value)
		} else {
			st.Audit = value
		}
		return err
	})
	if err != nil {
		return st, s.readError("how far alerts are", err)
	}

	err = s.read.each(ctx, `SELECT sub, body FROM notify_alerts`, nil, func(r *sql.Rows) error {
		var a record.SubscribedAlert
		var body string
		if err := r.Scan(&a.Subscription, &body); err != nil {
			return err
		}
		st.Alerts = append(st.Alerts, a)
		return json.Unmarshal([]byte(body), &st.Alerts[len(st.Alerts)-1].Alert)
	})
	if err != nil {
		return st, s.readError("alerts", err)
	}

	st.Lost = map[gozzard.AgentID]time.Time{}
	err = s.read.each(ctx, `SELECT agent_id, since FROM notify_lost`, nil, func(r *sql.Rows) error {
		var agent string
		var since time.Time
		err := r.Scan(&agent, (*stamp)(&since))
		st.Lost[gozzard.AgentID(agent)] = since
		return err
	})
	return st, s.readError("lost hosts", err)
}

var (
	upsertAlerts = insertRows("notify_alerts", "sub, fingerprint, body",
		" ON CONFLICT (sub, fingerprint) DO UPDATE SET body = excluded.body")
	deleteAlerts = withRows(`DELETE FROM notify_alerts WHERE (sub, fingerprint) IN (SELECT s, f FROM v)`, "s TEXT", "f TEXT")
	insertNotes  = insertRows("notify_messages", "id, receiver, sub, body, created, tries, next_at, dead, error", "")
	upsertLost   = insertRows("notify_lost", "agent_id, since", " ON CONFLICT (agent_id) DO UPDATE SET since = excluded.since")
	deleteLost   = withRows(`DELETE FROM notify_lost WHERE agent_id IN (SELECT a FROM v)`, "a TEXT")
)

// SaveNotify implements notify.Store.
func (s *Store) SaveNotify(ctx context.Context, ch *record.NotifyChange) (err error) {
	defer s.timed("save_notify", &err)()
	bodies := make([]string, len(ch.Alerts))
	for i := range ch.Alerts {
		b, err := json.Marshal(ch.Alerts[i].Alert)
		if err != nil {
			return fmt.Errorf("cannot encode an alert: %w", err)
		}
		bodies[i] = text(string(b))
	}

	rows := 2 + len(ch.Alerts) + len(ch.Gone) + len(ch.Messages)
	return s.w.submit(ctx, &job{op: "alerts", rows: rows, grows: true, run: func(ctx context.Context, c *conn) error {
		// The positions and the alerts.
		for name, value := range map[string]int64{"event": counter(ch.Event), "audit": ch.Audit} {
			if _, err := c.change(ctx, `INSERT INTO notify_positions (name, value) VALUES ($1, $2)
				ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value); err != nil {
				return err
			}
		}
		err := c.execRows(ctx, upsertAlerts, len(ch.Alerts), func(i int, to []any) []any {
			return append(to, text(ch.Alerts[i].Subscription), text(ch.Alerts[i].Fingerprint), bodies[i])
		})
		if err != nil {
			return err
		}
		err = c.execRows(ctx, deleteAlerts, len(ch.Gone), func(i int, to []any) []any {
			return append(to, text(ch.Gone[i].Subscription), text(ch.Gone[i].Fingerprint))
		})
		if err != nil || len(ch.Messages) == 0 {
			return err
		}

		// The messages.
		last, err := nextNumbers(ctx, c, "notification", len(ch.Messages))
		if err != nil {
			return err
		}
		first := last - int64(len(ch.Messages)) + 1
		err = c.execRows(ctx, insertNotes, len(ch.Messages), func(i int, to []any) []any {
			m := &ch.Messages[i]
			return append(to, first+int64(i), text(m.Receiver), text(m.Subscription), text(string(m.Body)), millis(m.Created), m.Tries,
				millis(m.Next), m.Dead, text(m.Error))
		})
		if err != nil {
			return err
		}
		return boundWaiting(ctx, c, ch.Messages)
	}})
}

// SaveLost implements notify.Store.
func (s *Store) SaveLost(ctx context.Context, lost map[gozzard.AgentID]time.Time, back []gozzard.AgentID) (err error) {
	defer s.timed("save_lost", &err)()
	agents := make([]gozzard.AgentID, 0, len(lost))
	for a := range lost {
		agents = append(agents, a)
	}
	return s.w.submit(ctx, &job{op: "lost hosts", rows: len(lost) + len(back), run: func(ctx context.Context, c *conn) error {
		err := c.execRows(ctx, upsertLost, len(agents), func(i int, to []any) []any {
			return append(to, text(string(agents[i])), millis(lost[agents[i]]))
		})
		if err != nil {
			return err
		}
		return c.execRows(ctx, deleteLost, len(back), func(i int, to []any) []any { return append(to, text(string(back[i]))) })
	}})
}
