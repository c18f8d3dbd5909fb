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

// itemsAtOnce is how many processes are prepared for a job at a time.
const itemsAtOnce = 5000

// Create records a job with a task for every process instance and returns; Run carries it out. Create decides which
// processes the job operates and how. Later changes of the topology do not change the job.
func (r *Runner) Create(ctx context.Context, q record.JobRequest) (record.Job, error) {
	// Check the request.
	o, ok := orderOf(q.Action)
	if q.Work != record.WorkNone {
		q.Action, o, ok = gozzard.ActionConfigure, unordered, r.o.Worker != nil
	}
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

	// Check the rights. Only the number of the business counts, so the answer does not reveal whether it exists.
	if !q.Caller.Rights.MaySpace(q.Action, topology.Namespace(q.Biz)) {
		if q.Work != record.WorkNone {
			return record.Job{}, gozzard.Errorf(gozzard.ErrAppForbidden,
				q.Caller.Form("app %s may not %s configuration files of business %d: it needs the right to configure",
					"user %s may not %s configuration files of business %d: it needs the right to configure"), q.Caller.Named(), q.Work, q.Biz)
		}
		return record.Job{}, gozzard.Errorf(gozzard.ErrAppForbidden,
			q.Caller.Form("app %s may not %s processes of business %d",
				"user %s may not %s processes of business %d"), q.Caller.Named(), q.Action, q.Biz)
	}

	if err := mayFollow(&q); err != nil {
		return record.Job{}, err
	}

	// Make the tasks and their waves.
	now := r.o.Now()
	tasks, err := r.tasksFor(ctx, &q, now)
	if err != nil {
		return record.Job{}, err
	}

	if err := checkConfirmed(&q, len(tasks)); err != nil {
		return record.Job{}, err
	}

	numberWaves(tasks, o)

	// Record the job and start it.
	j := record.Job{
		Biz: q.Biz, Action: q.Action, Work: q.Work, Choice: q.Choice, Caller: q.Caller, Expression: q.Expression, Request: q.Raw,
		Granularity: q.Granularity, State: record.JobPending, Started: now,
	}
	if r.o.Trace != nil {
		j.Trace = r.o.Trace(ctx, q.Caller)
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

// mayFollow rejects a release of a caller that has no right to what should follow it: no file is written then.
func mayFollow(q *record.JobRequest) error {
	if q.Choice.Then == "" {
		return nil
	}
	action, err := gozzard.ParseAction(q.Choice.Then)
	if err != nil {
		return err
	}
	if !q.Caller.Rights.MaySpace(action, topology.Namespace(q.Biz)) {
		return gozzard.Errorf(gozzard.ErrAppForbidden, q.Caller.Form("app %s may not %s processes of business %d: nothing was released",
			"user %s may not %s processes of business %d: nothing was released"), q.Caller.Named(), action, q.Biz)
	}
	return nil
}

// checkConfirmed rejects a number of tasks that the caller did not expect.
func checkConfirmed(q *record.JobRequest, n int) error {
	var text string
	switch {
	case q.Confirm == n:
		return nil
	case q.Confirm != 0:
		text = fmt.Sprintf("%s concerns %d processes, and confirm is %d: nothing was done", q.Work, n, q.Confirm)
	case q.ConfirmAbove > 0 && n > q.ConfirmAbove:
		text = fmt.Sprintf("%s concerns %d processes, more than %d: repeat it with confirm %d if that is meant", q.Work, n, q.ConfirmAbove, n)
	default:
		return nil
	}
	return &gozzard.Error{Kind: gozzard.ErrInvalid, Faults: []gozzard.Fault{{Path: "confirm", Text: text}}}
}

// tasksFor makes the tasks of a request, in the order of processes and instances.
func (r *Runner) tasksFor(ctx context.Context, q *record.JobRequest, now time.Time) ([]record.JobTask, error) {
	// Find the processes.
	find := q.Query
	find.Biz, find.Order, find.Start, find.Limit = q.Biz, nil, 0, record.MaxJobTasks
	total, rows := r.o.Plane.FindProcesses(q.Caller, find)
	if q.Work != record.WorkNone && total <= record.MaxJobTasks {
		var err error
		if rows, err = r.o.Worker.Choose(ctx, q.Biz, q.Choice, rows); err != nil {
			return nil, err
		}
	}
	instances := 0
	for i := range rows {
		instances += len(rows[i].Instances)
	}

	if total > record.MaxJobTasks || instances > record.MaxJobTasks {
		return nil, gozzard.Errorf(gozzard.ErrInvalid,
			"a job has at most %d process instances, this scope of %d processes has more: narrow it down",
			record.MaxJobTasks, total)
	}

	// Make a task of each instance. Most instances share a few definitions, which are stored once.
	tasks := make([]record.JobTask, 0, instances)
	specs := map[string][]byte{}
	action := q.Action
	if q.Work != record.WorkNone { // files need no definition of the process
		action = gozzard.ActionQuery
	}
	for some := range slices.Chunk(rows, itemsAtOnce) {
		items, err := r.o.Plane.TopologyItems(ctx, q.Biz, some, action)
		if err != nil {
			return nil, err
		}
		for i := range items {
			t := newTask(q, &items[i], now)
			if items[i].Item.Spec != nil && t.State == record.JobPending && q.Work == record.WorkNone {
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

// newTask makes the task of an instance. A task with a missing attribute fails alone; the other tasks of its wave are
// carried out. (GSEKit fails the whole group.) It prevents the later waves of its group, as any other failure does.
func newTask(q *record.JobRequest, it *record.TopologyItem, now time.Time) record.JobTask {
	row := it.Row
	instance := row.Instances[it.Instance]
	t := record.JobTask{
		Biz: q.Biz, Process: row.Process, Name: row.Name, Set: row.Set, Module: row.Module,
		Local: instance.Local, Inst: instance.Inst, Key: it.Item.Key, Addr: row.Host.Addr(),
		Group: groupOf(q.Granularity, row), Priority: row.Priority, State: record.JobPending, Labels: it.Item.Labels,
	}

	// The fleet may know the host by its address only, even if the topology names an agent.
	if len(it.Item.Targets) == 1 {
		t.Agent = it.Item.Targets[0].Agent
	}
	if q.Info != nil {
		t.Info = q.Info(it)
	}

	switch out := rejection(it); {
	case q.Work != record.WorkNone:
	case len(it.Missing) > 0:
		t.State, t.Reason, t.Ended = record.JobFailed, record.ReasonMissing, now
		t.Message = strings.Join(it.Missing, ", ")
	case it.Template != "":
		t.State, t.Reason, t.Ended = record.JobFailed, record.ReasonTemplate, now
		t.Message = it.Template
	case out != nil:
		t.State, t.Reason, t.Ended = record.JobFailed, record.ReasonVerdict, now
		t.Code, t.Message = out.Code, out.Message
	}

	return t
}
