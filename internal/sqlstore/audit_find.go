package sqlstore

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	maxAuditScan = 20_000    // rows that one call looks at; the caller goes on where it ended
	auditSkew    = time.Hour // rows are in the order of their commits: their times may differ from it by less
)

// FindAudit lists at most limit rows that a filter chooses, and where to go on: next is a number for After, or for
// Before with Newest, and 0 at the end. A page may have fewer rows, or none, although there are more.
func (s *Store) FindAudit(ctx context.Context, f gozzard.AuditFilter, limit int) (list []gozzard.AuditFound, next int64,
	err error) {
	defer s.timed("find_audit", &err)()
	list, next, err = findAudit(ctx, s.auditDB(), &f, limit)
	return list, next, s.readError("the audit", err)
}

// FindAudit is Store.FindAudit.
func (f *AuditFile) FindAudit(ctx context.Context, filter gozzard.AuditFilter, limit int) ([]gozzard.AuditFound, int64,
	error) {
	return findAudit(ctx, f.audit, &filter, limit)
}

func findAudit(ctx context.Context, db auditDB, f *gozzard.AuditFilter, limit int) (list []gozzard.AuditFound, next int64,
	err error) {
	hosts := hostMatcher{db: db, name: f.Host, known: map[[32]byte]bool{}}
	at := f.After
	if f.Newest {
		at = f.Before
		if at <= 0 {
			at = math.MaxInt64
		}
	}

	for seen := 0; seen < maxAuditScan; {
		page, err := auditPage(ctx, db, at, f.Newest)
		if err != nil {
			return nil, 0, err
		}
		for i := range page {
			l := &page[i]
			at = l.Seq
			if f.Newest && !f.Since.IsZero() && l.At.Before(f.Since.Add(-auditSkew)) {
				return list, 0, addResults(ctx, db, list)
			}
			ok := f.Match(&l.AuditRow)
			if ok {
				if ok, err = hosts.match(ctx, &l.AuditRow); err != nil {
					return nil, 0, err
				}
			}
			if ok {
				list = append(list, gozzard.AuditFound{AuditLink: *l})
			}
			if len(list) == limit {
				return list, at, addResults(ctx, db, list)
			}
		}
		if len(page) < auditPageRows {
			return list, 0, addResults(ctx, db, list)
		}
		seen += len(page)
	}

	return list, at, addResults(ctx, db, list)
}

func auditPage(ctx context.Context, db auditDB, at int64, newest bool) ([]gozzard.AuditLink, error) {
	if newest {
		return auditRows(ctx, db, `WHERE seq < $1 ORDER BY seq DESC LIMIT $2`, at, auditPageRows)
	}
	return auditRows(ctx, db, `WHERE seq > $1 ORDER BY seq LIMIT $2`, at, auditPageRows)
}

// addResults adds the outcomes that later rows have.
func addResults(ctx context.Context, db auditDB, list []gozzard.AuditFound) error {
	index := map[int64]int{}
	var first, last int64 = math.MaxInt64, 0
	for i := range list {
		if list[i].TaskID != "" && list[i].Ref == 0 {
			index[list[i].Seq] = i
			first, last = min(first, list[i].Seq), max(last, list[i].Seq)
		}
	}
	if len(index) == 0 || db.plain {
		return nil
	}

	rows, err := db.QueryContext(ctx, `SELECT seq, ref, outcome FROM audit WHERE ref > 0 AND ref >= $1 AND ref <= $2
		AND act <> $3`, first, last, actPolicy)
	return scanAll(rows, err, func(r *sql.Rows) error {
		var seq, ref int64
		var outcome string
		if err := r.Scan(&seq, &ref, &outcome); err != nil {
			return err
		}
		if i, ok := index[ref]; ok {
			list[i].Result, list[i].ResultRow = outcome, seq
		}
		return nil
	})
}

// hostMatcher looks for a host in the lists of rows. Many rows share a list.
type hostMatcher struct {
	db    auditDB
	name  string
	known map[[32]byte]bool
}

func (m *hostMatcher) match(ctx context.Context, r *gozzard.AuditRow) (bool, error) {
	if m.name == "" {
		return true, nil
	}
	if r.HostsHash == [32]byte{} {
		return false, nil
	}
	if ok, known := m.known[r.HostsHash]; known {
		return ok, nil
	}

	text, _, err := auditText(ctx, m.db, r.HostsHash)
	if err != nil {
		return false, err
	}
	ok := slices.ContainsFunc(gozzard.ParseHostLines(text), func(h gozzard.AuditHost) bool { return h.Is(m.name) })
	m.known[r.HostsHash] = ok
	return ok, nil
}

// AuditRow reads one row with its outcome.
func (s *Store) AuditRow(ctx context.Context, seq int64) (row gozzard.AuditFound, err error) {
	defer s.timed("audit_row", &err)()
	row, err = auditRow(ctx, s.auditDB(), seq)
	return row, s.readError("the audit", err)
}

// AuditRow is Store.AuditRow.
func (f *AuditFile) AuditRow(ctx context.Context, seq int64) (gozzard.AuditFound, error) {
	return auditRow(ctx, f.audit, seq)
}

func auditRow(ctx context.Context, db auditDB, seq int64) (row gozzard.AuditFound, err error) {
	links, err := auditRows(ctx, db, `WHERE seq = $1`, seq)
	if err != nil {
		return row, err
	}
	if len(links) == 0 {
		return row, gozzard.Errorf(gozzard.ErrNotFound, "the audit has no row %d", seq)
	}
	list := []gozzard.AuditFound{{AuditLink: links[0]}}
	err = addResults(ctx, db, list)
	return list[0], err
}
