package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/taskname"
)

const auditColumns = "seq, at, app, caller, asserted, act, task_id, request_hash, targets, hosts_hash"

var countStates = withRows(`SELECT a.task_seq, a.state, COUNT(*)
	FROM v JOIN attempts a ON a.task_seq = v.t GROUP BY a.task_seq, a.state ORDER BY a.task_seq, a.state`,
	"t BIGINT")

// insertAudit adds a row to the audit and chains it to the newest row. The caller got the row's number from nextNumber
// in the same transaction. That locks the counter until the commit, so no other transaction adds a row meanwhile, even
// when several servers share a database.
func insertAudit(ctx context.Context, c *conn, a *gozzard.AuditRow) error {
	// Hash the values as they are stored and read back.
	row := *a
	row.At = fromMillis(millis(a.At))
	row.Caller.App, row.Caller.User = text(a.Caller.App), text(a.Caller.User)
	row.Act, row.TaskID = text(a.Act), text(a.TaskID)

	// Read the hash of the newest row.
	var head []byte
	if found, err := c.one(ctx, `SELECT hash FROM audit_head`, nil, &head); err != nil || !found {
		return errors.Join(err, missingHead(found))
	}

	var prev gozzard.AuditHash
	if len(head) > 0 && copy(prev[:], head) != len(head) {
		return errors.New("the head of the audit has a wrong hash")
	}

	// Add the row and make it the newest.
	hash := row.Chain(prev)
	_, err := c.change(ctx, `INSERT INTO audit (`+auditColumns+
		`, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		row.Seq, millis(row.At), row.Caller.App, row.Caller.User, row.Caller.Asserted, row.Act, row.TaskID,
		row.RequestHash[:], row.Targets, row.HostsHash[:], hash[:])
	if err != nil {
		return err
	}

	_, err = c.change(ctx, `UPDATE audit_head SET seq = $1, hash = $2`, row.Seq, hash[:])
	return err
}

// auditVerdicts writes into the audit how many attempts of each task had which verdict. Pruning calls it before it
// removes the attempts.
func auditVerdicts(ctx context.Context, c *conn, tasks []gozzard.Task, now time.Time) error {
	counts := make(map[gozzard.TaskSeq]string, len(tasks))
	err := c.queryRows(ctx, countStates, len(tasks),
		func(i int, to []any) []any { return append(to, int64(tasks[i].Seq)) }, func(r *sql.Rows) error {
			var seq gozzard.TaskSeq
			var state gozzard.AttemptState
			var n int
			if err := r.Scan(&seq, &state, &n); err != nil {
				return err
			}
			if counts[seq] != "" {
				counts[seq] += ","
			}
			counts[seq] += fmt.Sprintf("%s=%d", state, n)
			return nil
		})
	if err != nil {
		return err
	}

	for i := range tasks {
		t := &tasks[i]
		row := gozzard.AuditRow{At: now, Caller: t.Caller, Act: "verdicts:" + counts[t.Seq], TaskID: taskname.Of(t.ID),
			Targets: t.Targets}
		if row.Seq, err = nextNumber(ctx, c); err != nil {
			return err
		}
		if err := insertAudit(ctx, c, &row); err != nil {
			return err
		}
	}

	return nil
}

func missingHead(found bool) error {
	if found {
		return nil
	}
	return errors.New("the head of the audit is missing")
}

// Audit implements control.Store.
func (s *Store) Audit(ctx context.Context, limit int) (list []gozzard.AuditRow, err error) {
	defer s.timed("audit", &err)()
	links, err := auditRows(ctx, s.read.db, `ORDER BY seq DESC LIMIT $1`, max(limit, 0))
	for i := range links {
		list = append(list, links[i].AuditRow)
	}
	return list, s.readError("the audit", err)
}

// AuditAfter implements control.AuditStore.
func (s *Store) AuditAfter(ctx context.Context, seq int64, limit int) (list []gozzard.AuditLink, err error) {
	defer s.timed("audit_after", &err)()
	list, err = auditRows(ctx, s.read.db, `WHERE seq > $1 ORDER BY seq LIMIT $2`, seq, max(limit, 0))
	return list, s.readError("the audit", err)
}

// AuditHead implements control.AuditStore.
func (s *Store) AuditHead(ctx context.Context) (head gozzard.AuditHead, err error) {
	defer s.timed("audit_head", &err)()
	head, err = auditHead(ctx, s.read.db)
	return head, s.readError("the audit", err)
}

func auditHead(ctx context.Context, db *sql.DB) (head gozzard.AuditHead, err error) {
	var hash []byte
	if err := db.QueryRowContext(ctx, `SELECT seq, hash FROM audit_head`).Scan(&head.Seq, &hash); err != nil {
		return head, err
	}
	if n := copy(head.Hash[:], hash); n != len(hash) || n != len(head.Hash) && head.Seq > 0 {
		return head, errors.New("the head of the audit has a wrong hash")
	}
	return head, nil
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// auditRows reads the rows of the audit that which, the end of a SELECT, asks for.
func auditRows(ctx context.Context, db querier, which string, args ...any) (list []gozzard.AuditLink, err error) {
	rows, err := db.QueryContext(ctx, `SELECT `+auditColumns+`, hash FROM audit `+which, args...)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		var l gozzard.AuditLink
		var request, hosts, hash []byte
		err := r.Scan(&l.Seq, (*stamp)(&l.At), &l.Caller.App, &l.Caller.User, &l.Caller.Asserted, &l.Act, &l.TaskID,
			&request, &l.Targets, &hosts, &hash)
		if err != nil {
			return err
		}

		// A row with a hash of a wrong length gets no chain hash. Then it fits nowhere, and the check of the chain
		// reports it.
		if copy(l.RequestHash[:], request) == len(request) && copy(l.HostsHash[:], hosts) == len(hosts) &&
			len(request)+len(hosts) == 64 {
			copy(l.Hash[:], hash)
		}

		list = append(list, l)
		return nil
	})

	return list, err
}

// AuditFile reads the audit of an SQLite database, whether or not a server has it open. It changes nothing.
type AuditFile struct {
	db *sql.DB
}

// OpenAuditFile opens the SQLite database at a path to read its audit. It rejects a damaged database.
func OpenAuditFile(ctx context.Context, path string) (*AuditFile, error) {
	db, err := openToRead(ctx, path)
	if err != nil {
		return nil, err
	}
	f := &AuditFile{db: db}
	if _, err := f.AuditHead(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return f, nil
}

// Close closes the database.
func (f *AuditFile) Close() error { return f.db.Close() }

// AuditAfter implements control.AuditStore.
func (f *AuditFile) AuditAfter(ctx context.Context, seq int64, limit int) ([]gozzard.AuditLink, error) {
	list, err := auditRows(ctx, f.db, `WHERE seq > $1 ORDER BY seq LIMIT $2`, seq, max(limit, 0))
	if err != nil {
		return nil, fmt.Errorf("cannot read the audit: %w", err)
	}
	return list, nil
}

// AuditHead implements control.AuditStore.
func (f *AuditFile) AuditHead(ctx context.Context) (gozzard.AuditHead, error) {
	head, err := auditHead(ctx, f.db)
	if err != nil {
		return head, fmt.Errorf("cannot read the head of the audit "+
			"(if an older version wrote this database, start the server once: it adds the head): %w", err)
	}
	return head, nil
}
