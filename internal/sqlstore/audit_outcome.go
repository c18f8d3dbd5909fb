package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

// settleTasks counts down the attempts of tasks that have no verdict, and returns the tasks that have all of theirs.
var settleTasks = withRows(`UPDATE tasks SET unsettled = tasks.unsettled - v.n FROM v
	WHERE tasks.seq = v.t AND tasks.unsettled >= v.n
	RETURNING seq, task_id, app, caller, asserted, door, accepted_at, targets, trace, unsettled`,
	"t BIGINT", "n INTEGER")

// auditSettled counts verdicts, and writes the row of the outcome for each task that has its last one. It is a part of
// the transaction that records the verdicts.
func auditSettled(ctx context.Context, c *conn, rows []record.Settlement, moved []bool, now time.Time) error {
	// Count the new verdicts of each task. Only an attempt without a verdict gets one.
	count := map[gozzard.TaskSeq]int{}
	for i := range rows {
		if moved[i] && rows[i].To.Final() {
			count[rows[i].Ref.Task]++
		}
	}
	if len(count) == 0 {
		return nil
	}

	tasks := make([]gozzard.TaskSeq, 0, len(count))
	for t := range count {
		tasks = append(tasks, t)
	}
	slices.Sort(tasks) // all servers lock in the same order

	// Find the tasks that are done.
	var done []gozzard.Task
	err := c.queryRows(ctx, settleTasks, len(tasks),
		func(i int, to []any) []any { return append(to, int64(tasks[i]), count[tasks[i]]) },
		func(r *sql.Rows) error {
			var t gozzard.Task
			var left int
			err := r.Scan(append(taskInto(&t), &left)...)
			if left == 0 {
				done = append(done, t)
			}
			return err
		})
	if err != nil {
		return fmt.Errorf("open attempts of tasks: %w", err)
	}

	slices.SortFunc(done, func(a, b gozzard.Task) int { return int(a.Seq - b.Seq) })
	return auditVerdicts(ctx, c, done, now)
}

// auditVerdicts writes into the audit how many attempts of each task had which verdict. The row refers to the row of
// the task, which has the number of the task.
func auditVerdicts(ctx context.Context, c *conn, tasks []gozzard.Task, now time.Time) error {
	if len(tasks) == 0 {
		return nil
	}

	counts := make(map[gozzard.TaskSeq]*verdicts, len(tasks))
	err := c.queryRows(ctx, c.d.verdicts, len(tasks),
		func(i int, to []any) []any { return append(to, int64(tasks[i].Seq)) }, func(r *sql.Rows) error {
			var seq gozzard.TaskSeq
			var state gozzard.AttemptState
			var code sql.NullString
			var action int64
			var n int
			if err := r.Scan(&seq, &state, &code, &action, &n); err != nil {
				return err
			}
			if counts[seq] == nil {
				counts[seq] = &verdicts{}
			}
			counts[seq].add(gozzard.Action(action), state, gozzard.Code(code.String), n)
			return nil
		})
	if err != nil {
		return fmt.Errorf("verdicts: %w", err)
	}

	var refused []gozzard.Task
	for i := range tasks {
		v := counts[tasks[i].Seq]
		if v == nil {
			v = &verdicts{}
		}
		if v.codes[gozzard.CodeRefused] > 0 {
			refused = append(refused, tasks[i])
		}
		if err := addAudit(ctx, c, v.row(&tasks[i], now)); err != nil {
			return err
		}
	}
	return auditRefused(ctx, c, refused, now)
}

// selectVerdicts counts the attempts of tasks by state, code and action; code is the SQL that finds the code of an attempt
// a. Most tasks have one item for all of their attempts, so it is looked up after they are counted.
func selectVerdicts(code string) *bulk {
	return withRows(`SELECT g.t, g.state, g.code, COALESCE(i.action, 0), CAST(SUM(g.n) AS BIGINT)
		FROM (SELECT a.task_seq AS t, a.item AS item, a.state AS state, `+code+` AS code, COUNT(*) AS n
			FROM v JOIN attempts a ON a.task_seq = v.t GROUP BY 1, 2, 3, 4) g
		LEFT JOIN items i ON i.task_seq = g.t AND i.item = g.item
		GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`, "t BIGINT")
}

// verdicts are the counts of one task.
type verdicts struct {
	states [16]int
	noted  int // attempts that had nothing to do: they have not failed
	codes  map[gozzard.Code]int
}

func (v *verdicts) add(a gozzard.Action, state gozzard.AttemptState, code gozzard.Code, n int) {
	switch {
	case state != gozzard.AttemptOK && gozzard.NothingToDo(a, code):
		v.noted += n
	case int(state) < len(v.states):
		v.states[state] += n
	}

	if v.codes == nil {
		v.codes = map[gozzard.Code]int{}
	}
	v.codes[code] += n
}

// maxCodes bounds the outcome of a row. There are fewer codes; another number would come from a damaged record.
const maxCodes = 64

// row is the audit row of the outcome. Its act has the counts by state, as in earlier versions, and those with nothing to
// do apart; its outcome has them by code.
func (v *verdicts) row(t *gozzard.Task, now time.Time) gozzard.AuditRow {
	var states, codes []string
	for s, n := range v.states {
		if n > 0 {
			states = append(states, fmt.Sprintf("%s=%d", gozzard.AttemptState(s), n))
		}
	}
	if v.noted > 0 {
		states = append(states, fmt.Sprintf("noted=%d", v.noted))
	}
	for code, n := range v.codes {
		codes = append(codes, fmt.Sprintf("%s=%d", code, n))
	}
	slices.Sort(codes)

	return gozzard.AuditRow{At: now, Caller: t.Caller, Act: "verdicts:" + strings.Join(states, ","),
		Origin: gozzard.Origin{Door: t.Door}, TaskID: taskname.Of(t.ID), Targets: t.Targets, Ref: int64(t.Seq),
		Outcome: strings.Join(codes[:min(len(codes), maxCodes)], ",")}
}
