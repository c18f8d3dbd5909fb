package waves

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// itemsAtOnce bounds how many processes are made ready for a job at a time.
const itemsAtOnce = 5000

// Create records a job with a task for every instance and returns; it goes on by itself. What is done to whom is
// decided here: the job does it even if the topology changes meanwhile.
func (r *Runner) Create(ctx context.Context, q record.JobRequest) (record.Job, error) {
	o, ok := orderOf(q.Action)
	if !ok {
		return record.Job{}, gozzard.Errorf(gozzard.ErrInvalid, "a job cannot %s processes", q.Action)
	}

	switch q.Granularity {
	case "":
		q.Granularity = record.ByBusiness
	case record.ByBusiness, record.BySet, record.ByModule, record.ByHost:
	default:
		return record.Job{}, gozzard.Errorf(gozzard.ErrInvalid,
			"%+.32q is not a granularity: it must be BIZ, SET, MODULE or HOST", string(q.Granularity))
	}

	// by its name only, so it does not tell whether there is such a business
	if !q.Caller.Rights.MaySpace(q.Action, topology.Namespace(q.Biz)) {
		return record.Job{}, gozzard.Errorf(gozzard.ErrAppForbidden, "app %s may not %s processes of business %d",
			q.Caller.App, q.Action, q.Biz)
	}

	now := r.o.Now()
	tasks, err := r.tasksFor(ctx, &q, now)
	if err != nil {
		return record.Job{}, err
	}

	giveWaves(tasks, o)
	j := record.Job{
		Biz: q.Biz, Action: q.Action, Caller: q.Caller, Expression: q.Expression, Request: q.Raw,
		Granularity: q.Granularity, State: record.JobPending,
		Started: now,
	}

	if len(tasks) == 0 {
		j.State, j.Reason, j.Message, j.Ended = record.JobFailed, record.ReasonNothing, "no process fits the scope", now
	}
	if err := r.o.Store.CreateJob(ctx, &j, tasks); err != nil {
		return record.Job{}, err
	}
	if !j.State.Final() {
		r.add(jobRef{j.Biz, j.ID})
	}

	return j, nil
}

// tasksFor makes the tasks of a request, in the order of processes and instances.
func (r *Runner) tasksFor(ctx context.Context, q *record.JobRequest, now time.Time) ([]record.JobTask, error) {
	find := q.Query
	find.Biz, find.Order, find.Start, find.Limit = q.Biz, nil, 0, record.MaxJobTasks
	total, rows := r.o.Plane.FindProcesses(q.Caller, find)
	instances := 0
	for i := range rows {
		instances += len(rows[i].Instances)
	}

	if total > record.MaxJobTasks || instances > record.MaxJobTasks {
		return nil, gozzard.Errorf(gozzard.ErrInvalid,
			"a job has at most %d process instances, this scope of %d processes has more: narrow it down",
			record.MaxJobTasks, total)
	}

	tasks := make([]record.JobTask, 0, instances)
	specs := map[string][]byte{} // most instances share a few definitions
	for some := range slices.Chunk(rows, itemsAtOnce) {
		items, err := r.o.Plane.TopologyItems(ctx, q.Biz, some, q.Action)
		if err != nil {
			return nil, err
		}
		for i := range items {
			t := newTask(q, &items[i], now)
			if items[i].Item.Spec != nil && t.State == record.JobPending {
				body := gozzard.EncodeSpec(items[i].Item.Spec)
				if _, known := specs[string(body)]; !known {
					specs[string(body)] = body
				}
				t.Spec = specs[string(body)]
			}
			tasks = append(tasks, t)
		}
	}

	return tasks, nil
}

// newTask makes the task of an instance. One that lacks an attribute fails alone, where GSEKit fails its whole
// group: nothing is wrong with the others of its wave, so they are done. Later waves of its group are held back by
// it as by any other failure.
func newTask(q *record.JobRequest, it *record.TopologyItem, now time.Time) record.JobTask {
	row := it.Row
	instance := row.Instances[it.Instance]
	t := record.JobTask{
		Biz: q.Biz, Process: row.Process, Name: row.Name, Set: row.Set, Module: row.Module, Local: instance.Local,
		Inst: instance.Inst, Key: it.Item.Key,
		Addr: row.Host.Addr(), Group: groupOf(q.Granularity, row), Priority: row.Priority, State: record.JobPending,
		Labels: it.Item.Labels,
	}

	if len(it.Item.Targets) == 1 { // the fleet may know the host by its address only, whatever agent the topology names
		t.Agent = it.Item.Targets[0].Agent
	}
	if q.Info != nil {
		t.Info = q.Info(row, it.Instance)
	}

	if len(it.Missing) > 0 {
		t.State, t.Reason, t.Message, t.Ended = record.JobFailed, record.ReasonMissing,
			strings.Join(it.Missing, ", "), now
	} else if out := refusal(it); out != nil {
		t.State, t.Reason, t.Code, t.Message, t.Ended = record.JobFailed, record.ReasonVerdict, out.Code, out.Message,
			now
	}

	return t
}

// Retry repeats the operation on the failed tasks of a job that has ended: on those named, or on all with nil. It
// is that of the job's creation; a process that lacked an attribute then fails again.
func (r *Runner) Retry(ctx context.Context, caller gozzard.Caller, biz int, id int64, ids []int64) (record.Job, error) {
	j, err := r.Job(ctx, caller, biz, id)
	if err != nil {
		return record.Job{}, err
	}
	if !j.State.Final() {
		return record.Job{}, gozzard.Errorf(gozzard.ErrConflict, "job %d is %s: it can be repeated when it has ended",
			id, j.State)
	}

	page, err := r.o.Store.Tasks(ctx, record.JobTaskFilter{Job: id, Limit: -1, Definitions: true})
	if err != nil {
		return record.Job{}, err
	}

	chosen, err := choose(page.Tasks, ids)
	if err != nil {
		return record.Job{}, err
	}
	if err := r.permit(caller, j.Action, chosen); err != nil {
		return record.Job{}, err
	}

	now := r.o.Now()
	again(chosen, roundOf(page.Tasks)+1, now)
	j.State, j.Reason, j.Message, j.Ended = record.JobPending, record.ReasonNone, "", time.Time{}
	audit := gozzard.AuditRow{At: now, Caller: caller, Act: fmt.Sprintf("retry:%s job %d", j.Action, j.ID),
		Targets: len(chosen)}
	if err := r.o.Store.Reopen(ctx, &j, chosen, audit); err != nil {
		return record.Job{}, err
	}

	r.add(jobRef{j.Biz, j.ID})
	return j, nil
}

// permit refuses a retry to who may not do himself what the job does: it goes on with the rights of who created it.
func (r *Runner) permit(caller gozzard.Caller, a gozzard.Action, tasks []record.JobTask) error {
	for i := range tasks {
		if t := &tasks[i]; !caller.Rights.All() && !r.o.Plane.May(caller, a, t.Key, targetOf(t)) {
			return gozzard.Errorf(gozzard.ErrAppForbidden, "app %s may not %s all of these processes", caller.App, a)
		}
	}
	return nil
}

// choose picks the tasks of a retry: what failed or was never done, of those named.
func choose(tasks []record.JobTask, ids []int64) ([]record.JobTask, error) {
	named := make(map[int64]bool, len(ids))
	for _, id := range ids {
		named[id] = true
	}

	var chosen []record.JobTask
	for i := range tasks {
		t := &tasks[i]
		if len(ids) > 0 && !named[t.ID] {
			continue
		}
		delete(named, t.ID)
		if t.State != record.JobSucceeded && t.State != record.JobIgnored {
			chosen = append(chosen, *t)
		}
	}

	for _, id := range ids {
		if named[id] {
			return nil, gozzard.Errorf(gozzard.ErrNotFound, "the job has no task %d", id)
		}
	}

	if len(chosen) == 0 {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "there is nothing to repeat: no task has failed")
	}

	return chosen, nil
}

// again makes tasks ready for another round.
func again(tasks []record.JobTask, round int, now time.Time) {
	for i := range tasks {
		t := &tasks[i]
		t.Round = round
		if repeatable(t) {
			t.State, t.Reason, t.Code, t.Message, t.Task, t.Started, t.Ended = record.JobPending, record.ReasonNone,
				"", "", "", time.Time{}, time.Time{}
		} else {
			t.Ended = now
		}
	}
}
