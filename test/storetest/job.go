package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/waves"
)

// JobRecord is a store of jobs with its audit: retries leave audit rows.
type JobRecord interface {
	waves.Store
	Audit(ctx context.Context, limit int) ([]gozzard.AuditRow, error)
}

// RunJobs runs the contract of waves.Store. open gives a new, empty store and closes it at the end of the test.
func RunJobs(t *testing.T, open func(t *testing.T) JobRecord) {
	for _, c := range []struct {
		name string
		test func(*testing.T, JobRecord)
	}{
		{"job: round trip", jobRoundTrip},
		{"job: without tasks", jobEmpty},
		{"job: numbers", jobNumbers},
		{"job: strange texts", jobStrange},
		{"job: many tasks", jobMany},
		{"jobs: on configuration files", jobWork},
		{"jobs: filter and page", jobsFilter},
		{"tasks: filter and page", tasksFilter},
		{"tasks: long lists", tasksLong},
		{"save: tasks and job", saveTasks},
		{"save: not over a newer round", saveOldRound},
		{"reopen", reopen},
		{"reopen: 20 at once", reopenConcurrent},
		{"stop", stopJob},
		{"open jobs", openJobs},
		{"prune: jobs", pruneJobs},
		{"prune: many tasks", pruneManyTasks},
		{"jobs: not found and context", jobContext},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func newJob() record.Job {
	return record.Job{Biz: 2, Trace: sampleTrace, Action: gozzard.ActionStart,
		Caller:     gozzard.Caller{App: "bk_test", User: "admin", Asserted: true},
		Expression: "管控平台.*.*.gse_agent.*", Request: []byte("{\"scope\":\x00\xff}"), Granularity: record.BySet,
		State: record.JobPending, Started: start}
}

// jobTasks makes n pending tasks with two different definitions.
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

// createJob records a job. It returns the job and its tasks as they must be read, without definitions.
func createJob(t *testing.T, s JobRecord, j record.Job, tasks []record.JobTask) (record.Job, []record.JobTask) {
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

func tasksOf(t *testing.T, s JobRecord, f record.JobTaskFilter) record.JobTaskPage {
	t.Helper()
	page, err := s.Tasks(t.Context(), f)
	must(t, err)
	return page
}

func jobRoundTrip(t *testing.T, s JobRecord) {
	made := jobTasks(7)
	made[3].State, made[3].Reason = record.JobFailed, record.ReasonVerdict
	made[3].Code, made[3].Message = gozzard.CodeRefused, "no"
	made[3].Started, made[3].Ended = start, start.Add(time.Second)
	made[3].Round, made[3].Task = 4, "20260304050607:1"
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

func jobEmpty(t *testing.T, s JobRecord) {
	made := newJob()
	made.State, made.Reason, made.Message, made.Ended, made.Request = record.JobFailed, record.ReasonNothing,
		"nothing matches", start, nil
	j, _ := createJob(t, s, made, nil)
	got, err := s.Job(t.Context(), 2, j.ID)
	must(t, err)
	equal(t, "job", got, j)
	equal(t, "tasks", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1}),
		record.JobTaskPage{Counts: map[record.JobState]int{}})
}

func jobNumbers(t *testing.T, s JobRecord) {
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

func jobStrange(t *testing.T, s JobRecord) {
	j, tasks := newJob(), jobTasks(1)
	j.Expression, j.Message, tasks[0].Message, tasks[0].Name = "a\x00b", "\xff", "out\x00put", "\x00"
	j, tasks = createJob(t, s, j, tasks)
	got, err := s.Job(t.Context(), 2, j.ID)
	must(t, err)
	equal(t, "texts", []string{got.Expression, got.Message}, []string{"a\uFFFDb", "\uFFFD"})
	tasks[0].Message, tasks[0].Name = "out\uFFFDput", "\uFFFD"
	equal(t, "task", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1, Names: []string{"\x00"}}).Tasks, tasks)
}

func jobMany(t *testing.T, s JobRecord) {
	j, tasks := createJob(t, s, newJob(), jobTasks(2500))
	equal(t, "tasks", tasksOf(t, s, record.JobTaskFilter{Job: j.ID, Limit: -1}).Tasks, tasks)
}

func jobsFilter(t *testing.T, s JobRecord) {
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
		want  []int // positions in ids
	}{
		{"all", record.JobFilter{Limit: -1}, 5, []int{4, 3, 2, 1, 0}},
		{"page", record.JobFilter{Start: 1, Limit: 2}, 5, []int{3, 2}},
		{"past the end", record.JobFilter{Start: 9, Limit: 2}, 5, nil},
		{"only the number", record.JobFilter{}, 5, nil},
		{"ids", record.JobFilter{Limit: -1, IDs: []int64{ids[0], ids[5], 999}}, 1, []int{0}},
		{"actions", record.JobFilter{Limit: -1, Actions: []string{"kill", "stop"}}, 2, []int{3, 1}},
		{"an unknown action", record.JobFilter{Limit: -1, Actions: []string{"dance"}}, 0, nil},
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

	counts, err := s.CountJobs(t.Context(), record.JobFilter{Biz: 2, Users: []string{"admin"}, Limit: 1})
	must(t, err)
	n := 0
	for i, c := range counts {
		if n += c.Count; c.Biz != 2 || c.User != "admin" || c.At.Minute()%15 != 0 || c.At.After(start.Add(24*time.Hour)) ||
			i > 0 && c.At.Before(counts[i-1].At) {
			t.Errorf("count %+v", c)
		}
	}
	total, _, err := s.Jobs(t.Context(), record.JobFilter{Biz: 2, Users: []string{"admin"}})
	must(t, err)
	equal(t, "jobs of admin in the counts", n, total)
	counts, err = s.CountJobs(t.Context(), record.JobFilter{Biz: 4})
	must(t, err)
	equal(t, "counts of business 4", len(counts), 0)

	has, err := s.HasJobs(t.Context(), 3)
	must(t, err)
	equal(t, "business 3 has jobs", has, true)
	has, err = s.HasJobs(t.Context(), 4)
	must(t, err)
	equal(t, "business 4 has jobs", has, false)
}

func tasksFilter(t *testing.T, s JobRecord) {
	createJob(t, s, newJob(), jobTasks(5))
	made := jobTasks(12)
	made[2].State, made[7].State = record.JobSucceeded, record.JobIgnored
	j, tasks := createJob(t, s, newJob(), made)
	for _, c := range []struct {
		name string
		f    record.JobTaskFilter
		want func(i int) bool
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
			if c.want(i) {
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
func tasksLong(t *testing.T, s JobRecord) {
	j, tasks := createJob(t, s, newJob(), jobTasks(10))
	f := record.JobTaskFilter{Job: j.ID, Limit: -1}
	for i := range int64(70_000) {
		f.IDs = append(f.IDs, tasks[5].ID+i)
	}
	equal(t, "tasks", tasksOf(t, s, f).Tasks, tasks[5:])
}

// jobWork: a job on configuration files keeps its choice and the results of its tasks, and is found apart from others.
func jobWork(t *testing.T, s JobRecord) {
	process, config := newJob(), newJob()
	config.Action, config.Work = gozzard.ActionConfigure, record.WorkGenerate
	config.Choice = record.ConfigChoice{Templates: []int64{7, 8}, Versions: map[int64][]int64{7: {1, 2}}}
	must(t, s.CreateJob(t.Context(), &process, jobTasks(1)))
	tasks := jobTasks(2)
	must(t, s.CreateJob(t.Context(), &config, tasks))
	other, all := newJob(), newJob() // in another business
	other.Action, other.Work, other.Biz, all.Action, all.Work, all.Biz = config.Action, config.Work, 5, config.Action, config.Work, 5
	other.Choice = record.ConfigChoice{Templates: []int64{70}, Versions: map[int64][]int64{70: {7}}, Back: map[int64]int64{70: 7}}
	all.Choice = record.ConfigChoice{Expect: true}
	must(t, s.CreateJob(t.Context(), &other, nil))
	must(t, s.CreateJob(t.Context(), &all, nil))
	got, err := s.Job(t.Context(), 2, config.ID)
	must(t, err)
	equal(t, "the job", got, config)

	// The filters.
	yes, no := true, false
	for name, c := range map[string]struct {
		filter record.JobFilter
		want   []int64
	}{
		"config":           {record.JobFilter{Biz: 2, Configs: &yes, Limit: -1}, []int64{config.ID}},
		"process":          {record.JobFilter{Biz: 2, Configs: &no, Limit: -1}, []int64{process.ID}},
		"generate":         {record.JobFilter{Biz: 2, Actions: []string{"generate"}, Limit: -1}, []int64{config.ID}},
		"start":            {record.JobFilter{Biz: 2, Actions: []string{"start"}, Limit: -1}, []int64{process.ID}},
		"start or release": {record.JobFilter{Biz: 2, Actions: []string{"start", "release"}, Limit: -1}, []int64{process.ID}},
		"diff":             {record.JobFilter{Biz: 2, Actions: []string{"diff"}, Limit: -1}, nil},
		"template":         {record.JobFilter{Biz: 2, Configs: &yes, Template: 8, Limit: -1}, []int64{config.ID}},
		"other template":   {record.JobFilter{Biz: 2, Configs: &yes, Template: 1, Limit: -1}, nil},
		"part of a number": {record.JobFilter{Biz: 5, Configs: &yes, Template: 7, Limit: -1}, []int64{all.ID}},
		"named or all":     {record.JobFilter{Biz: 5, Configs: &yes, Template: 70, Limit: -1}, []int64{all.ID, other.ID}},
	} {
		_, jobs, err := s.Jobs(t.Context(), c.filter)
		must(t, err)
		var ids []int64
		for i := range jobs {
			ids = append(ids, jobs[i].ID)
		}
		equal(t, name, ids, c.want)
	}

	// The results.
	tasks[0].State, tasks[0].Result = record.JobSucceeded, []byte(`[{"instance":1}]`)
	must(t, s.SaveTasks(t.Context(), nil, tasks[:1]))
	tasks[0].Result = []byte(`[{"instance":2}]`)
	must(t, s.SaveTasks(t.Context(), nil, tasks))
	page, err := s.Tasks(t.Context(), record.JobTaskFilter{Job: config.ID, Limit: -1, Results: true})
	must(t, err)
	if len(page.Tasks) != 2 || string(page.Tasks[0].Result) != `[{"instance":2}]` || page.Tasks[1].Result != nil {
		t.Errorf("results %q, %q", page.Tasks[0].Result, page.Tasks[1].Result)
	}
	page, err = s.Tasks(t.Context(), record.JobTaskFilter{Job: config.ID, Limit: -1})
	must(t, err)
	if page.Tasks[0].Result != nil {
		t.Error("a result that was not asked for")
	}
}
