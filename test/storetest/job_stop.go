package storetest

import (
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

func stopJob(t *testing.T, s JobRecord) {
	made := newJob()
	made.Action, made.Work = gozzard.ActionConfigure, record.WorkRelease
	made.Choice = record.ConfigChoice{Templates: []int64{7}, Then: "reload", Rollout: &record.Rollout{Batch: 2, Watch: 30, MaxFailed: 1}}
	j, tasks := createJob(t, s, made, jobTasks(2))
	other, _ := createJob(t, s, made, jobTasks(1))
	audit := gozzard.AuditRow{At: start, Caller: gozzard.Caller{App: "bk_test", User: "bob"}, Act: "stop:release", Targets: 2}

	// It is recorded once, and changes nothing else.
	for range 2 {
		must(t, s.StopJob(t.Context(), 2, j.ID, 0, audit))
	}
	round := 0
	j.Choice.Stopped = &round
	got, err := s.Job(t.Context(), 2, j.ID)
	must(t, err)
	equal(t, "job", got, j)
	equal(t, "tasks", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1}).Tasks, tasks)
	got, err = s.Job(t.Context(), 2, other.ID)
	must(t, err)
	equal(t, "another job", got, other)
	rows, err := s.Audit(t.Context(), 10)
	must(t, err)
	equal(t, "audit rows", len(rows), 3)
	audit.Seq = rows[0].Seq
	equal(t, "audit", rows[0], audit)

	// A job of another business, one that has ended and one that does not exist are not stopped.
	wantKind(t, s.StopJob(t.Context(), 3, other.ID, 0, audit), gozzard.ErrConflict)
	wantKind(t, s.StopJob(t.Context(), 2, 4711, 0, audit), gozzard.ErrConflict)
	other.State, other.Ended = record.JobFailed, start
	must(t, s.SaveTasks(t.Context(), &other, nil))
	wantKind(t, s.StopJob(t.Context(), 2, other.ID, 0, audit), gozzard.ErrConflict)
}
