package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

func saveTasks(t *testing.T, s JobRecord) {
	j, tasks := createJob(t, s, newJob(), jobTasks(600))
	untouched := slices.Clone(tasks[500:])

	for i := range tasks[:500] {
		x := &tasks[i]
		x.State, x.Reason, x.Code, x.Message = record.JobFailed, record.ReasonVerdict, gozzard.CodeCommandFailed,
			fmt.Sprint("exit ", i)
		x.Round, x.Task, x.Started, x.Ended = 2, "20260304050607:9", start, start.Add(time.Minute)
	}

	changed := slices.Clone(tasks[:500])
	for i := range changed { // SaveTasks must not write these
		changed[i].Name, changed[i].Wave, changed[i].Info, changed[i].Group = "other", 99, []byte("other"), "other"
	}

	must(t, s.SaveTasks(t.Context(), nil, changed))
	page := tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1})
	equal(t, "tasks", page, record.JobTaskPage{Total: 600, Tasks: append(tasks[:500:500], untouched...),
		Counts: map[record.JobState]int{record.JobFailed: 500, record.JobPending: 100}})
	got, err := s.Job(t.Context(), 2, j.ID)
	must(t, err)
	equal(t, "job", got, j)

	j.State, j.Reason, j.Message, j.Started, j.Ended = record.JobFailed, record.ReasonInternal, "why",
		start.Add(time.Hour), start.Add(2*time.Hour)
	other := j
	other.Expression, other.Caller.User = "other", "other"
	must(t, s.SaveTasks(t.Context(), &other, nil))
	got, err = s.Job(t.Context(), 2, j.ID)
	must(t, err)
	equal(t, "job", got, j)
	must(t, s.SaveTasks(t.Context(), nil, nil))
}

func saveOldRound(t *testing.T, s JobRecord) {
	made := jobTasks(2)
	made[0].Round = 3
	j, tasks := createJob(t, s, newJob(), made)
	late := slices.Clone(tasks)
	late[0].Round, late[1].Round = 2, 2
	late[0].State, late[1].State = record.JobFailed, record.JobFailed
	must(t, s.SaveTasks(t.Context(), nil, late))
	equal(t, "tasks", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1}).Tasks,
		[]record.JobTask{tasks[0], late[1]})
}

func retryAudit() gozzard.AuditRow {
	return gozzard.AuditRow{At: start, Caller: gozzard.Caller{App: "bk_test", User: "bob"}, Act: "retry:start",
		Targets: 1}
}

func reopen(t *testing.T, s JobRecord) {
	j, tasks := createJob(t, s, newJob(), jobTasks(2))
	again := j
	again.State = record.JobPending
	late := slices.Clone(tasks)
	late[0].Round, late[0].State = 1, record.JobRunning
	for _, state := range []record.JobState{record.JobPending, record.JobRunning} {
		j.State = state
		must(t, s.SaveTasks(t.Context(), &j, nil))
		wantKind(t, s.Reopen(t.Context(), &again, late, retryAudit()), gozzard.ErrConflict)
	}

	equal(t, "tasks", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1}).Tasks, tasks)
	rows, err := s.Audit(t.Context(), 10)
	must(t, err)
	equal(t, "audit rows: that of the job", len(rows), 1)

	j.State, j.Ended = record.JobFailed, start
	must(t, s.SaveTasks(t.Context(), &j, nil))
	must(t, s.Reopen(t.Context(), &again, late, retryAudit()))
	equal(t, "tasks", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1}).Tasks, late)
	got, err := s.Job(t.Context(), 2, j.ID)
	must(t, err)
	equal(t, "job", got, again)
	rows, err = s.Audit(t.Context(), 10)
	must(t, err)
	audit := retryAudit()
	audit.Seq = rows[0].Seq
	equal(t, "audit rows", len(rows), 2)
	equal(t, "audit", rows[0], audit)
	equal(t, "act of the job", rows[1].Act, fmt.Sprintf("job:%s job %d", j.Action, j.ID))
	unknown := again
	unknown.ID = 4711
	wantKind(t, s.Reopen(t.Context(), &unknown, nil, retryAudit()), gozzard.ErrConflict)
}

func reopenConcurrent(t *testing.T, s JobRecord) {
	made := newJob()
	made.State, made.Ended = record.JobFailed, start
	j, _ := createJob(t, s, made, jobTasks(1))
	j.State, j.Ended = record.JobPending, time.Time{}
	var wg sync.WaitGroup
	errs := make(chan error, 20)
	for range 20 {
		wg.Go(func() {
			mine := j
			errs <- s.Reopen(t.Context(), &mine, nil, retryAudit())
		})
	}

	wg.Wait()
	close(errs)
	won := 0
	for err := range errs {
		if err == nil {
			won++
		} else {
			wantKind(t, err, gozzard.ErrConflict)
		}
	}

	equal(t, "retries that succeeded", won, 1)
}

func openJobs(t *testing.T, s JobRecord) {
	var want []record.Job
	for i, state := range []record.JobState{record.JobRunning, record.JobFailed, record.JobPending,
		record.JobSucceeded, record.JobRunning} {
		j := newJob()
		j.State, j.Biz = state, 2+i
		j, _ = createJob(t, s, j, jobTasks(1))
		if !state.Final() {
			want = append(want, j)
		}
	}

	got, err := s.OpenJobs(t.Context())
	must(t, err)
	equal(t, "open jobs", got, want)
}

func pruneJobs(t *testing.T, s JobRecord) {
	ended := func(age time.Duration, state record.JobState) record.Job {
		j := newJob()
		j.State, j.Ended = state, start.Add(-age)
		if !state.Final() {
			j.Ended, j.Started = time.Time{}, start.Add(-age)
		}
		j, _ = createJob(t, s, j, jobTasks(3))
		return j
	}

	old, older, oldest := ended(3*time.Hour, record.JobFailed), ended(4*time.Hour, record.JobSucceeded),
		ended(5*time.Hour, record.JobFailed)
	fresh, open := ended(time.Minute, record.JobSucceeded), ended(9*time.Hour, record.JobRunning)

	step := func(limit, want int) {
		t.Helper()
		n, err := s.PruneJobs(t.Context(), start.Add(-time.Hour), limit)
		must(t, err)
		equal(t, "pruned", n, want)
	}

	there := func(j record.Job, want bool) {
		t.Helper()
		_, err := s.Job(t.Context(), 2, j.ID)
		page := tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1})
		if !want {
			wantKind(t, err, gozzard.ErrNotFound)
			equal(t, "tasks of a pruned job", page, record.JobTaskPage{Counts: map[record.JobState]int{}})
			return
		}
		must(t, err)
		equal(t, "tasks", len(page.Tasks), 3)
	}

	step(0, 0)
	step(2, 2)
	there(oldest, false)
	there(older, false)
	there(old, true)
	step(5, 1)
	step(5, 0)
	there(old, false)
	there(fresh, true)
	there(open, true)
	total, _, err := s.Jobs(t.Context(), record.JobFilter{Biz: 2})
	must(t, err)
	equal(t, "jobs that stay", total, 2)
	has, err := s.HasJobs(t.Context(), 2)
	must(t, err)
	equal(t, "the business had jobs", has, true)
}

func pruneManyTasks(t *testing.T, s JobRecord) {
	made := newJob()
	made.State, made.Ended = record.JobFailed, start
	j, _ := createJob(t, s, made, jobTasks(2600))
	keep, tasks := createJob(t, s, newJob(), jobTasks(4))
	n, err := s.PruneJobs(t.Context(), start.Add(time.Hour), 10)
	must(t, err)
	equal(t, "pruned", n, 1)
	equal(t, "tasks of the pruned job", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1}).Total, 0)
	equal(t, "tasks that stay", tasksOf(t, s, record.JobTaskFilter{Job: keep.ID, Limit: -1}).Tasks, tasks)
}

func jobContext(t *testing.T, s JobRecord) {
	j, _ := createJob(t, s, newJob(), jobTasks(1))
	for _, id := range []int64{-1, 0, j.ID + 1, 1 << 60} {
		_, err := s.Job(t.Context(), 2, id)
		wantKind(t, err, gozzard.ErrNotFound)
	}

	_, err := s.Job(t.Context(), 3, j.ID)
	wantKind(t, err, gozzard.ErrNotFound)
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	for name, call := range map[string]func() error{
		"create": func() error { other := newJob(); return s.CreateJob(ended, &other, nil) },
		"job":    func() error { _, err := s.Job(ended, 2, j.ID); return err },
		"jobs":   func() error { _, _, err := s.Jobs(ended, record.JobFilter{Biz: 2}); return err },
		"tasks":  func() error { _, err := s.Tasks(ended, record.JobTaskFilter{Job: j.ID}); return err },
		"open":   func() error { _, err := s.OpenJobs(ended); return err },
		"save":   func() error { return s.SaveTasks(ended, &j, nil) },
		"reopen": func() error { return s.Reopen(ended, &j, nil, retryAudit()) },
		"stop":   func() error { return s.StopJob(ended, j.Biz, j.ID, 0, retryAudit()) },
		"prune":  func() error { _, err := s.PruneJobs(ended, start, 1); return err },
		"count":  func() error { _, err := s.CountJobs(ended, record.JobFilter{Biz: 2}); return err },
		"has":    func() error { _, err := s.HasJobs(ended, 2); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
	}
}
