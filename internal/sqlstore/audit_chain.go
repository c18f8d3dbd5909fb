package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/gozzard/gozzard"
)

// auditVersion is the migration that chains the audit. It is in Go because no hash of SHA-256 can be made in the
// SQL of both databases.
const auditVersion = 6

// chainPage is how many old rows are read at a time: a transaction of PostgreSQL cannot read and write at once.
const chainPage = 1000

func auditMigration(words *strings.Replacer) *goose.Migration {
	return goose.NewGoMigration(auditVersion, &goose.GoFunc{RunTx: func(ctx context.Context,
		tx *sql.Tx) error {
		return chainAudit(ctx, tx, words)
	}}, nil)
}

// chainAudit adds what the chain needs and chains the rows of before: they are as they were found, and cannot be
// changed unnoticed from now on.
func chainAudit(ctx context.Context, tx *sql.Tx, words *strings.Replacer) error {
	for _, ddl := range []string{
		`ALTER TABLE audit ADD COLUMN hosts_hash BYTEA NOT NULL DEFAULT ''`,
		`ALTER TABLE audit ADD COLUMN hash BYTEA NOT NULL DEFAULT ''`,
		// One row: the newest of the audit. Without it nobody could tell that rows were removed from the end.
		`CREATE TABLE audit_head (one SMALLINT NOT NULL PRIMARY KEY, seq BIGINT NOT NULL, hash BYTEA NOT NULL) WITHOUT ROWID`,
	} {
		if _, err := tx.ExecContext(ctx, words.Replace(ddl)); err != nil {
			return err
		}
	}

	var head gozzard.AuditHead
	for {
		rows, err := auditRows(ctx, tx, `WHERE seq > $1 ORDER BY seq LIMIT $2`, head.Seq, chainPage)
		if err != nil {
			return fmt.Errorf("cannot read the audit: %w", err)
		}
		for i := range rows {
			r := &rows[i].AuditRow
			head = gozzard.AuditHead{Seq: r.Seq, Hash: r.Chain(head.Hash)}
			if _, err := tx.ExecContext(ctx, `UPDATE audit SET hosts_hash = $2, hash = $3 WHERE seq = $1`, r.Seq,
				r.HostsHash[:], head.Hash[:]); err != nil {
				return err
			}
		}
		if len(rows) < chainPage {
			break
		}
	}

	_, err := tx.ExecContext(ctx, `INSERT INTO audit_head (one, seq, hash) VALUES (1, $1, $2)`, head.Seq, head.Hash[:])
	return err
}
