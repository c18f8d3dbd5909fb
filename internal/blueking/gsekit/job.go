package gsekit

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// jobInfo is a job.
type jobInfo struct {
	ID              int64              `json:"id"`
	Biz             int                `json:"bk_biz_id"`
	Expression      string             `json:"expression"`
	Scope           json.RawMessage    `json:"scope"`
	ExpressionScope json.RawMessage    `json:"expression_scope"`
	Object          string             `json:"job_object"`
	Action          string             `json:"job_action"`
	Status          record.JobState    `json:"status"`
	CreatedBy       string             `json:"created_by"`
	IsReady         bool               `json:"is_ready"` // its tasks exist; here they are created with the job
	StartTime       *string            `json:"start_time"`
	EndTime         *string            `json:"end_time"`
	PipelineID      string             `json:"pipeline_id"` // always empty: there is no workflow engine
	Granularity     record.Granularity `json:"task_granularity"`
	ExtraData       jobExtra           `json:"extra_data"`
	AppCode         string             `json:"bk_app_code"`
}

type jobExtra struct {
	FailedReason string `json:"failed_reason,omitempty"`
}

// The two formats of times; each call has one.
const (
	timeUTC   = "2006-01-02 15:04:05.000000-07:00"
	timeLocal = "2006-01-02 15:04:05-0700"
)

// clock writes the times of one call. A zero time is null.
type clock struct {
	layout string
	zone   *time.Location
}

func (c clock) show(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.In(c.zone).Format(c.layout)
	return &s
}

func (l speech) job(j *record.Job, c clock) jobInfo {
	var asked requested
	if json.Unmarshal(j.Request, &asked) != nil { // another door created the job
		asked = requested{}
	}

	info := jobInfo{
		ID: j.ID, Biz: j.Biz, Expression: j.Expression, Scope: kept(asked.Scope),
		ExpressionScope: kept(asked.ExpressionScope),
		Object:          objectOfJob(j), Action: wordOfJob(j), Status: j.State, CreatedBy: j.Caller.User, IsReady: true,
		StartTime: c.show(j.Started), EndTime: c.show(j.Ended), Granularity: j.Granularity, AppCode: j.Caller.App,
	}
	switch j.Reason {
	case record.ReasonNone:
	case record.ReasonNothing: // the code says everything
		info.ExtraData.FailedReason = l.reason(j.Reason, "", j.Action, "")
	default:
		info.ExtraData.FailedReason = l.reason(j.Reason, "", j.Action, j.Message)
	}

	return info
}

// objectOfJob is the kind of objects that a job acts on.
func objectOfJob(j *record.Job) string {
	if j.Work != record.WorkNone {
		return objectConfig
	}
	return objectProcess
}

// wordOfJob is the word for what a job does.
func wordOfJob(j *record.Job) string {
	if j.Work != record.WorkNone {
		return string(j.Work)
	}
	return wordOf(j.Action)
}

// find reads the job of a request.
func (s *server) find(ctx context.Context, r *request) (record.Job, error) {
	id := r.pathInt(r.Call, "job_id")
	if err := r.err(); err != nil {
		return record.Job{}, err
	}
	job, err := s.jobs.Job(ctx, r.Caller, r.biz, id)
	if err != nil && gozzard.KindOf(err) == gozzard.ErrNotFound {
		return job, fail(codeNoJob, r.lang.say(sayNoJob, id))
	}
	return job, err
}

type jobStatus struct {
	Job    jobInfo     `json:"job_info"`
	Tasks  []taskInfo  `json:"job_tasks"`
	Count  int         `json:"count"`
	Counts stateCounts `json:"status_counter"`
}

// stateCounts are the numbers of tasks by state. Every state is always present.
type stateCounts struct {
	Pending   int `json:"pending"`
	Running   int `json:"running"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Ignored   int `json:"ignored"`
}

func count(m map[record.JobState]int) stateCounts {
	return stateCounts{m[record.JobPending], m[record.JobRunning], m[record.JobSucceeded], m[record.JobFailed],
		m[record.JobIgnored]}
}

func (c stateCounts) total() int { return c.Pending + c.Running + c.Succeeded + c.Failed + c.Ignored }

// jobStatus is a job with the requested tasks, or all tasks if none is requested.
func (s *server) jobStatus(ctx context.Context, r *request) (any, error) {
	ids := list(r.form, "job_task_id_list", anyInt())
	job, err := s.find(ctx, r)
	if err != nil {
		return nil, err
	}

	page, err := s.jobs.Tasks(ctx, r.Caller, r.biz, record.JobTaskFilter{Job: job.ID, IDs: ids, Limit: -1,
		Results: job.Work != record.WorkNone})
	if err != nil {
		return nil, err
	}

	utc := clock{timeUTC, time.UTC}
	out := jobStatus{Job: r.lang.job(&job, utc), Tasks: make([]taskInfo, len(page.Tasks)), Counts: count(page.Counts)}
	for i := range page.Tasks {
		out.Tasks[i] = r.lang.task(&job, &page.Tasks[i], utc)
	}

	out.Count = out.Counts.total()
	return out, nil
}

func (s *server) jobRetrieve(ctx context.Context, r *request) (any, error) {
	job, err := s.find(ctx, r)
	if err != nil {
		return nil, err
	}
	return r.lang.job(&job, clock{timeLocal, s.zone}), nil
}

type jobPage struct {
	Count int       `json:"count"`
	List  []jobInfo `json:"list"`
}

// jobList lists jobs in pages, the newest first unless the request has an order.
func (s *server) jobList(ctx context.Context, r *request) (any, error) {
	// Read the request.
	start, limit := r.page(false)
	f, none := r.jobFilter(s.zone)
	f.Biz = r.biz
	order, _ := opt(r.form, "ordering", text)

	if err := r.err(); err != nil {
		return nil, err
	}

	out := jobPage{List: []jobInfo{}}

	if none {
		return out, nil
	}

	// Read the page and render it.
	total, jobs, err := s.ordered(ctx, r.Caller, f, order, start, limit)
	if err != nil {
		return nil, err
	}

	out.Count = total
	for i := range jobs {
		out.List = append(out.List, r.lang.job(&jobs[i], clock{timeLocal, s.zone}))
	}

	return out, nil
}

// ordered reads one page of jobs. The record sorts jobs by their start, the newest first. Other orders are made here.
func (s *server) ordered(ctx context.Context, caller gozzard.Caller, f record.JobFilter, order string, start,
	limit int) (int, []record.Job, error) {
	switch order {
	case "start_time":
		f.Limit = 1 // for the count only
		total, _, err := s.jobs.Jobs(ctx, caller, f)
		if err != nil || start >= total {
			return total, nil, err
		}
		end := total - start
		f.Start = max(end-limit, 0)
		f.Limit = end - f.Start
		_, jobs, err := s.jobs.Jobs(ctx, caller, f)
		slices.Reverse(jobs)
		return total, jobs, err
	case "end_time", "-end_time":
		f.Limit = -1
		total, jobs, err := s.jobs.Jobs(ctx, caller, f)
		slices.SortStableFunc(jobs, func(a, b record.Job) int {
			if order == "-end_time" {
				a, b = b, a
			}
			return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.ID, b.ID))
		})
		return total, jobs[min(start, len(jobs)):min(start+limit, len(jobs))], err
	}

	f.Start, f.Limit = start, limit
	return s.jobs.Jobs(ctx, caller, f)
}

// jobFilter reads the filters of a list: each is one value, or with __in several values separated by commas. none is
// true if no job can match.
func (f *form) jobFilter(zone *time.Location) (q record.JobFilter, none bool) {
	// each reads one filter. use adds a value to the query and reports whether a job can have it.
	each := func(name string, use func(word string) bool) {
		for _, suffix := range []string{"", "__in"} {
			s, given := opt(f, name+suffix, text)
			if !given || s == "" {
				continue
			}
			words := []string{s}
			if suffix != "" {
				words = strings.Split(s, ",")
			}
			fits := false
			for _, w := range words {
				fits = use(strings.TrimSpace(w)) || fits
			}
			none = none || !fits
		}
	}

	// The filters by value.
	each("id", func(w string) bool {
		n, ok := canonical(w)
		q.IDs = append(q.IDs, n)
		return ok
	})

	var process, config bool
	each("job_object", func(w string) bool {
		process, config = process || w == objectProcess, config || w == objectConfig
		return w == objectProcess || w == objectConfig
	})
	if process != config {
		q.Configs = &config
	}

	each("job_action", func(w string) bool {
		if slices.Contains(workWords(), w) {
			q.Actions = append(q.Actions, w)
			return true
		}
		a, ok := actionOf(w)
		if ok {
			q.Actions = append(q.Actions, a.String())
		}
		return ok
	})

	each("created_by", func(w string) bool { q.Users = append(q.Users, w); return true })
	each("status", func(w string) bool { q.States = append(q.States, record.JobState(w)); return true })

	// The filters by time.
	if t, given := opt(f, "start_time__gte", moment(zone)); given {
		q.From = t
	}
	if t, given := opt(f, "start_time__lte", moment(zone)); given {
		q.Until = t
	}

	return q, none
}

// moment reads a time in the forms that callers use. A time without a zone is in the zone of the server.
func moment(zone *time.Location) kindOf[time.Time] {
	return func(l speech, v *strictjson.Value) (time.Time, string) {
		s, _ := text(l, v)
		layouts := []string{
			timeLocal, "2006-01-02 15:04:05Z07:00", time.RFC3339, time.DateTime, "2006-01-02T15:04:05",
			"2006-01-02 15:04", time.DateOnly,
		}
		for _, layout := range layouts {
			if t, err := time.ParseInLocation(layout, s, zone); err == nil {
				return t, ""
			}
		}
		return time.Time{}, l.say(sayWantTime, l.show(v))
	}
}
