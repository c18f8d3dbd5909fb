package sqlstore

import (
	"context"
	"database/sql"
	"math"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Tasks of an app, or of one of its users, the newest first. The casts are for the reason at ofTask.
const (
	selectTasks = `SELECT ` + taskColumns + ` FROM tasks t WHERE t.seq < CAST($1 AS BIGINT) ORDER BY t.seq DESC LIMIT $2`

	selectTasksOfApp = `SELECT ` + taskColumns + ` FROM tasks t WHERE t.app = CAST($1 AS TEXT)
		AND t.seq < CAST($2 AS BIGINT) ORDER BY t.seq DESC LIMIT $3`
	selectTasksOfUser = `SELECT ` + taskColumns + ` FROM tasks t WHERE t.app = CAST($1 AS TEXT)
		AND t.caller = CAST($2 AS TEXT) AND t.seq < CAST($3 AS BIGINT) ORDER BY t.seq DESC LIMIT $4`
)

// TasksOf implements control.Store.
func (s *Store) TasksOf(ctx context.Context, app, user string, before gozzard.TaskSeq,
	limit int) (list []gozzard.Task, err error) {
	defer s.timed("tasks_of", &err)()
	if before <= 0 {
		before = math.MaxInt64
	}

	query, args := selectTasksOfApp, []any{text(app), int64(before), limit}
	switch {
	case app == "":
		query, args = selectTasks, []any{int64(before), limit}
	case user != "":
		query, args = selectTasksOfUser, []any{text(app), text(user), int64(before), limit}
	}
	err = s.read.each(ctx, query, args, func(r *sql.Rows) error {
		var t gozzard.Task
		if err := r.Scan(taskInto(&t)...); err != nil {
			return err
		}
		list = append(list, t)
		return nil
	})
	return list, s.readError("tasks", err)
}

var (
	selectTaskItems = withRows(`SELECT i.task_seq, i.item, i.namespace, i.name, i.action FROM v
		JOIN items i ON i.task_seq = v.t ORDER BY i.task_seq, i.item`, "t BIGINT")

	selectTaskPlaces = withRows(`SELECT a.task_seq, a.item, a.agent_id, a.cloud, a.ip FROM v
		JOIN attempts a ON a.task_seq = v.t`, "t BIGINT")
)

// selectTaskVerdicts counts the attempts of tasks by item, state and code; code is the SQL that finds the code of an
// attempt a.
func selectTaskVerdicts(code string) *bulk {
	return withRows(`SELECT a.task_seq, a.item, a.state, CASE a.state WHEN 4 THEN '' ELSE `+code+` END, COUNT(*)
		FROM v JOIN attempts a ON a.task_seq = v.t GROUP BY 1, 2, 3, 4`, "t BIGINT")
}

// TaskItems implements control.Store.
func (s *Store) TaskItems(ctx context.Context, tasks []gozzard.TaskSeq) (items map[gozzard.TaskSeq][]record.TaskItem,
	err error) {
	defer s.timed("task_items", &err)()
	items = make(map[gozzard.TaskSeq][]record.TaskItem, len(tasks))
	err = s.read.queryRows(ctx, selectTaskItems, len(tasks), seqArgs(tasks), func(r *sql.Rows) error {
		var task, item, action int64
		var it record.TaskItem
		if err := r.Scan(&task, &item, &it.Key.Namespace, &it.Key.Name, &action); err != nil {
			return err
		}
		it.Index, it.Action = int32(item), gozzard.Action(action)
		items[gozzard.TaskSeq(task)] = append(items[gozzard.TaskSeq(task)], it)
		return nil
	})
	return items, s.readError("items of tasks", err)
}

// TaskVerdicts implements control.Store.
func (s *Store) TaskVerdicts(ctx context.Context, tasks []gozzard.TaskSeq) (list []record.TaskVerdict, err error) {
	defer s.timed("task_verdicts", &err)()
	err = s.read.queryRows(ctx, s.d.taskVerdicts, len(tasks), seqArgs(tasks), func(r *sql.Rows) error {
		var task, item, state int64
		var code sql.NullString
		var v record.TaskVerdict
		if err := r.Scan(&task, &item, &state, &code, &v.N); err != nil {
			return err
		}
		v.Task, v.Item, v.State = gozzard.TaskSeq(task), int32(item), gozzard.AttemptState(state)
		v.Code = gozzard.Code(code.String)
		list = append(list, v)
		return nil
	})
	return list, s.readError("verdicts of tasks", err)
}

// TaskPlaces implements control.Store.
func (s *Store) TaskPlaces(ctx context.Context, tasks []gozzard.TaskSeq) (list []record.TaskPlace, err error) {
	defer s.timed("task_places", &err)()
	err = s.read.queryRows(ctx, selectTaskPlaces, len(tasks), seqArgs(tasks), func(r *sql.Rows) error {
		var task, item, cloud int64
		var agent, ip string
		err := r.Scan(&task, &item, &agent, &cloud, &ip)
		if err != nil {
			return err
		}
		p := record.TaskPlace{Task: gozzard.TaskSeq(task), Item: int32(item), Agent: gozzard.AgentID(agent)}
		if p.Addr, err = hostAddr(cloud, ip); err != nil {
			return err
		}
		list = append(list, p)
		return nil
	})
	return list, s.readError("hosts of tasks", err)
}

func seqArgs(tasks []gozzard.TaskSeq) func(int, []any) []any {
	return func(i int, to []any) []any { return append(to, int64(tasks[i])) }
}
