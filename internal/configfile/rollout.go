package configfile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// tasksAtOnce is how many tasks of a job are done and recorded together, except that the last host of a release may have more.
const tasksAtOnce = 200

// renewEvery is how often a job is read again while a batch is watched, to notice that somebody has stopped it.
const renewEvery = 2 * time.Second

// partsOf divides tasks into those that are done together: a batch of a rollout, or some. In a release the tasks of one host stay
// together, because they may share a file: for the second one it would be there already, and nothing would follow. After a restart of
// the server the tasks that are left have the same parts.
func partsOf(work record.JobWork, tasks []*record.JobTask, r *record.Rollout) (parts [][]*record.JobTask) {
	if work != record.WorkRelease {
		return slices.Collect(slices.Chunk(tasks, tasksAtOnce))
	}

	// Find the hosts.
	var hosts [][]*record.JobTask
	at := map[gozzard.Target]int{}
	for _, t := range tasks {
		host := targetOf(t)
		host.ResultKey = ""
		i, known := at[host]
		if !known {
			i = len(hosts)
			at[host], hosts = i, append(hosts, nil)
		}
		hosts[i] = append(hosts[i], t)
	}

	// Fill the parts.
	full := func(hosts, tasks int) bool { return tasks >= tasksAtOnce }
	if r != nil {
		full = func(hosts, tasks int) bool { return hosts >= r.Batch }
	}
	var part []*record.JobTask
	n := 0
	for _, h := range hosts {
		part, n = append(part, h...), n+1
		if full(n, len(part)) {
			parts, part, n = append(parts, part), nil, 0
		}
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}

// halted says why a part that has this task must not be done; an empty message if it may be. A part that had begun before a restart of
// the server is completed: its files may be written.
func (w *work) halted(tasks []*record.JobTask, first *record.JobTask) (record.JobReason, string) {
	if text := withdrawn(w.j); text != "" {
		return record.ReasonRefused, text
	}
	if first.State == record.JobRunning {
		return record.ReasonNone, ""
	}
	if w.stopped(first.Round) {
		return record.ReasonStopped, "the job was stopped before it came to this host: nothing was written here"
	}
	r := w.j.Choice.Rollout
	if r == nil {
		return record.ReasonNone, ""
	}
	failed := 0
	for _, t := range tasks {
		if t.Round == first.Round && t.State == record.JobFailed && t.Reason != record.ReasonStopped {
			failed++
		}
	}
	if failed > r.MaxFailed {
		return record.ReasonStopped, fmt.Sprintf("the rollout stopped before this host (%d failed, at most %d may fail): nothing was written here",
			failed, r.MaxFailed)
	}
	return record.ReasonNone, ""
}

// withdrawn says that the creator of a job has lost the right to it; "" if not.
func withdrawn(j *record.Job) string {
	if j.Caller.Rights.MaySpace(gozzard.ActionConfigure, topology.Namespace(j.Biz)) {
		return ""
	}
	return fmt.Sprintf(j.Caller.Form("app %s may not configure business %d any more", "user %s may not configure business %d any more"),
		j.Caller.Named(), j.Biz)
}

// stopped reports whether somebody has stopped a round of the job.
func (w *work) stopped(round int) bool {
	return w.j.Choice.Stopped != nil && *w.j.Choice.Stopped == round
}

// watch looks at the processes of a batch that have got another file, and again some time later. A process that does not run any
// more, was started again meanwhile, or is not healthy fails its task.
func (w *work) watch(ctx context.Context, tasks []*record.JobTask, done map[*record.JobTask][]record.ConfigDone) error {
	r := w.j.Choice.Rollout
	if r == nil || r.Watch == 0 {
		return nil
	}
	seen := map[*record.JobTask]int{}
	err := w.operate(ctx, gozzard.ActionQuery, changed(tasks, done), "look", w.watchFailed, func(t *record.JobTask, out gozzard.Outcome) {
		switch {
		case out.Detail != nil && out.Detail.PID > 0:
			seen[t] = out.Detail.PID
		case w.j.Choice.Then != "":
			w.watchFailed(t, "the process does not run")
		}
	})
	if err != nil || len(seen) == 0 {
		return err
	}

	if err := w.pause(time.Duration(r.Watch)*time.Second, tasks[0].Round); err != nil {
		return err
	}
	var list []*record.JobTask
	for _, t := range tasks {
		if seen[t] != 0 {
			list = append(list, t)
		}
	}
	return w.operate(ctx, gozzard.ActionQuery, list, "again", w.watchFailed, func(t *record.JobTask, out gozzard.Outcome) {
		if text := unwell(out.Detail, seen[t]); text != "" {
			w.watchFailed(t, text)
		}
	})
}

// unwell says what is wrong with a process that had a pid before; "" for nothing.
func unwell(d *gozzard.Detail, pid int) string {
	switch {
	case d == nil || d.PID <= 0:
		return "the process does not run any more"
	case d.PID != pid:
		return "the process ended and was started again"
	case d.Health != "" && d.Health != "ok":
		return fmt.Sprintf("its health check says: %s", d.Health)
	}
	return ""
}

// watchFailed fails a task whose files were released.
func (w *work) watchFailed(t *record.JobTask, message string) {
	failWith(t, record.ReasonWatch, fmt.Sprintf("the file was released, but then: %s", message))
}

// pause waits for some time, or until somebody stops the round.
func (w *work) pause(d time.Duration, round int) error {
	for left := d; left > 0 && !w.stopped(round); left -= renewEvery {
		if err := w.steps.Pause(min(left, renewEvery)); err != nil {
			return err
		}
		if err := w.steps.Renew(); err != nil {
			return err
		}
	}
	return nil
}
