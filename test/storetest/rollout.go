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
	"github.com/gozzard/gozzard/internal/waves"
)

// RolloutRecord is what the contract of rollout.Store is about: retries leave audit rows in the record they are
// part of.
type RolloutRecord interface {
	waves.Store
	Audit(ctx context.Context, limit int) ([]gozzard.AuditRow, error)
}

// RunRollout runs the contract of rollout.Store. open gives a new, empty store and closes it at the end of the test.
func RunRollout(t *testing.T, open func(t *testing.T) RolloutRecord) {
	for _, c := range []struct {
		name string
		test func(*testing.T, RolloutRecord)
	}{
		{"job: round trip", jobRoundTrip},
		{"job: without tasks", jobEmpty},
		{"job: numbers", jobNumbers},
		{"job: strange texts", jobStrange},
		{"job: many tasks", jobMany},
		{"jobs: filter and page", jobsFilter},
		{"tasks: filter and page", tasksFilter},
		{"tasks: long lists", tasksLong},
		{"save: tasks and job", saveTasks},
		{"save: not over a newer round", saveOldRound},
		{"reopen", reopen},
		{"reopen: 20 at once", reopenConcurrent},
		{"open jobs", openJobs},
		{"prune: jobs", pruneJobs},
		{"prune: many tasks", pruneManyTasks},
		{"jobs: not found and context", jobContext},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func newJob() record.Job {
	return record.Job{Biz: 2, Action: gozzard.ActionStart,
		Caller:     gozzard.Caller{App: "bk_test", User: "admin", Asserted: true},
		Expression: "管控平台.*.*.gse_agent.*", Request: []byte("{\"scope\":\x00\xff}"), Granularity: record.BySet,
		State: record.JobPending, Started: start}
}

// jobTasks makes n pending tasks of two definitions.
func jobTasks(n int) []record.JobTask {
	list := make([]record.JobTask, n)
	bodies := [][]byte{spec("even"), spec("odd")}
	for i := range list {
		list[i] = record.JobTask{Process: 100 + i, Name: fmt.Sprint("alias-", i%3), Set: 5 + i%2, Module: 21 + i%4,
			Local: 1 + i%2, Inst: 10 + i,
			Key:   gozzard.Key{Namespace: "GSEKIT_BIZ_2", Name: fmt.Sprintf("alias-%d_%d", i%3, 1+i%2)},
			Agent: agentID(i), Addr: addr(i),
			Group: fmt.Sprint("set:", 5+i%2), Wave: i % 5, Priority: i - 3, State: record.JobPending,
			Info:   []byte(fmt.Sprintf(`{"i":%d}`, i)),
			Labels: map[string]string{"bk_process_id": fmt.Sprint(100 + i)}, Spec: bodies[i%2]}
	}
	return list
}

// createJob records a job and gives it back as it must be read, tasks without definitions.
func createJob(t *testing.T, s RolloutRecord, j record.Job, tasks []record.JobTask) (record.Job, []record.JobTask) {
	t.Helper()
	must(t, s.CreateJob(t.Context(), &j, tasks))

	if j.ID <= 0 {
		t.Fatalf("a job has id %d", j.ID)
	}

	read := slices.Clone(tasks)
	for i := range read {
		if read[i].Job != j.ID || read[i].Biz != j.Biz || read[i].ID <= 0 || i > 0 && read[i].ID <= read[i-1].ID {
			t.Fatalf("task %d was given %d of job %d", i, read[i].ID, read[i].Job)
		}
		read[i].Labels, read[i].Spec = nil, nil
	}

	return j, read
}

func tasksOf(t *testing.T, s RolloutRecord, f record.JobTaskFilter) record.JobTaskPage {
	t.Helper()
	page, err := s.Tasks(t.Context(), f)
	must(t, err)
	return page
}

func jobRoundTrip(t *testing.T, s RolloutRecord) {
	made := jobTasks(7)
	made[3].State, made[3].Reason, made[3].Code, made[3].Message = record.JobFailed, record.ReasonVerdict,
		gozzard.CodeRefused, "no"
	made[3].Started, made[3].Ended, made[3].Round, made[3].Task = start, start.Add(time.Second), 4,
		"20260304050607:1"
	made[4].Spec, made[4].Labels, made[4].Info = nil, nil, nil
	made[5].Agent, made[6].Addr = "", gozzard.HostAddr{}
	j, tasks := createJob(t, s, newJob(), made)
	got, err := s.Job(t.Context(), 2, j.ID)
	must(t, err)
	equal(t, "job", got, j)
	counts := map[record.JobState]int{record.JobPending: 6, record.JobFailed: 1}
	equal(t, "tasks", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1}),
		record.JobTaskPage{Total: 7, Tasks: tasks, Counts: counts})

	for i := range made {
		made[i].Info = nil
	}

	equal(t, "tasks with definitions", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1, Definitions: true}),
		record.JobTaskPage{Total: 7, Tasks: made, Counts: counts})
}

func jobEmpty(t *testing.T, s RolloutRecord) {
	made := newJob()
	made.State, made.Reason, made.Message, made.Ended, made.Request = record.JobFailed, record.ReasonNothing,
		"nothing fits", start, nil
	j, _ := createJob(t, s, made, nil)
	got, err := s.Job(t.Context(), 2, j.ID)
	must(t, err)
	equal(t, "job", got, j)
	equal(t, "tasks", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1}),
		record.JobTaskPage{Counts: map[record.JobState]int{}})
}

func jobNumbers(t *testing.T, s RolloutRecord) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	jobs, tasks := map[int64]bool{}, map[int64]bool{}
	for i := range 20 {
		wg.Go(func() {
			j, list := newJob(), jobTasks(i)
			if err := s.CreateJob(t.Context(), &j, list); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			jobs[j.ID] = true
			for _, x := range list {
				tasks[x.ID] = true
			}
		})
	}

	wg.Wait()
	equal(t, "different jobs", len(jobs), 20)
	equal(t, "different tasks", len(tasks), 190)
}

func jobStrange(t *testing.T, s RolloutRecord) {
	j, tasks := newJob(), jobTasks(1)
	j.Expression, j.Message, tasks[0].Message, tasks[0].Name = "a\x00b", "\xff", "out\x00put", "\x00"
	j, tasks = createJob(t, s, j, tasks)
	got, err := s.Job(t.Context(), 2, j.ID)
	must(t, err)
	equal(t, "texts", []string{got.Expression, got.Message}, []string{"a\uFFFDb", "\uFFFD"})
	tasks[0].Message, tasks[0].Name = "out\uFFFDput", "\uFFFD"
	equal(t, "task", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1, Names: []string{"\x00"}}).Tasks, tasks)
}

func jobMany(t *testing.T, s RolloutRecord) {
	j, tasks := createJob(t, s, newJob(), jobTasks(2500))
	equal(t, "tasks", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1}).Tasks, tasks)
}

func jobsFilter(t *testing.T, s RolloutRecord) {
	var ids []int64
	for i := range 6 {
		j := newJob()
		j.Started = start.Add(time.Duration(i) * time.Hour)
		if i%2 == 1 {
			j.Action, j.Caller.User = gozzard.ActionKill, "bob"
		}
		if i == 4 {
			j.State, j.Ended = record.JobFailed, start
		}
		if i == 5 {
			j.Biz = 3
		}
		j, _ = createJob(t, s, j, nil)
		ids = append(ids, j.ID)
	}

	for _, c := range []struct {
		name  string
		f     record.JobFilter
		total int
		want  []int // places in ids
	}{
		{"all", record.JobFilter{Limit: -1}, 5, []int{4, 3, 2, 1, 0}},
		{"page", record.JobFilter{Start: 1, Limit: 2}, 5, []int{3, 2}},
		{"past the end", record.JobFilter{Start: 9, Limit: 2}, 5, nil},
		{"only the number", record.JobFilter{}, 5, nil},
		{"ids", record.JobFilter{Limit: -1, IDs: []int64{ids[0], ids[5], 999}}, 1, []int{0}},
		{"actions", record.JobFilter{Limit: -1, Actions: []string{"kill", "stop"}}, 2, []int{3, 1}},
		{"an action that is none", record.JobFilter{Limit: -1, Actions: []string{"dance"}}, 0, nil},
		{"users", record.JobFilter{Limit: -1, Users: []string{"bob", "Admin"}}, 2, []int{3, 1}},
		{"states", record.JobFilter{Limit: -1, States: []record.JobState{record.JobFailed, record.JobSucceeded}}, 1,
			[]int{4}},
		{"from", record.JobFilter{Limit: -1, From: start.Add(3 * time.Hour)}, 2, []int{4, 3}},
		{"until", record.JobFilter{Limit: -1, Until: start.Add(time.Hour)}, 2, []int{1, 0}},
		{"together", record.JobFilter{Limit: 1, Users: []string{"admin"}, From: start.Add(time.Hour),
			Until: start.Add(4 * time.Hour)}, 2, []int{4}},
		{"another business", record.JobFilter{Biz: 3, Limit: -1}, 1, []int{5}},
		{"an unknown business", record.JobFilter{Biz: 4, Limit: -1}, 0, nil},
	} {
		if c.f.Biz == 0 {
			c.f.Biz = 2
		}
		total, jobs, err := s.Jobs(t.Context(), c.f)
		must(t, err)
		var got, want []int64
		for _, j := range jobs {
			got = append(got, j.ID)
		}
		for _, i := range c.want {
			want = append(want, ids[i])
		}
		equal(t, c.name, got, want)
		equal(t, c.name+": total", total, c.total)
	}

	has, err := s.HasJobs(t.Context(), 3)
	must(t, err)
	equal(t, "business 3 has jobs", has, true)
	has, err = s.HasJobs(t.Context(), 4)
	must(t, err)
	equal(t, "business 4 has jobs", has, false)
}

func tasksFilter(t *testing.T, s RolloutRecord) {
	createJob(t, s, newJob(), jobTasks(5))
	made := jobTasks(12)
	made[2].State, made[7].State = record.JobSucceeded, record.JobIgnored
	j, tasks := createJob(t, s, newJob(), made)
	for _, c := range []struct {
		name string
		f    record.JobTaskFilter
		fits func(i int) bool
	}{
		{"all", record.JobTaskFilter{}, func(int) bool { return true }},
		{"ids", record.JobTaskFilter{IDs: []int64{tasks[4].ID, tasks[1].ID, 1}},
			func(i int) bool { return i == 1 || i == 4 }},
		{"sets", record.JobTaskFilter{Sets: []int{6}}, func(i int) bool { return i%2 == 1 }},
		{"modules", record.JobTaskFilter{Modules: []int{21, 24}}, func(i int) bool { return i%4 == 0 || i%4 == 3 }},
		{"processes", record.JobTaskFilter{Processes: []int{111, 5}}, func(i int) bool { return i == 11 }},
		{"names", record.JobTaskFilter{Names: []string{"alias-2", "ALIAS-1"}}, func(i int) bool { return i%3 == 2 }},
		{"states", record.JobTaskFilter{States: []record.JobState{record.JobIgnored, record.JobSucceeded}},
			func(i int) bool { return i == 2 || i == 7 }},
		{"together", record.JobTaskFilter{Sets: []int{5}, Names: []string{"alias-0"}},
			func(i int) bool { return i%2 == 0 && i%3 == 0 }},
		{"nothing", record.JobTaskFilter{Sets: []int{7}}, func(int) bool { return false }},
	} {
		want := record.JobTaskPage{Counts: map[record.JobState]int{record.JobPending: 10, record.JobSucceeded: 1,
			record.JobIgnored: 1}}
		for i := range tasks {
			if c.fits(i) {
				want.Tasks = append(want.Tasks, tasks[i])
			}
		}
		want.Total = len(want.Tasks)
		c.f.Job, c.f.Limit = j.ID, -1
		equal(t, c.name, tasksOf(t, s, c.f), want)
		c.f.Start, c.f.Limit = 1, 1
		want.Tasks = want.Tasks[min(1, want.Total):min(2, want.Total)]
		equal(t, c.name+": a page", tasksOf(t, s, c.f), want)
	}
}

// tasksLong: a list may be longer than a statement may have arguments.
func tasksLong(t *testing.T, s RolloutRecord) {
	j, tasks := createJob(t, s, newJob(), jobTasks(10))
	f := record.JobTaskFilter{Job: j.ID, Limit: -1}
	for i := range int64(70_000) {
		f.IDs = append(f.IDs, tasks[5].ID+i)
	}
	equal(t, "tasks", tasksOf(t, s, f).Tasks, tasks[5:])
}

func saveTasks(t *testing.T, s RolloutRecord) {
	j, tasks := createJob(t, s, newJob(), jobTasks(600))
	untouched := slices.Clone(tasks[500:])

	for i := range tasks[:500] {
		x := &tasks[i]
		x.State, x.Reason, x.Code, x.Message = record.JobFailed, record.ReasonVerdict, gozzard.CodeCommandFailed,
			fmt.Sprint("exit ", i)
		x.Round, x.Task, x.Started, x.Ended = 2, "20260304050607:9", start, start.Add(time.Minute)
	}

	changed := slices.Clone(tasks[:500])
	for i := range changed { // what is not written
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

func saveOldRound(t *testing.T, s RolloutRecord) {
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

func reopen(t *testing.T, s RolloutRecord) {
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
	equal(t, "audit rows", len(rows), 0)

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
	equal(t, "audit", rows, []gozzard.AuditRow{audit})
	unknown := again
	unknown.ID = 4711
	wantKind(t, s.Reopen(t.Context(), &unknown, nil, retryAudit()), gozzard.ErrConflict)
}

func reopenConcurrent(t *testing.T, s RolloutRecord) {
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

	equal(t, "retries that were first", won, 1)
}

func openJobs(t *testing.T, s RolloutRecord) {
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

func pruneJobs(t *testing.T, s RolloutRecord) {
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
			equal(t, "tasks of a job that is gone", page, record.JobTaskPage{Counts: map[record.JobState]int{}})
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

func pruneManyTasks(t *testing.T, s RolloutRecord) {
	made := newJob()
	made.State, made.Ended = record.JobFailed, start
	j, _ := createJob(t, s, made, jobTasks(2600))
	keep, tasks := createJob(t, s, newJob(), jobTasks(4))
	n, err := s.PruneJobs(t.Context(), start.Add(time.Hour), 10)
	must(t, err)
	equal(t, "pruned", n, 1)
	equal(t, "tasks that are gone", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1}).Total, 0)
	equal(t, "tasks that stay", tasksOf(t, s, record.JobTaskFilter{Job: keep.ID, Limit: -1}).Tasks, tasks)
}

func jobContext(t *testing.T, s RolloutRecord) {
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
		"prune":  func() error { _, err := s.PruneJobs(ended, start, 1); return err },
		"has":    func() error { _, err := s.HasJobs(ended, 2); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
	}
}
