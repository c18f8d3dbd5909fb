package waves

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// Retry repeats the failed tasks of a job that has ended: those with the given ids, or all for nil. Each task is
// carried out as it was created; a process with a missing attribute fails again.
func (r *Runner) Retry(ctx context.Context, caller gozzard.Caller, biz int, id int64, ids []int64) (record.Job, error) {
	// Check the job.
	j, err := r.Job(ctx, caller, biz, id)
	if err != nil {
		return record.Job{}, err
	}
	if !j.State.Final() {
		return record.Job{}, gozzard.Errorf(gozzard.ErrConflict, "job %d is %s: it can be repeated when it has ended",
			id, j.State)
	}

	// Choose the tasks.
	page, err := r.o.Store.Tasks(ctx, record.JobTaskFilter{Job: id, Limit: -1, Definitions: true})
	if err != nil {
		return record.Job{}, err
	}

	chosen, err := failedTasks(page.Tasks, ids)
	if err != nil {
		return record.Job{}, err
	}
	if err := r.checkRights(caller, &j, chosen); err != nil {
		return record.Job{}, err
	}

	// Record the new round and start it.
	now := r.o.Now()
	reset(chosen, roundOf(page.Tasks)+1, now)
	j.State, j.Reason, j.Message, j.Ended = record.JobPending, record.ReasonNone, "", time.Time{}
	audit := gozzard.AuditRow{
		At: now, Caller: caller, Act: fmt.Sprintf("retry:%s job %d", cmp.Or(string(j.Work), j.Action.String()), j.ID),
		Targets: len(chosen),
	}
	if err := r.o.Store.Reopen(ctx, &j, chosen, audit); err != nil {
		return record.Job{}, err
	}

	r.add(jobRef{j.Biz, j.ID})
	return j, nil
}

// checkRights rejects a retry by a caller that may not do what the job does. The job itself runs with the rights of its
// creator.
func (r *Runner) checkRights(caller gozzard.Caller, j *record.Job, tasks []record.JobTask) error {
	a := j.Action
	if j.Work != record.WorkNone {
		if !caller.Rights.MaySpace(a, topology.Namespace(j.Biz)) {
			return gozzard.Errorf(gozzard.ErrAppForbidden,
				caller.Form("app %s may not %s configuration files of business %d: it needs the right to configure",
					"user %s may not %s configuration files of business %d: it needs the right to configure"), caller.Named(), j.Work, j.Biz)
		}
		return nil
	}
	for i := range tasks {
		if t := &tasks[i]; !caller.Rights.All() && !r.o.Plane.May(caller, a, t.Key, targetOf(t), t.Spec) {
			return gozzard.Errorf(gozzard.ErrAppForbidden, caller.Form("app %s may not %s all of these processes",
				"user %s may not %s all of these processes"), caller.Named(), a)
		}
	}
	return nil
}

// failedTasks returns the tasks of a retry: those that failed or were never carried out, of those with the given ids.
func failedTasks(tasks []record.JobTask, ids []int64) ([]record.JobTask, error) {
	named := make(map[int64]bool, len(ids))
	for _, id := range ids {
		named[id] = true
	}

	// Choose the tasks that are neither done nor ignored.
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

	// Reject ids that the job does not have, and a retry of nothing.
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

// reset prepares tasks for another round.
func reset(tasks []record.JobTask, round int, now time.Time) {
	for i := range tasks {
		t := &tasks[i]
		t.Round = round
		if repeatable(t) {
			t.State, t.Reason, t.Code, t.Message, t.Task = record.JobPending, record.ReasonNone, "", "", ""
			t.Started, t.Ended = time.Time{}, time.Time{}
		} else {
			t.Ended = now
		}
	}
}
