package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/gozzard/gozzard"
)

const (
	// legacyColumns are those that rule 1 of the chain covers.
	legacyColumns = "seq, at, app, caller, asserted, act, task_id, request_hash, targets, hosts_hash"
	auditColumns  = legacyColumns + ", rule, door, source, request_id, accounts, outcome, ref, events, content"
	// plainColumns stand for auditColumns in a file that does not have those of rule 2.
	plainColumns = legacyColumns + ", 1, '', '', '', '', '', 0, 0, x''"
)

// The rules of the chain, as they are stored. gozzard.AuditRow.Legacy stands for the first.
const (
	legacyRule = 1
	auditRule  = 2
)

// addAudit gives a row its number and inserts it.
func addAudit(ctx context.Context, c *conn, a gozzard.AuditRow) (err error) {
	if a.Seq, err = nextNumber(ctx, c); err != nil {
		return err
	}
	return insertAudit(ctx, c, &a)
}

// withOrigin writes into a row where its request came from, unless the row says so already.
func withOrigin(ctx context.Context, a gozzard.AuditRow) gozzard.AuditRow {
	o := gozzard.OriginOf(ctx)
	a.Door, a.Source, a.RequestID = cmp.Or(a.Door, o.Door), cmp.Or(a.Source, o.Source), cmp.Or(a.RequestID, o.RequestID)
	return a
}

// insertAudit adds a row to the audit and chains it to the newest row. The caller got the row's number from nextNumber
// in the same transaction. That locks the counter until the commit, so no other transaction adds a row meanwhile, even
// when several servers share a database.
func insertAudit(ctx context.Context, c *conn, a *gozzard.AuditRow) error {
	texts, err := packTexts(a.Texts)
	if err != nil {
		return err
	}
	if err := putTexts(ctx, c, texts); err != nil {
		return fmt.Errorf("texts of the audit: %w", err)
	}

	// Hash the values as they are stored and read back.
	row := *a
	row.Legacy = false
	row.At = fromMillis(millis(a.At))
	for _, s := range []*string{&row.Caller.App, &row.Caller.User, &row.Act, &row.TaskID, &row.Door, &row.Source,
		&row.RequestID, &row.Accounts, &row.Outcome} {
		*s = text(*s)
	}

	// Chain the row to the newest one, and make it the newest.
	head, err := c.auditHead(ctx)
	if err != nil {
		return err
	}
	hash := row.Chain(head.hash)
	c.late.head, c.late.linked = &auditLink{seq: row.Seq, hash: hash}, true
	return c.later(ctx, insertAudits, []any{row.Seq, millis(row.At), row.Caller.App, row.Caller.User, row.Caller.Asserted, row.Act,
		row.TaskID, row.RequestHash[:], row.Targets, row.HostsHash[:], auditRule, row.Door, row.Source, row.RequestID,
		row.Accounts, row.Outcome, row.Ref, row.Count, row.Content[:], hash[:]})
}

var insertAudits = insertRows("audit", auditColumns+", hash", "")

// AddAudit implements audit.Store.
func (s *Store) AddAudit(ctx context.Context, rows []gozzard.AuditRow) (err error) {
	defer s.timed("add_audit", &err)()
	return s.w.submit(ctx, &job{op: "rows of the audit", rows: len(rows), grows: true,
		run: func(ctx context.Context, c *conn) error {
			for i := range rows {
				if err := addAudit(ctx, c, rows[i]); err != nil {
					return err
				}
			}
			return nil
		}})
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
	links, err := auditRows(ctx, s.auditDB(), `ORDER BY seq DESC LIMIT $1`, max(limit, 0))
	for i := range links {
		list = append(list, links[i].AuditRow)
	}
	return list, s.readError("the audit", err)
}

// AuditAfter implements control.AuditStore.
func (s *Store) AuditAfter(ctx context.Context, seq int64, limit int) (list []gozzard.AuditLink, err error) {
	defer s.timed("audit_after", &err)()
	list, err = auditRows(ctx, s.auditDB(), `WHERE seq > $1 ORDER BY seq LIMIT $2`, seq, max(limit, 0))
	return list, s.readError("the audit", err)
}

// AuditHead implements control.AuditStore.
func (s *Store) AuditHead(ctx context.Context) (head gozzard.AuditHead, err error) {
	defer s.timed("audit_head", &err)()
	head, err = auditHead(ctx, s.read.db)
	return head, s.readError("the audit", err)
}

// NewestAudit is when the newest row of the audit was written; zero when there is none.
func (s *Store) NewestAudit(ctx context.Context) (at time.Time, err error) {
	defer s.timed("newest_audit", &err)()
	var last int64
	err = s.read.db.QueryRowContext(ctx, `SELECT COALESCE(MAX(at), 0) FROM audit`).Scan(&last)
	if err != nil || last == 0 {
		return time.Time{}, s.readError("the audit", err)
	}
	return fromMillis(last), nil
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

// auditDB is a database whose audit is read.
type auditDB struct {
	querier
	plain bool // a version before rule 2 wrote it: it has neither the columns of that rule nor texts
}

func (s *Store) auditDB() auditDB { return auditDB{querier: s.read.db} }

// auditOf finds out which columns the audit of a file has. A file is not brought up to date before it is read.
func auditOf(ctx context.Context, db *sql.DB) (auditDB, error) {
	var columns int
	err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM pragma_table_info('audit') WHERE name = 'rule'`).Scan(&columns)
	if err != nil {
		return auditDB{}, fmt.Errorf("cannot read the columns of the audit: %w", err)
	}
	return auditDB{querier: db, plain: columns == 0}, nil
}

// auditRows reads the rows of the audit that which, the end of a SELECT, asks for.
func auditRows(ctx context.Context, db auditDB, which string, args ...any) (list []gozzard.AuditLink, err error) {
	columns := auditColumns
	if db.plain {
		columns = plainColumns
	}
	rows, err := db.QueryContext(ctx, `SELECT `+columns+`, hash FROM audit `+which, args...)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		var l gozzard.AuditLink
		var request, hosts, content, hash []byte
		var rule int
		err := r.Scan(&l.Seq, (*stamp)(&l.At), &l.Caller.App, &l.Caller.User, &l.Caller.Asserted, &l.Act, &l.TaskID,
			&request, &l.Targets, &hosts, &rule, &l.Door, &l.Source, &l.RequestID, &l.Accounts, &l.Outcome, &l.Ref,
			&l.Count, &content, &hash)
		if err != nil {
			return err
		}

		// A row with a hash of a wrong length, or with an unknown rule, gets no chain hash. Then it fits nowhere, and the
		// check of the chain reports it.
		l.Legacy = rule == legacyRule
		whole := copy(l.RequestHash[:], request) == len(request) && copy(l.HostsHash[:], hosts) == len(hosts) &&
			copy(l.Content[:], content) == len(content) && len(request)+len(hosts) == 64
		if whole && (l.Legacy && l.Plain() || rule == auditRule && len(content) == len(l.Content)) {
			copy(l.Hash[:], hash)
		}

		list = append(list, l)
		return nil
	})

	return list, err
}

// AuditFile reads the audit of an SQLite database, whether or not a server has it open. It changes nothing.
type AuditFile struct {
	db    *sql.DB
	audit auditDB
}

// OpenAuditFile opens the SQLite database at a path to read its audit. It rejects a damaged database. An older version
// may have written it.
func OpenAuditFile(ctx context.Context, path string) (*AuditFile, error) {
	db, err := openToRead(ctx, path)
	if err != nil {
		return nil, err
	}
	f := &AuditFile{db: db}
	if _, err := f.AuditHead(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if f.audit, err = auditOf(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return f, nil
}

// OpenAuditPostgres opens the PostgreSQL database at an address to read its audit. Servers may use it.
func OpenAuditPostgres(ctx context.Context, dsn string) (*AuditFile, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil { // pgx leaves the password out of this error
		return nil, fmt.Errorf("cannot read the address of the database: %w", err)
	}
	setDefaults(cfg, map[string]string{"application_name": "gozzard audit", "default_transaction_read_only": "on"})
	limitAnswers(cfg)
	db := stdlib.OpenDB(*cfg)
	f := &AuditFile{db: db, audit: auditDB{querier: db}}
	if _, err := f.AuditHead(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return f, nil
}

// Close closes the database.
func (f *AuditFile) Close() error { return f.db.Close() }

// AuditAfter implements control.AuditStore.
func (f *AuditFile) AuditAfter(ctx context.Context, seq int64, limit int) ([]gozzard.AuditLink, error) {
	list, err := auditRows(ctx, f.audit, `WHERE seq > $1 ORDER BY seq LIMIT $2`, seq, max(limit, 0))
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
