package waves

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/pace"
	"github.com/gozzard/gozzard/internal/record"
)

// runJob runs a job from its recorded state to its end. The record contains everything that decides about the next
// step, so it does not matter whether the job is new or was interrupted.
func (r *Runner) runJob(ctx context.Context, ref jobRef) error {
	// Load the job.
	j, tasks, err := r.load(ctx, ref)
	if err != nil || j.State.Final() {
		return err
	}

	if j.State == record.JobPending {
		j.State = record.JobRunning
		if err := r.save(ctx, &j, nil); err != nil {
			return err
		}
	}

	// Do its tasks.
	ctx = gozzard.WithTrace(ctx, j.Trace)
	if j.Work != record.WorkNone {
		err = r.runWork(ctx, &j, tasks)
	} else {
		err = r.runGroups(ctx, &j, groupsOf(tasks))
	}
	if err != nil {
		return err
	}

	// Count all tasks, also those that a retry left out.
	var page record.JobTaskPage
	err = r.retryUntilDone(ctx, "counts of a job", func() (err error) {
		page, err = r.o.Store.Tasks(ctx, record.JobTaskFilter{Job: j.ID})
		return err
	})
	if err != nil {
		return err
	}
	if page.Counts[record.JobPending]+page.Counts[record.JobRunning] > 0 { // another server has accepted a retry
		r.add(ref)
		return nil
	}

	// Record the end.
	j.State, j.Ended = record.JobSucceeded, r.o.Now()
	if page.Counts[record.JobFailed] > 0 {
		j.State = record.JobFailed
	}

	r.o.Log.Info("job ended", "job", j.ID, "biz", j.Biz, "action", j.Action, "state", j.State,
		"failed", page.Counts[record.JobFailed])
	return r.save(ctx, &j, nil)
}

// load reads a job and its tasks; no tasks if it has ended.
func (r *Runner) load(ctx context.Context, ref jobRef) (j record.Job, tasks []record.JobTask, err error) {
	err = r.retryUntilDone(ctx, "a job", func() (err error) {
		j, err = r.o.Store.Job(ctx, ref.biz, ref.id)
		return err
	})
	if err != nil || j.State.Final() {
		return j, nil, err
	}

	err = r.retryUntilDone(ctx, "tasks of a job", func() error {
		page, err := r.o.Store.Tasks(ctx, record.JobTaskFilter{Job: ref.id, Limit: -1, Definitions: true})
		tasks = page.Tasks
		return err
	})

	return j, tasks, err
}

// runWork does the tasks of a job on configuration files. The job has the rights that its creator has now.
func (r *Runner) runWork(ctx context.Context, j *record.Job, tasks []record.JobTask) error {
	all := make([]*record.JobTask, len(tasks))
	for i := range tasks {
		all[i] = &tasks[i]
	}

	return r.retryUntilDone(ctx, "work on configuration files", func() error {
		now := *j
		now.Caller.Rights = r.o.Rights(j.Caller)
		return r.o.Worker.Work(ctx, &now, all, record.JobSteps{
			Save:  func(done []*record.JobTask) error { return r.save(ctx, nil, done) },
			Renew: func() error { return r.renew(ctx, &now) },
			Pause: func(d time.Duration) error { return r.pause(ctx, d) },
		})
	})
}

// renew reads what may have changed about a job while it runs.
func (r *Runner) renew(ctx context.Context, j *record.Job) error {
	now, err := r.o.Store.Job(ctx, j.Biz, j.ID)
	if err == nil {
		j.Choice, j.Caller.Rights = now.Choice, r.o.Rights(j.Caller)
	}
	return err
}

// pause waits. Another job has the place of this one meanwhile, so that jobs that wait long do not hold up the others.
func (r *Runner) pause(ctx context.Context, d time.Duration) error {
	<-r.jobs
	defer func() { r.jobs <- struct{}{} }()
	return pace.Sleep(ctx, d)
}

// runGroups runs the groups concurrently. A failure in one group does not affect the others.
func (r *Runner) runGroups(ctx context.Context, j *record.Job, groups [][]wave) error {
	var wg sync.WaitGroup
	todo := make(chan []wave)
	errs := make([]error, min(len(groups), maxGroups))
	for i := range errs {
		wg.Go(func() {
			for waves := range todo {
				if err := r.runGroup(ctx, j, waves); err != nil && errs[i] == nil {
					errs[i] = err
				}
			}
		})
	}

	for _, waves := range groups {
		todo <- waves
	}
	close(todo)
	wg.Wait()

	// All errors have the same reason: this run or the record has ended.
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	return errs[i]
}

// runGroup runs the waves of one group one after the other. When a wave fails, the tasks of the later ones fail too.
func (r *Runner) runGroup(ctx context.Context, j *record.Job, waves []wave) error {
	for i, w := range waves {
		if err := r.runWave(ctx, j, w); err != nil {
			return err
		}
		failed := w.failed()
		if failed == nil {
			continue
		}

		var held []*record.JobTask
		for _, t := range slices.Concat(waves[i+1:]...) {
			if !t.State.Final() {
				t.State, t.Reason, t.Ended = record.JobFailed, record.ReasonEarlier, r.o.Now()
				t.Message = heldBackBy(failed)
				held = append(held, t)
			}
		}
		return r.save(ctx, nil, held)
	}
	return nil
}

// runWave starts the operations of a wave that are not started and waits for all of them.
func (r *Runner) runWave(ctx context.Context, j *record.Job, w wave) error {
	for part := range slices.Chunk(w.unsent(), r.maxTargets) {
		if err := r.send(ctx, j, part); err != nil {
			return err
		}
	}
	for _, op := range w.operations() {
		if err := r.await(ctx, j, op); err != nil {
			return err
		}
	}
	return nil
}

// save records the tasks, and the job if it is not nil.
func (r *Runner) save(ctx context.Context, j *record.Job, tasks []*record.JobTask) error {
	if j == nil && len(tasks) == 0 {
		return nil
	}
	rows := make([]record.JobTask, len(tasks))
	for i, t := range tasks {
		rows[i] = *t
	}
	return r.retryUntilDone(ctx, "the state of a job", func() error { return r.o.Store.SaveTasks(ctx, j, rows) })
}

// ended reports whether an error only says that this run has ended.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, record.ErrStopped) || errors.Is(err, lease.ErrLost)
}
