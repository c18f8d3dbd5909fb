package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/gozzard/gozzard"
)

// auditVersion is the number of the migration that chains the audit. The migration is in Go because the SQL of the two
// databases has no common way to compute SHA-256.
const auditVersion = 6

// auditPageRows is how many audit rows are read at a time. Reading and writing alternate, because a PostgreSQL
// transaction cannot write while rows of a query are open.
const auditPageRows = 1000

func auditMigration(words *strings.Replacer) *goose.Migration {
	chain := func(ctx context.Context, tx *sql.Tx) error { return chainAudit(ctx, tx, words) }
	return goose.NewGoMigration(auditVersion, &goose.GoFunc{RunTx: chain}, nil)
}

// chainAudit adds the columns of the chain and chains the existing rows. Nothing proves that those were not changed
// before; from now on a change is noticed.
func chainAudit(ctx context.Context, tx *sql.Tx, words *strings.Replacer) error {
	for _, ddl := range []string{
		`ALTER TABLE audit ADD COLUMN hosts_hash BYTEA NOT NULL DEFAULT ''`,
		`ALTER TABLE audit ADD COLUMN hash BYTEA NOT NULL DEFAULT ''`,
		// One row: the newest of the audit. Without it, removing rows from the end would not be noticed.
		`CREATE TABLE audit_head (one SMALLINT NOT NULL PRIMARY KEY, seq BIGINT NOT NULL,
			hash BYTEA NOT NULL) WITHOUT ROWID`,
	} {
		if _, err := tx.ExecContext(ctx, words.Replace(ddl)); err != nil {
			return err
		}
	}

	var head gozzard.AuditHead
	for {
		rows, err := legacyRows(ctx, tx, head.Seq)
		if err != nil {
			return fmt.Errorf("cannot read the audit: %w", err)
		}
		for i := range rows {
			r := &rows[i]
			head = gozzard.AuditHead{Seq: r.Seq, Hash: r.Chain(head.Hash)}
			if _, err := tx.ExecContext(ctx, `UPDATE audit SET hosts_hash = $2, hash = $3 WHERE seq = $1`, r.Seq,
				r.HostsHash[:], head.Hash[:]); err != nil {
				return err
			}
		}
		if len(rows) < auditPageRows {
			break
		}
	}

	_, err := tx.ExecContext(ctx, `INSERT INTO audit_head (one, seq, hash) VALUES (1, $1, $2)`, head.Seq, head.Hash[:])
	return err
}

// legacyRows reads rows of the audit as it was before the migration that added the columns of rule 2.
func legacyRows(ctx context.Context, tx *sql.Tx, after int64) (list []gozzard.AuditRow, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT `+legacyColumns+` FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2`, after,
		auditPageRows)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		a := gozzard.AuditRow{Legacy: true}
		var request, hosts []byte
		err := r.Scan(&a.Seq, (*stamp)(&a.At), &a.Caller.App, &a.Caller.User, &a.Caller.Asserted, &a.Act, &a.TaskID,
			&request, &a.Targets, &hosts)
		copy(a.RequestHash[:], request)
		copy(a.HostsHash[:], hosts)
		list = append(list, a)
		return err
	})
	return list, err
}
