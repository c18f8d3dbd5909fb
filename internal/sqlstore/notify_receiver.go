package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Receivers implements notify.Store.
func (s *Store) Receivers(ctx context.Context) (list []record.Receiver, err error) {
	defer s.timed("receivers", &err)()
	err = s.read.each(ctx, selectReceivers+`ORDER BY name, id`, nil, scanReceiver(&list))
	return list, s.readError("receivers", err)
}

const selectReceivers = `SELECT id, name, kind, shared, settings, app, caller, created FROM notify_receivers `

func scanReceiver(list *[]record.Receiver) func(*sql.Rows) error {
	return func(r *sql.Rows) error {
		var v record.Receiver
		var settings string
		err := r.Scan(&v.ID, &v.Name, &v.Kind, &v.Shared, &settings, &v.Creator.App, &v.Creator.User, (*stamp)(&v.Created))
		if err != nil {
			return err
		}
		err = json.Unmarshal([]byte(settings), &v.Settings)
		*list = append(*list, v)
		return err
	}
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

// ChangeReceiver implements notify.Store.
func (s *Store) ChangeReceiver(ctx context.Context, was, v record.Receiver, audit gozzard.AuditRow) (err error) {
	defer s.timed("change_receiver", &err)()
	settings, err := json.Marshal(v.Settings)
	if err != nil {
		return fmt.Errorf("cannot encode the settings of a receiver: %w", err)
	}

	audit = withOrigin(ctx, audit)
	return s.w.submit(ctx, &job{op: "a receiver", rows: 1, run: func(ctx context.Context, c *conn) error {
		// What is kept comes from what the caller has read: nobody may have changed that since.
		var known []record.Receiver
		err := c.each(ctx, selectReceivers+`WHERE id = $1`+c.d.forUpdate, []any{text(was.ID)}, scanReceiver(&known))
		if err != nil {
			return err
		}
		if len(known) == 0 {
			return gozzard.Errorf(gozzard.ErrNotFound, "there is no receiver %.40q", was.ID)
		}
		if !known[0].Same(&was) {
			return gozzard.Errorf(gozzard.ErrConflict, "the receiver %q was changed at the same time: look at it and try again", was.Name)
		}

		// Let its name mean one of them.
		var same int64
		if _, err := c.one(ctx, `SELECT COUNT(*) FROM notify_receivers WHERE name = $1 AND id <> $2`, []any{text(v.Name), text(was.ID)},
			&same); err != nil {
			return err
		}
		if same > 0 {
			return gozzard.Errorf(gozzard.ErrConflict, "there is a receiver with the name %q: use another name", v.Name)
		}

		if _, err := c.change(ctx, `UPDATE notify_receivers SET name = $2, shared = $3, settings = $4 WHERE id = $1`, text(was.ID),
			text(v.Name), v.Shared, text(string(settings))); err != nil {
			return err
		}

		// The tries at another place say nothing about the new one.
		if v.Settings.URL != was.Settings.URL || v.Settings.Server != was.Settings.Server {
			if _, err := c.change(ctx, `UPDATE notify_messages SET tries = 0, error = '' WHERE receiver = $1 AND dead = FALSE`,
				text(was.ID)); err != nil {
				return err
			}
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
