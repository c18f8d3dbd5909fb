package sqlstore

import (
	"context"
	"database/sql"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

var selectCauses = withRows(`SELECT a.task_seq, a.idx, a.op_id, a.agent_id, i.namespace, i.name, t.task_id, t.app, t.caller
	FROM v JOIN attempts a ON a.task_seq = v.t AND a.idx = v.i JOIN tasks t ON t.seq = a.task_seq
	JOIN items i ON i.task_seq = a.task_seq AND i.item = a.item`, "t BIGINT", "i INTEGER")

// EventCauses implements control.Store.
func (s *Store) EventCauses(ctx context.Context, refs []gozzard.AttemptRef) (
	causes map[gozzard.AttemptRef]record.EventCause, err error) {
	defer s.timed("event_causes", &err)()
	causes = make(map[gozzard.AttemptRef]record.EventCause, len(refs))
	args := func(i int, to []any) []any { return append(to, int64(refs[i].Task), int64(refs[i].Index)) }

	err = s.read.queryRows(ctx, selectCauses, len(refs), args, func(r *sql.Rows) error {
		var task, index int64
		var op, agent string
		var c record.EventCause
		err := r.Scan(&task, &index, &op, &agent, &c.Key.Namespace, &c.Key.Name, (*taskID)(&c.Task), &c.App, &c.User)
		if err != nil {
			return err
		}
		if c.Op, err = gozzard.ParseOpID(op); err != nil {
			return err
		}
		c.Agent = gozzard.AgentID(agent)
		causes[gozzard.AttemptRef{Task: gozzard.TaskSeq(task), Index: int32(index)}] = c
		return nil
	})

	return causes, s.readError("causes of events", err)
}
