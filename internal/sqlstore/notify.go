package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Receivers implements notify.Store.
func (s *Store) Receivers(ctx context.Context) (list []record.Receiver, err error) {
	defer s.timed("receivers", &err)()
	err = s.read.each(ctx, `SELECT id, name, kind, shared, settings, app, caller, created FROM notify_receivers ORDER BY name, id`,
		nil, func(r *sql.Rows) error {
			var v record.Receiver
			var settings string
			err := r.Scan(&v.ID, &v.Name, &v.Kind, &v.Shared, &settings, &v.Creator.App, &v.Creator.User, (*stamp)(&v.Created))
			if err != nil {
				return err
			}
			list = append(list, v)
			return json.Unmarshal([]byte(settings), &list[len(list)-1].Settings)
		})
	return list, s.readError("receivers", err)
}

// AddReceiver implements notify.Store.
func (s *Store) AddReceiver(ctx context.Context, v record.Receiver, audit gozzard.AuditRow) (err error) {
	defer s.timed("add_receiver", &err)()
	settings, err := json.Marshal(v.Settings)
	if err != nil {
		return fmt.Errorf("cannot encode the settings of a receiver: %w", err)
	}

	audit = withOrigin(ctx, audit)
	return s.w.submit(ctx, &job{op: "a receiver", rows: 1, grows: true, run: func(ctx context.Context, c *conn) error {
		// Bound their number, and let a name mean one of them.
		var n, same int64
		if _, err := c.one(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN name = $1 THEN 1 ELSE 0 END), 0) FROM notify_receivers`,
			[]any{text(v.Name)}, &n, &same); err != nil {
			return err
		}
		if same > 0 {
			return gozzard.Errorf(gozzard.ErrConflict, "there is a receiver with the name %q: use another name", v.Name)
		}
		if n >= record.MaxReceivers {
			return gozzard.Errorf(gozzard.ErrConflict, "the limit of %d receivers is reached: remove one first", record.MaxReceivers)
		}

		_, err := c.change(ctx, `INSERT INTO notify_receivers (id, name, kind, shared, settings, app, caller, created)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, text(v.ID), text(v.Name), string(v.Kind), v.Shared, text(string(settings)),
			text(v.Creator.App), text(v.Creator.User), millis(v.Created))
		if err != nil {
			return err
		}
		return addAudit(ctx, c, audit)
	}})
}

// RemoveReceiver implements notify.Store.
func (s *Store) RemoveReceiver(ctx context.Context, id string, audit gozzard.AuditRow) (err error) {
	defer s.timed("remove_receiver", &err)()
	audit = withOrigin(ctx, audit)
	return s.w.submit(ctx, &job{op: "a receiver", rows: 1, run: func(ctx context.Context, c *conn) error {
		n, err := c.change(ctx, `DELETE FROM notify_receivers WHERE id = $1`, text(id))
		if err != nil {
			return err
		}
		if n == 0 {
			return gozzard.Errorf(gozzard.ErrNotFound, "there is no receiver %.40q", id)
		}
		if _, err := c.change(ctx, `DELETE FROM notify_messages WHERE receiver = $1`, text(id)); err != nil {
			return err
		}
		return addAudit(ctx, c, audit)
	}})
}

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

		_, err := c.change(ctx, `INSERT INTO notify_subscriptions (id, body, app, caller, created) VALUES ($1, $2, $3, $4, $5)`,
			text(v.ID), text(string(body)), text(v.Owner.App), text(v.Owner.User), millis(v.Created))
		if err != nil {
			return err
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

// boundWaiting makes the oldest messages of a receiver dead letters if too many wait for it.
func boundWaiting(ctx context.Context, c *conn, list []record.Notification) error {
	seen := map[string]bool{}
	for i := range list {
		if seen[list[i].Receiver] {
			continue
		}
		seen[list[i].Receiver] = true
		_, err := c.change(ctx, `UPDATE notify_messages SET dead = TRUE, error = $3 WHERE receiver = $1 AND dead = FALSE AND id <=
			COALESCE((SELECT id FROM notify_messages WHERE receiver = $1 AND dead = FALSE ORDER BY id DESC LIMIT 1 OFFSET $2), 0)`,
			text(list[i].Receiver), record.MaxWaiting, "too many newer messages wait for this receiver")
		if err != nil {
			return err
		}
	}
	return boundDead(ctx, c)
}

// boundDead removes the oldest dead letters.
func boundDead(ctx context.Context, c *conn) error {
	_, err := c.change(ctx, `DELETE FROM notify_messages WHERE dead = TRUE AND id <=
		COALESCE((SELECT id FROM notify_messages WHERE dead = TRUE ORDER BY id DESC LIMIT 1 OFFSET $1), 0)`, record.MaxDead)
	return err
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

const selectNotes = `SELECT id, receiver, sub, body, created, tries, next_at, dead, error FROM notify_messages `

func (s *Store) notifications(ctx context.Context, query string, args ...any) (list []record.Notification, err error) {
	err = s.read.each(ctx, selectNotes+query, args, func(r *sql.Rows) error {
		var n record.Notification
		var body string
		err := r.Scan(&n.ID, &n.Receiver, &n.Subscription, &body, (*stamp)(&n.Created), &n.Tries, (*stamp)(&n.Next), &n.Dead, &n.Error)
		n.Body = []byte(body)
		list = append(list, n)
		return err
	})
	return list, s.readError("messages of receivers", err)
}

// Waiting implements notify.Store.
func (s *Store) Waiting(ctx context.Context, receiver string, limit int) (list []record.Notification, err error) {
	defer s.timed("notifications_waiting", &err)()
	return s.notifications(ctx, `WHERE receiver = $1 AND dead = FALSE ORDER BY id LIMIT $2`, text(receiver), limit)
}

// CountWaiting implements notify.Store.
func (s *Store) CountWaiting(ctx context.Context) (n map[string]int, err error) {
	defer s.timed("count_notifications", &err)()
	n = map[string]int{}
	err = s.read.each(ctx, `SELECT receiver, COUNT(*) FROM notify_messages WHERE dead = FALSE GROUP BY receiver`, nil,
		func(r *sql.Rows) error {
			var receiver string
			var count int
			err := r.Scan(&receiver, &count)
			n[receiver] = count
			return err
		})
	return n, s.readError("messages of receivers", err)
}

// Dead implements notify.Store.
func (s *Store) Dead(ctx context.Context, limit int) (list []record.Notification, err error) {
	defer s.timed("notifications_dead", &err)()
	return s.notifications(ctx, `WHERE dead = TRUE ORDER BY id DESC LIMIT $1`, limit)
}

// Delivered implements notify.Store.
func (s *Store) Delivered(ctx context.Context, id int64) (err error) {
	defer s.timed("notification_delivered", &err)()
	return s.w.submit(ctx, &job{op: "a message of a receiver", rows: 1, run: func(ctx context.Context, c *conn) error {
		_, err := c.change(ctx, `DELETE FROM notify_messages WHERE id = $1`, id)
		return err
	}})
}

// Undelivered implements notify.Store.
func (s *Store) Undelivered(ctx context.Context, n *record.Notification) (err error) {
	defer s.timed("notification_undelivered", &err)()
	return s.w.submit(ctx, &job{op: "a message of a receiver", rows: 1, run: func(ctx context.Context, c *conn) error {
		_, err := c.change(ctx, `UPDATE notify_messages SET tries = $2, next_at = $3, dead = $4, error = $5 WHERE id = $1`, n.ID,
			n.Tries, millis(n.Next), n.Dead, text(n.Error))
		if err != nil || !n.Dead {
			return err
		}
		return boundDead(ctx, c)
	}})
}

// RetryDead implements notify.Store.
func (s *Store) RetryDead(ctx context.Context, id int64, now time.Time, audit gozzard.AuditRow) error {
	return s.changeDead(ctx, audit, `UPDATE notify_messages SET dead = FALSE, tries = 0, next_at = $2, created = $2
		WHERE id = $1 AND dead = TRUE`, id, millis(now))
}

// RemoveDead implements notify.Store.
func (s *Store) RemoveDead(ctx context.Context, id int64, audit gozzard.AuditRow) error {
	return s.changeDead(ctx, audit, `DELETE FROM notify_messages WHERE id = $1 AND dead = TRUE`, id)
}

func (s *Store) changeDead(ctx context.Context, audit gozzard.AuditRow, query string, args ...any) (err error) {
	defer s.timed("change_dead_letter", &err)()
	audit = withOrigin(ctx, audit)
	return s.w.submit(ctx, &job{op: "a dead letter", rows: 1, run: func(ctx context.Context, c *conn) error {
		n, err := c.change(ctx, query, args...)
		if err != nil {
			return err
		}
		if n == 0 {
			return gozzard.Errorf(gozzard.ErrNotFound, "there is no dead letter %d", args[0])
		}
		return addAudit(ctx, c, audit)
	}})
}
