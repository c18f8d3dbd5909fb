package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

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

// Backlogs implements notify.Store.
func (s *Store) Backlogs(ctx context.Context) (list map[string]record.Backlog, err error) {
	defer s.timed("notification_backlogs", &err)()
	list = map[string]record.Backlog{}
	err = s.read.each(ctx, `SELECT receiver, COUNT(*) FROM notify_messages WHERE dead = TRUE GROUP BY receiver`, nil,
		func(r *sql.Rows) error {
			var receiver string
			var b record.Backlog
			err := r.Scan(&receiver, &b.Dead)
			list[receiver] = b
			return err
		})
	if err != nil {
		return nil, s.readError("dead letters of receivers", err)
	}

	err = s.read.each(ctx, `SELECT m.receiver, c.n, c.oldest, m.tries, m.error, m.next_at FROM notify_messages m JOIN
		(SELECT MIN(id) AS first, COUNT(*) AS n, MIN(created) AS oldest FROM notify_messages WHERE dead = FALSE GROUP BY receiver) c
		ON m.id = c.first`, nil, func(r *sql.Rows) error {
		var receiver string
		var b record.Backlog
		err := r.Scan(&receiver, &b.Waiting, (*stamp)(&b.Oldest), &b.Tries, &b.Error, (*stamp)(&b.Next))
		b.Dead = list[receiver].Dead
		list[receiver] = b
		return err
	})
	return list, s.readError("messages of receivers", err)
}

// RetryWaiting implements notify.Store.
func (s *Store) RetryWaiting(ctx context.Context, receiver string, now time.Time) (err error) {
	defer s.timed("retry_notifications", &err)()
	return s.w.submit(ctx, &job{op: "messages of a receiver", rows: 1, run: func(ctx context.Context, c *conn) error {
		_, err := c.change(ctx, `UPDATE notify_messages SET next_at = $2 WHERE receiver = $1 AND dead = FALSE AND next_at > $2`,
			text(receiver), millis(now))
		return err
	}})
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
