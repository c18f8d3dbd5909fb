package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

var (
	dispatchAttempts = withRows(`UPDATE attempts SET state = 2, session = v.s, deadline = v.d FROM v
		WHERE attempts.task_seq = v.t AND attempts.idx = v.i AND attempts.agent_id = v.a AND attempts.state = 1
		RETURNING task_seq, idx`,
		"t BIGINT", "i INTEGER", "a TEXT", "s BIGINT", "d BIGINT")

	// f is the set of states that an attempt may be in before, as bits: see sourceBits.
	settleAttempts = withRows(`UPDATE attempts SET state = v.n, outcome = v.o FROM v
		WHERE attempts.task_seq = v.t AND attempts.idx = v.i AND attempts.op_id = v.op AND attempts.agent_id = v.a
		AND (v.f & (1 << attempts.state)) <> 0 AND (v.s = 0 OR attempts.session = v.s)
		RETURNING task_seq, idx`,
		"t BIGINT", "i INTEGER", "op TEXT", "a TEXT", "n INTEGER", "f INTEGER", "s BIGINT", "o TEXT")

	advanceJournals = withRows(`UPDATE host_journals SET lsn = v.l FROM v
		WHERE host_journals.agent_id = v.a AND host_journals.journal_id = v.j AND host_journals.lsn < v.l`,
		"a TEXT", "j TEXT", "l BIGINT")

	flagProcesses = withRows(`UPDATE processes SET hosted = (v.h <> 0), wanted = v.w FROM v
		WHERE processes.agent_id = v.a AND processes.namespace = v.ns AND processes.name = v.n
		AND (processes.hosted <> (v.h <> 0) OR processes.wanted <> v.w)`,
		"a TEXT", "ns TEXT", "n TEXT", "h INTEGER", "w INTEGER")

	// t is the task that removes. What a later operation brings, which is still under way, stays.
	removeProcesses = withRows(fmt.Sprintf(`DELETE FROM processes WHERE (agent_id, namespace, name) IN (
		SELECT a, ns, n FROM v WHERE NOT EXISTS (SELECT 1 FROM attempts o
			JOIN items i ON i.task_seq = o.task_seq AND i.item = o.item
			WHERE o.agent_id = v.a AND o.task_seq > v.t AND o.state < 4 AND i.namespace = v.ns AND i.name = v.n
			AND i.spec_hash IS NOT NULL AND i.action NOT IN (%d, %d, %d, %d, %d, %d, %d)))`,
		gozzard.ActionQuery, gozzard.ActionUnhost, gozzard.ActionUnregister, gozzard.ActionConfigure, gozzard.ActionScript,
		gozzard.ActionTransfer, gozzard.ActionRestartAgent),
		"a TEXT", "ns TEXT", "n TEXT", "t BIGINT")

	// These two return processes to what their hosts have: only if the definition that a host rejected is still the
	// recorded one.
	returnProcesses = withRows(fmt.Sprintf(`UPDATE processes SET spec_hash = processes.former_spec,
		labels = processes.former_labels, offer_task = 0, offer_idx = 0, former = 0, former_labels = '', former_spec = NULL
		FROM v WHERE processes.agent_id = v.a AND processes.namespace = v.ns AND processes.name = v.n
		AND processes.offer_task = v.t AND processes.offer_idx = v.i AND processes.former = %d`, formerKnown),
		"a TEXT", "ns TEXT", "n TEXT", "t BIGINT", "i INTEGER")

	removeRejected = withRows(fmt.Sprintf(`DELETE FROM processes
		WHERE (agent_id, namespace, name, offer_task, offer_idx) IN (SELECT a, ns, n, t, i FROM v) AND former = %d`,
		formerNone),
		"a TEXT", "ns TEXT", "n TEXT", "t BIGINT", "i INTEGER")
)

// selectSessions reads the current sessions of agents. They must not change until the attempts are marked. Where
// several servers share a database, forShare locks the rows, so that no other server opens a newer session meanwhile.
func selectSessions(forShare string) *bulk {
	return withRows(`SELECT h.agent_id, h.session FROM v JOIN hosts h ON h.agent_id = v.a`+forShare, "a TEXT")
}

var readSessions = selectSessions("")

// Sessions implements control.Store.
func (s *Store) Sessions(ctx context.Context, agents []gozzard.AgentID) (_ map[gozzard.AgentID]uint64, err error) {
	defer s.timed("sessions", &err)()
	sessions := make(map[gozzard.AgentID]uint64, len(agents))
	err = s.read.queryRows(ctx, readSessions, len(agents),
		func(i int, to []any) []any { return append(to, text(string(agents[i]))) },
		func(r *sql.Rows) error {
			var agent string
			var session int64
			err := r.Scan(&agent, &session)
			sessions[gozzard.AgentID(agent)] = uint64(session)
			return err
		})
	return sessions, s.readError("sessions", err)
}

// Dispatch implements control.Store.
func (s *Store) Dispatch(ctx context.Context, rows []record.Dispatch) (moved []bool, err error) {
	defer s.timed("dispatch", &err)()
	if len(rows) == 0 {
		return nil, nil
	}
	j := &job{op: "a dispatch", rows: len(rows), run: func(ctx context.Context, c *conn) (err error) {
		moved, err = dispatch(ctx, c, rows)
		return err
	}}
	if err := s.w.submit(ctx, j); err != nil {
		return nil, err
	}
	return moved, nil
}

// dispatch marks attempts as sent, if their session is still the current one of the agent.
func dispatch(ctx context.Context, c *conn, rows []record.Dispatch) ([]bool, error) {
	sessions, err := lockSessions(ctx, c, rows)
	if err != nil {
		return nil, err
	}

	// Leave out the rows of sessions that are over.
	moved := make([]bool, len(rows))
	var now []int
	for i := range rows {
		if id, ok := sessions[rows[i].Agent]; ok && id == counter(rows[i].Session) {
			now = append(now, i)
		}
	}

	ref := func(i int) gozzard.AttemptRef { return rows[i].Ref }
	return moved, casRows(ctx, c, dispatchAttempts, now, ref, moved, func(i int, to []any) []any {
		r := &rows[i]
		return append(to, int64(r.Ref.Task), int64(r.Ref.Index), text(string(r.Agent)), counter(r.Session),
			c.d.clock.recorded(r.Deadline))
	})
}

// lockSessions reads the current sessions of the agents in rows, see selectSessions.
func lockSessions(ctx context.Context, c *conn, rows []record.Dispatch) (map[gozzard.AgentID]int64, error) {
	agents := make([]gozzard.AgentID, 0, len(rows))
	for i := range rows {
		agents = append(agents, rows[i].Agent)
	}

	slices.Sort(agents) // all servers lock in the same order, so there is no deadlock
	agents = slices.Compact(agents)
	sessions := make(map[gozzard.AgentID]int64, len(agents))
	err := c.queryRows(ctx, c.d.sessions, len(agents),
		func(i int, to []any) []any { return append(to, text(string(agents[i]))) },
		func(r *sql.Rows) error {
			var agent string
			var session int64
			if err := r.Scan(&agent, &session); err != nil {
				return err
			}
			sessions[gozzard.AgentID(agent)] = session
			return nil
		})

	return sessions, err
}

// casRows runs a compare-and-set over the rows whose indexes are in at, and sets moved for those that it changed. A
// statement changes each attempt once, so rows that name the same attempt go into different statements, in their order.
func casRows(ctx context.Context, c *conn, b *bulk, at []int, ref func(int) gozzard.AttemptRef, moved []bool,
	args func(int, []any) []any) error {
	for len(at) > 0 {
		// Take rows until an attempt comes a second time.
		index := make(map[gozzard.AttemptRef]int, len(at))
		n := 0
		for ; n < len(at); n++ {
			r := ref(at[n])
			if _, twice := index[r]; twice {
				break
			}
			index[r] = at[n]
		}

		err := c.queryRows(ctx, b, n, func(i int, to []any) []any { return args(at[i], to) }, func(r *sql.Rows) error {
			var task, idx int64
			if err := r.Scan(&task, &idx); err != nil {
				return err
			}
			moved[index[gozzard.AttemptRef{Task: gozzard.TaskSeq(task), Index: int32(idx)}]] = true
			return nil
		})
		if err != nil {
			return err
		}

		at = at[n:]
	}
	return nil
}

// Settle implements control.Store.
func (s *Store) Settle(ctx context.Context, rows []record.Settlement) (moved []bool, err error) {
	defer s.timed("settle", &err)()

	if len(rows) == 0 {
		return nil, nil
	}

	outcomes, known := make([]string, len(rows)), outcomeCache{}
	for i := range rows {
		if outcomes[i], err = known.text(rows[i].Outcome); err != nil {
			return nil, &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "the verdict cannot be recorded", Cause: err}
		}
	}

	j := &job{op: "verdicts", app: appOf(rows), rows: len(rows), run: func(ctx context.Context, c *conn) (err error) {
		moved, err = settle(ctx, c, rows, outcomes, s.o.Now())
		return err
	}}

	if err := s.w.submit(ctx, j); err != nil {
		return nil, err
	}

	return moved, nil
}

// appOf is the app of all rows, "" if they are of several: such a write has its turn as one of the server.
func appOf(rows []record.Settlement) string {
	for i := range rows {
		if rows[i].App != rows[0].App {
			return ""
		}
	}
	return rows[0].App
}

// settle records verdicts, and what they mean for processes and journals.
func settle(ctx context.Context, c *conn, rows []record.Settlement, outcomes []string,
	now time.Time) ([]bool, error) {
	moved := make([]bool, len(rows))
	all := make([]int, len(rows))
	for i := range all {
		all[i] = i
	}

	ref := func(i int) gozzard.AttemptRef { return rows[i].Ref }
	err := casRows(ctx, c, settleAttempts, all, ref, moved, func(i int, to []any) []any {
		r := &rows[i]
		return append(to, int64(r.Ref.Task), int64(r.Ref.Index), r.Op.String(), text(string(r.Agent)), int64(r.To),
			sourceBits(r.To, r.From), counter(r.FromSession), outcomes[i])
	})
	if err != nil {
		return nil, err
	}
	if err := changeProcesses(ctx, c, rows, moved); err != nil {
		return nil, err
	}
	if err := returnRejected(ctx, c, rows, moved); err != nil {
		return nil, err
	}
	if err := auditSettled(ctx, c, rows, moved, now); err != nil {
		return nil, err
	}

	return moved, recordJournals(ctx, c, rows)
}

// sourceBits is the set of states from which an attempt may move to a state, as bits. If from is set, only that one
// remains.
func sourceBits(to, from gozzard.AttemptState) (bits int64) {
	for _, s := range to.Sources() {
		if from == 0 || s == from {
			bits |= 1 << s
		}
	}
	return bits
}

// processChange is a change of a process by a verdict of a task.
type processChange struct {
	*record.ProcessChange
	task gozzard.TaskSeq
}

// changeProcesses applies what the moved rows mean for their processes. The row of the latest task counts: a process
// that is removed stays removed unless a later task brought it again. Within a task the last row counts.
func changeProcesses(ctx context.Context, c *conn, rows []record.Settlement, moved []bool) error {
	change := map[gozzard.ProcID]processChange{}
	for i := range rows {
		p, task := rows[i].Process, rows[i].Ref.Task
		if p == nil || !moved[i] {
			continue
		}
		if old, ok := change[p.ID]; !ok || task > old.task || task == old.task && !old.Remove {
			change[p.ID] = processChange{p, task}
		}
	}

	if len(change) == 0 {
		return nil
	}

	// Separate the processes to remove from those to change.
	var flag, remove []processChange
	for _, p := range change {
		if p.Remove {
			remove = append(remove, p)
		} else {
			flag = append(flag, p)
		}
	}

	// Sort both lists, so that all servers lock rows in the same order.
	key := func(list []processChange) func(int, []any) []any {
		slices.SortFunc(list, func(a, b processChange) int { return compareProc(a.ID, b.ID) })
		return func(i int, to []any) []any {
			return append(to, text(string(list[i].ID.Agent)), text(list[i].ID.Namespace), text(list[i].ID.Name))
		}
	}

	// Write.
	keyRemove, keyFlag := key(remove), key(flag)
	err := c.execRows(ctx, removeProcesses, len(remove), func(i int, to []any) []any {
		return append(keyRemove(i, to), int64(remove[i].task))
	})
	if err != nil {
		return err
	}

	return c.execRows(ctx, flagProcesses, len(flag), func(i int, to []any) []any {
		hosted := int64(0)
		if flag[i].Hosted {
			hosted = 1
		}
		return append(keyFlag(i, to), hosted, int64(flag[i].Wanted))
	})
}

// returnRejected gives processes the definition back that their host has, where the host did not take the one that an
// attempt brought.
func returnRejected(ctx context.Context, c *conn, rows []record.Settlement, moved []bool) error {
	var list []*record.Settlement
	for i := range rows {
		if moved[i] && rows[i].Rejected != nil {
			list = append(list, &rows[i])
		}
	}

	slices.SortFunc(list, func(a, b *record.Settlement) int { // all servers lock in the same order
		return cmp.Or(compareProc(*a.Rejected, *b.Rejected), cmp.Compare(a.Ref.Task, b.Ref.Task))
	})
	args := func(i int, to []any) []any {
		id, ref := list[i].Rejected, list[i].Ref
		return append(to, text(string(id.Agent)), text(id.Namespace), text(id.Name), int64(ref.Task), int64(ref.Index))
	}

	if err := c.execRows(ctx, returnProcesses, len(list), args); err != nil {
		return err
	}
	return c.execRows(ctx, removeRejected, len(list), args)
}

func compareProc(a, b gozzard.ProcID) int {
	if c := strings.Compare(string(a.Agent), string(b.Agent)); c != 0 {
		return c
	}
	return a.Key.Compare(b.Key)
}

// recordJournals records the positions of the agents' journals. A position only moves forward, and only in the journal
// that the agent named when it connected: a late report about an older journal says nothing about the current one.
func recordJournals(ctx context.Context, c *conn, rows []record.Settlement) error {
	type journal struct {
		agent gozzard.AgentID
		id    [16]byte
	}
	lsn := map[journal]int64{}
	var order []journal
	for i := range rows {
		if pos := rows[i].Journal; pos != nil {
			k := journal{rows[i].Agent, pos.ID}
			if _, ok := lsn[k]; !ok {
				order = append(order, k)
			}
			lsn[k] = max(lsn[k], counter(pos.LSN))
		}
	}

	slices.SortFunc(order, func(a, b journal) int { return strings.Compare(string(a.agent), string(b.agent)) })

	return c.execRows(ctx, advanceJournals, len(order), func(i int, to []any) []any {
		return append(to, text(string(order[i].agent)), journalID(order[i].id), lsn[order[i]])
	})
}
