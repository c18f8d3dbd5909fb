package sqlstore

import (
	"context"
	"database/sql"
	"iter"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// processPageRows limits how long one query holds a connection. Between pages nothing is locked.
const processPageRows = 1000

// Values of the column former of processes: 0 means that it is not known.
const (
	formerNone  = 1 // the host had no definition
	formerKnown = 2 // it is in the row
)

const processColumns = `p.agent_id, p.namespace, p.name, p.labels, s.body, p.hosted, p.wanted, p.registered_at,
	p.offer_task`

var selectProcesses = withRows(`SELECT `+processColumns+` FROM v
	JOIN processes p ON p.agent_id = v.a AND p.namespace = v.ns AND p.name = v.n LEFT
	JOIN specs s ON s.hash = p.spec_hash
	ORDER BY p.agent_id, p.namespace, p.name`, "a TEXT", "ns TEXT", "n TEXT")

// Processes implements control.Store. It reads page by page, so a slow consumer blocks nothing. A change that is made
// meanwhile may be seen or not.
func (s *Store) Processes(ctx context.Context, ids []gozzard.ProcID) iter.Seq2[record.Process, error] {
	return func(yield func(record.Process, error) bool) {
		next := s.allProcesses(ctx)

		if ids != nil {
			next = s.namedProcesses(ctx, ids)
		}

		for {
			page, err := next()
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if err != nil {
				yield(record.Process{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

// allProcesses returns a function that reads the next page of all processes. A page without processes is the last one.
func (s *Store) allProcesses(ctx context.Context) func() ([]record.Process, error) {
	var after gozzard.ProcID // no agent id is empty, so the zero value is before the first process
	return func() (page []record.Process, err error) {
		defer s.timed("processes", &err)()
		rows, err := s.read.db.QueryContext(ctx, `SELECT `+processColumns+`
			FROM processes p LEFT JOIN specs s ON s.hash = p.spec_hash
			WHERE (p.agent_id, p.namespace, p.name) > ($1, $2, $3) ORDER BY p.agent_id, p.namespace, p.name LIMIT $4`,
			string(after.Agent), after.Namespace, after.Name, processPageRows)
		err = scanAll(rows, err, func(r *sql.Rows) error { return scanProcess(r, &page) })
		if len(page) > 0 {
			after = page[len(page)-1].ID
		}
		return page, s.readError("processes", err)
	}
}

// namedProcesses is allProcesses for the processes in ids.
func (s *Store) namedProcesses(ctx context.Context, ids []gozzard.ProcID) func() ([]record.Process, error) {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, compareProc)
	ids = slices.Compact(ids)

	return func() (page []record.Process, err error) {
		defer s.timed("processes", &err)()
		for len(page) == 0 && len(ids) > 0 { // an empty page would mean the end
			now := ids[:min(len(ids), processPageRows)]
			err := s.read.queryRows(ctx, selectProcesses, len(now), func(i int, to []any) []any {
				return append(to, text(string(now[i].Agent)), text(now[i].Namespace), text(now[i].Name))
			}, func(r *sql.Rows) error { return scanProcess(r, &page) })
			if err != nil {
				return nil, s.readError("processes", err)
			}
			ids = ids[len(now):]
		}
		return page, nil
	}
}

func scanProcess(r *sql.Rows, to *[]record.Process) error {
	var p record.Process
	var labels string
	err := r.Scan(&p.ID.Agent, &p.ID.Namespace, &p.ID.Name, &labels, &p.Spec, &p.Hosted, &p.Wanted,
		(*stamp)(&p.RegisteredAt), &p.Task)
	if err != nil {
		return err
	}
	if p.Labels, err = fromLabels(labels); err != nil {
		return err
	}
	*to = append(*to, p)
	return nil
}
