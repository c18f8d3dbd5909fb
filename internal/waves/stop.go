package waves

import (
	"context"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Stop ends a job on configuration files early: what has begun is completed, the rest fails. A second call changes nothing.
func (r *Runner) Stop(ctx context.Context, caller gozzard.Caller, biz int, id int64) (record.Job, error) {
	j, err := r.Job(ctx, caller, biz, id)
	if err != nil {
		return record.Job{}, err
	}
	switch {
	case j.Work == record.WorkNone:
		return record.Job{}, gozzard.Errorf(gozzard.ErrNotFound, "job %d of business %d is not about configuration files", id, biz)
	case j.State.Final():
		return record.Job{}, gozzard.Errorf(gozzard.ErrConflict, "job %d has ended: there is nothing to stop", id)
	}
	if err := r.checkRights(caller, &j, nil); err != nil {
		return record.Job{}, err
	}

	// Record it. Whichever server runs the job reads it before its next part.
	page, err := r.o.Store.Tasks(ctx, record.JobTaskFilter{Job: id, Limit: -1})
	if err != nil {
		return record.Job{}, err
	}
	open := 0
	for i := range page.Tasks {
		if !page.Tasks[i].State.Final() {
			open++
		}
	}
	audit := gozzard.AuditRow{At: r.o.Now(), Caller: caller, Act: fmt.Sprintf("stop:%s job %d", j.Work, j.ID), Targets: open}
	round := roundOf(page.Tasks)
	if err := r.o.Store.StopJob(ctx, biz, id, round, audit); err != nil {
		return record.Job{}, err
	}
	j.Choice.Stopped = &round
	return j, nil
}
