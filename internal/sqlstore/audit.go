package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/gozzard/gozzard/internal/control"
)

func insertAudit(ctx context.Context, c *conn, a *control.AuditRow) error {
	_, err := c.change(ctx, `INSERT INTO audit (seq, at, app, caller, asserted, act, task_id, request_hash, targets)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		a.Seq, millis(a.At), text(a.Caller.App), text(a.Caller.User), a.Caller.Asserted, text(a.Act), string(a.TaskID), a.RequestHash[:], a.Targets)
	return err
}

// Audit implements control.Store.
func (s *Store) Audit(ctx context.Context, limit int) (list []control.AuditRow, err error) {
	defer s.timed("audit", &err)()
	rows, err := s.read.db.QueryContext(ctx, `SELECT seq, at, app, caller, asserted, act, task_id, request_hash, targets FROM audit ORDER BY seq DESC LIMIT $1`,
		max(limit, 0))
	err = scanAll(rows, err, func(r *sql.Rows) error {
		var a control.AuditRow
		var hash []byte
		if err := r.Scan(&a.Seq, (*stamp)(&a.At), &a.Caller.App, &a.Caller.User, &a.Caller.Asserted, &a.Act, &a.TaskID, &hash, &a.Targets); err != nil {
			return err
		}
		if copy(a.RequestHash[:], hash) != len(a.RequestHash) {
			return fmt.Errorf("audit row %d has a short hash", a.Seq)
		}
		list = append(list, a)
		return nil
	})
	return list, s.readError("the audit", err)
}
