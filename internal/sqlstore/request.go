package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/approval"
)

var _ approval.Store = (*Store)(nil)

const requestColumns = "id, kind, what, act, digest, app, person, created, expires, state, decided, decider, result"

// requestRow is an audit row. ctx has the origin of the call; the context of the writer has none.
func requestRow(ctx context.Context, audit approval.AuditEntry) gozzard.AuditRow {
	return withOrigin(ctx, gozzard.AuditRow{At: audit.At, Caller: audit.Caller, Act: audit.What, Targets: 1})
}

// AddRequest implements approval.Store.
func (s *Store) AddRequest(ctx context.Context, r *approval.Request, most int, now time.Time,
	audit func(id int64) approval.AuditEntry) (err error) {
	defer s.timed("add_request", &err)()
	var id int64
	origin := gozzard.OriginOf(ctx)
	err = s.w.submit(ctx, &job{op: "a request", rows: 1, grows: true, run: func(ctx context.Context, c *conn) error {
		// Limit what one person can have waiting, and drop what was not decided in time.
		_, err := c.change(ctx, `UPDATE requests SET act = $2 WHERE state = 'waiting' AND expires <= $1`, millis(now), []byte{})
		if err != nil {
			return err
		}
		var n int
		_, err = c.one(ctx, `SELECT COUNT(*) FROM requests WHERE person = $1 AND state = 'waiting' AND expires > $2`,
			[]any{text(r.Person), millis(now)}, &n)
		if err != nil {
			return err
		}
		if n >= most {
			return gozzard.Errorf(gozzard.ErrConflict,
				"%d requests of %s wait for another person: reject one first (gozzard request reject)", n, r.Person)
		}

		// Record it.
		if id, err = nextNumbers(ctx, c, "request", 1); err != nil {
			return err
		}
		_, err = c.change(ctx, `INSERT INTO requests (`+requestColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
			id, string(r.Kind), text(r.What), r.Act, r.Digest, text(r.App), text(r.Person), millis(r.Created),
			millis(r.Expires), string(r.State), millis(r.Decided), text(r.Decider), text(r.Result))
		if err != nil {
			return err
		}
		return addAudit(ctx, c, requestRow(gozzard.WithOrigin(ctx, origin), audit(id)))
	}})
	if err == nil {
		r.ID = id
	}
	return err
}

func scanRequest(scan func(...any) error) (r approval.Request, err error) {
	err = scan(&r.ID, &r.Kind, &r.What, &r.Act, &r.Digest, &r.App, &r.Person, (*stamp)(&r.Created), (*stamp)(&r.Expires),
		&r.State, (*stamp)(&r.Decided), &r.Decider, &r.Result)
	return r, err
}

// Requests implements approval.Store.
func (s *Store) Requests(ctx context.Context, limit int) (list []approval.Request, err error) {
	defer s.timed("requests", &err)()
	rows, err := s.read.db.QueryContext(ctx, `SELECT `+requestColumns+` FROM requests ORDER BY id DESC LIMIT $1`, limit)
	err = scanAll(rows, err, func(q *sql.Rows) error {
		r, err := scanRequest(q.Scan)
		list = append(list, r)
		return err
	})
	return list, s.readError("requests", err)
}

// Request implements approval.Store.
func (s *Store) Request(ctx context.Context, id int64) (r approval.Request, err error) {
	defer s.timed("request", &err)()
	found := false
	rows, err := s.read.db.QueryContext(ctx, `SELECT `+requestColumns+` FROM requests WHERE id = $1`, id)
	err = scanAll(rows, err, func(q *sql.Rows) (err error) {
		r, err = scanRequest(q.Scan)
		found = true
		return err
	})
	if err == nil && !found {
		return r, gozzard.Errorf(gozzard.ErrNotFound, "there is no request %d", id)
	}
	return r, s.readError("a request", err)
}

// DecideRequest implements approval.Store.
func (s *Store) DecideRequest(ctx context.Context, r *approval.Request, audit approval.AuditEntry) (err error) {
	defer s.timed("decide_request", &err)()
	row := requestRow(ctx, audit)
	return s.w.submit(ctx, &job{op: "a decision", rows: 1, grows: true, run: func(ctx context.Context, c *conn) error {
		n, err := c.change(ctx, `UPDATE requests SET state = $2, decided = $3, decider = $4
			WHERE id = $1 AND state = 'waiting' AND digest = $5`,
			r.ID, string(r.State), millis(r.Decided), text(r.Decider), r.Digest)
		if err != nil {
			return err
		}
		if n == 0 {
			return gozzard.Errorf(gozzard.ErrConflict, "request %d does not wait any more", r.ID)
		}
		if r.State == approval.Rejected {
			if _, err := c.change(ctx, `UPDATE requests SET act = $2 WHERE id = $1`, r.ID, []byte{}); err != nil {
				return err
			}
		}
		return addAudit(ctx, c, row)
	}})
}

// RequestResult implements approval.Store.
func (s *Store) RequestResult(ctx context.Context, id int64, result string) (err error) {
	defer s.timed("request_result", &err)()
	return s.w.submit(ctx, &job{op: "the result of a request", rows: 1, run: func(ctx context.Context, c *conn) error {
		_, err := c.change(ctx, `UPDATE requests SET result = $2 WHERE id = $1`, id, text(result))
		return err
	}})
}
