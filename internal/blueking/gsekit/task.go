package gsekit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

// taskInfo is one process instance of a job.
type taskInfo struct {
	ID        int64           `json:"id"`
	JobID     int64           `json:"job_id"`
	Process   int             `json:"bk_process_id"`
	Status    record.JobState `json:"status"`
	ErrCode   int             `json:"err_code"`
	StartTime *string         `json:"start_time"`
	EndTime   *string         `json:"end_time"`
	// the task id of its operation; the GSE door shows the result
	PipelineID string    `json:"pipeline_id"`
	ExtraData  taskExtra `json:"extra_data"`
}

type taskExtra struct {
	Inst         int             `json:"inst_id"`
	Local        int             `json:"local_inst_id"`
	ErrCode      int             `json:"err_code"` // of an ignored task: the reason
	Retryable    bool            `json:"retryable"`
	Solutions    []solution      `json:"solutions"`
	FailedReason string          `json:"failed_reason"`
	ProcessInfo  json.RawMessage `json:"process_info"`
	TopoLevel    topoLevel       `json:"topo_level_info"`
	configExtra
}

type solution struct {
	HTML string `json:"html"`
}

type topoLevel struct {
	Biz    int `json:"bk_biz_id"`
	Set    int `json:"bk_set_id"`
	Module int `json:"bk_module_id"`
	Host   int `json:"bk_host_id,omitempty"` // in CMDB
}

func (l speech) task(j *record.Job, t *record.JobTask, c clock) taskInfo {
	started := t.Started
	if started.IsZero() { // it has not started; callers expect the time of the job
		started = j.Started
	}

	info := taskInfo{
		ID: t.ID, JobID: t.Job, Process: t.Process, Status: t.State, ErrCode: errCode(t), StartTime: c.show(started),
		EndTime:    c.show(t.Ended),
		PipelineID: taskname.Of(t.Task),
		ExtraData: taskExtra{
			Inst: t.Inst, Local: t.Local, ErrCode: errCode(t), Retryable: retryable(t.Reason),
			Solutions:   l.solutions(t.Reason),
			ProcessInfo: kept(t.Info), TopoLevel: topoLevel{t.Biz, t.Set, t.Module, hostID(t.Info)},
		},
	}
	reason, code := t.Reason, t.Code

	if j.Work != record.WorkNone {
		info.ExtraData.configExtra = l.configExtra(j, t)
		info.ExtraData.FailedReason = l.configReason(reason, t.Message)
		info.ExtraData.ErrCode = errCode(t)
		if info.ExtraData.FailedReason != "" || reason == record.ReasonNone {
			return info
		}
	} else if t.State == record.JobIgnored { // the only reason for an ignored task
		reason, code = record.ReasonVerdict, gozzard.CodeNotRunning
	}
	if reason != record.ReasonNone {
		info.ExtraData.ErrCode = reasonCode(reason, code)
		info.ExtraData.FailedReason = l.reason(reason, code, j.Action,
			blueking.Sentence(j.Action, code, t.Key.Name, t.Message))
	}

	return info
}

type taskPage struct {
	List   []taskInfo  `json:"list"`
	Count  int         `json:"count"`
	Counts stateCounts `json:"status_counter"`
}

// jobTask lists the tasks of a job in pages. Count and Counts are of all matching tasks.
func (s *server) jobTask(ctx context.Context, r *request) (any, error) {
	start, limit := r.page(true)
	f := record.JobTaskFilter{
		Sets: r.ids("bk_set_ids"), Modules: r.ids("bk_module_ids"), Processes: r.ids("bk_process_ids"),
		Names: list(r.form, "bk_process_names", filled),
	}
	for _, word := range list(r.form, "statuses", choice(stateWords()...)) {
		f.States = append(f.States, record.JobState(word))
	}

	code, byCode := opt(r.form, "err_code", anyInt())
	job, err := s.find(ctx, r)
	if err != nil {
		return nil, err
	}

	f.Job, f.Results = job.ID, job.Work != record.WorkNone
	out := taskPage{List: []taskInfo{}}
	utc := clock{timeUTC, time.UTC}
	counts := map[record.JobState]int{}
	err = s.eachTask(ctx, r, f, func(t *record.JobTask) {
		if byCode && int64(errCode(t)) != code {
			return
		}
		if out.Count >= start && out.Count < start+limit {
			out.List = append(out.List, r.lang.task(&job, t, utc))
		}
		out.Count++
		counts[t.State]++
	})

	out.Counts = count(counts)
	return out, err
}

// eachTask reads tasks in pages, so that a large job is never in memory as a whole.
func (s *server) eachTask(ctx context.Context, r *request, f record.JobTaskFilter, do func(t *record.JobTask)) error {
	f.Start, f.Limit = 0, maxPage
	for {
		page, err := s.jobs.Tasks(ctx, r.Caller, r.biz, f)
		if err != nil {
			return err
		}
		for i := range page.Tasks {
			do(&page.Tasks[i])
		}
		f.Start += len(page.Tasks)
		if len(page.Tasks) == 0 || f.Start >= page.Total {
			return nil
		}
	}
}

type statistic struct {
	ErrCode int    `json:"err_code"`
	Count   int    `json:"count"`
	Message string `json:"message"`
}

// jobTaskStatistics counts tasks by error code: pending, running and ignored tasks first.
func (s *server) jobTaskStatistics(ctx context.Context, r *request) (any, error) {
	job, err := s.find(ctx, r)
	if err != nil {
		return nil, err
	}

	counts := map[int]int{}
	if err := s.eachTask(ctx, r, record.JobTaskFilter{Job: job.ID},
		func(t *record.JobTask) { counts[errCode(t)]++ }); err != nil {
		return nil, err
	}

	out := []statistic{}
	first := []int{errPending, errRunning, errIgnored}
	for _, code := range append(first, slices.Sorted(maps.Keys(counts))...) {
		if n := counts[code]; n > 0 {
			out = append(out, statistic{code, n, r.lang.codeText(code)})
			delete(counts, code)
		}
	}

	return out, nil
}

// searchIP lists the hosts of a job's tasks, each once.
func (s *server) searchIP(ctx context.Context, r *request) (any, error) {
	status, _ := opt(r.form, "status", text)
	job, err := s.find(ctx, r)
	if err != nil {
		return nil, err
	}

	f := record.JobTaskFilter{Job: job.ID}

	if status != "" {
		f.States = []record.JobState{record.JobState(status)}
	}

	hosts, seen := []hostInfo{}, map[hostInfo]bool{}
	err = s.eachTask(ctx, r, f, func(t *record.JobTask) {
		host := hostInfo{Cloud: t.Addr.Cloud, IP: ipText(t.Addr.IP), Agent: string(t.Agent)}
		var info struct {
			Host hostInfo `json:"host"`
		}
		if json.Unmarshal(t.Info, &info) == nil && info.Host != (hostInfo{}) {
			host = info.Host
		}
		if !seen[host] {
			seen[host] = true
			hosts = append(hosts, host)
		}
	})

	return hosts, err
}

// retry repeats the operation on the failed tasks, or on the failed tasks in a list.
func (s *server) retry(ctx context.Context, r *request) (any, error) {
	ids := list(r.form, "job_task_id_list", anyInt())
	job, err := s.find(ctx, r)
	if err != nil {
		return nil, err
	}

	_, err = s.jobs.Retry(ctx, r.Caller, r.biz, job.ID, ids)
	if err == nil {
		return nil, nil
	}

	switch gozzard.KindOf(err) {
	case gozzard.ErrInvalid:
		if job.State == record.JobSucceeded { // nothing of it failed, so everything that was asked for is done
			return nil, nil
		}
		fallthrough
	case gozzard.ErrConflict:
		return nil, fail(codeRetryRefused, r.lang.say(sayRetryRefused, job.ID, r.lang.Error(err)))
	case gozzard.ErrNotFound:
		return nil, fail(codeNoTask, r.lang.say(sayNoTask, job.ID, fmt.Sprint(ids)))
	}

	return nil, err
}

func stateWords() []string {
	return []string{string(record.JobPending), string(record.JobRunning), string(record.JobSucceeded),
		string(record.JobFailed), string(record.JobIgnored)}
}
