package api

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// ConfigJobs has the jobs on configuration files.
type ConfigJobs interface {
	Create(ctx context.Context, r record.JobRequest) (record.Job, error)
	Stop(ctx context.Context, caller gozzard.Caller, biz int, id int64) (record.Job, error)
	Job(ctx context.Context, caller gozzard.Caller, biz int, id int64) (record.Job, error)
	Jobs(ctx context.Context, caller gozzard.Caller, f record.JobFilter) (total int, jobs []record.Job, err error)
	Tasks(ctx context.Context, caller gozzard.Caller, biz int, f record.JobTaskFilter) (record.JobTaskPage, error)
}

// rollback is the word for a release of earlier files.
const rollback = "rollback"

// thenWords are what can follow a release.
var thenWords = []string{"reload", "restart"}

// maxUnconfirmed is how many process instances get files without a confirmation.
const maxUnconfirmed = 100

// postConfigJob starts work on files.
func (a *api) postConfigJob(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	var req record.JobRequest
	err := readConfigFields[client.ConfigJobRequest](a, w, r, func(root *strictjson.Value) {
		req = a.readConfigJob(caller, root)
	})
	if err != nil {
		return err
	}
	job, err := a.Jobs.Create(r.Context(), req)
	if err != nil {
		return err
	}
	return answer(w, http.StatusAccepted, configJob(&job))
}

// readConfigJob reads what a job does, and for which processes.
func (a *api) readConfigJob(caller gozzard.Caller, root *strictjson.Value) record.JobRequest {
	work, templates, version, biz := root.Get("work"), root.Get("templates"), root.Get("version"), root.Get("biz")
	force, confirm, expression := root.Get("force"), root.Get("confirm"), root.Get("expression")
	req := record.JobRequest{Caller: caller, Work: record.JobWork(work.Str()), Expression: expression.OptStr(), Raw: []byte("{}")}
	words := []string{string(record.WorkGenerate), string(record.WorkRelease), string(record.WorkDiff), rollback}
	if !slices.Contains(words, string(req.Work)) {
		work.Fault("must be one of %s", strings.Join(words, ", "))
	}
	templates.OptList(record.MaxConfigTemplates, func(e *strictjson.Value) {
		req.Choice.Templates = append(req.Choice.Templates, e.Int(1, 1<<53))
	})

	// Read which processes.
	if s := a.readBusinessBody(caller, root); s == nil {
		biz.Fault("required: the business, and some of its processes by expression, sets, modules or names")
	} else {
		req.Biz, req.Query = s.Biz, s.Query
	}

	// Read what a release needs.
	writes := req.Work == record.WorkRelease || req.Work == rollback
	forced, expected := force.OptBool(false), int(confirm.OptInt(0, 1, math.MaxInt32))
	if writes {
		req.Choice.Expect, req.Confirm, req.ConfirmAbove = !forced, expected, maxUnconfirmed
	} else if forced || expected != 0 {
		force.Fault("force and confirm are for release and rollback")
	}
	if then := root.Get("then"); then.Given() {
		switch req.Choice.Then = then.Str(); {
		case !slices.Contains(thenWords, req.Choice.Then):
			then.Fault("must be one of %s", strings.Join(thenWords, ", "))
		case !writes:
			then.Fault("is for release and rollback")
		}
	}
	req.Choice.Rollout = readRollout(root, writes)
	id := version.OptInt(0, 1, 1<<53)
	switch {
	case req.Work != rollback && id != 0:
		version.Fault("is for rollback: a release writes what was generated last")
	case req.Work == rollback && (id == 0 || len(req.Choice.Templates) != 1):
		version.Fault("a rollback needs one template and the version of it that was released before")
	case req.Work == rollback:
		req.Work, req.Choice.Back = record.WorkRelease, map[int64]int64{req.Choice.Templates[0]: id}
	}
	return req
}

// readRollout reads how a release goes on; nil: all hosts at once.
func readRollout(root *strictjson.Value, writes bool) *record.Rollout {
	v := root.Get("rollout")
	if !v.OptObject() {
		return nil
	}
	if !writes {
		v.Fault("is for release and rollback")
	}
	v.Only(fieldNames(reflect.TypeFor[client.Rollout]())...)
	batch, watch, failed := v.Get("batch"), v.Get("watch_seconds"), v.Get("max_failed")
	return &record.Rollout{Batch: int(batch.Int(1, record.MaxRolloutBatch)), Watch: int(watch.OptInt(0, 0, record.MaxRolloutWatch)),
		MaxFailed: int(failed.OptInt(0, 0, record.MaxRolloutFailed))}
}

// postConfigStop ends a job early.
func (a *api) postConfigStop(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	id, err := strconv.ParseInt(r.PathValue("job"), 10, 64)
	if err != nil || id < 1 {
		return gozzard.Errorf(gozzard.ErrNotFound, "there is no job %q", clip(r.PathValue("job")))
	}
	var biz int
	err = readConfigFields[client.ConfigStopRequest](a, w, r, func(root *strictjson.Value) {
		v := root.Get("biz")
		biz = int(v.Int(1, math.MaxInt32))
	})
	if err != nil {
		return err
	}
	job, err := a.Jobs.Stop(r.Context(), caller, biz, id)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, configJob(&job))
}

func configJob(j *record.Job) client.ConfigJob {
	out := client.ConfigJob{ID: j.ID, Work: string(j.Work), Templates: append([]int64{}, j.Choice.Templates...), Then: j.Choice.Then, State: string(j.State),
		Message: j.Message, User: j.Caller.User, App: j.Caller.App, Started: client.At(j.Started), Ended: client.At(j.Ended)}
	out.Stopped = j.Choice.Stopped != nil
	if r := j.Choice.Rollout; r != nil {
		out.Rollout = &client.Rollout{Batch: r.Batch, Watch: r.Watch, MaxFailed: r.MaxFailed}
	}
	for _, v := range j.Choice.Back {
		out.Work, out.Version = rollback, v
	}
	return out
}

// getConfigJobs lists jobs on configuration files.
func (a *api) getConfigJobs(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	only := true
	f := record.JobFilter{Biz: q.biz(), Configs: &only, Template: int64(q.number("template", 0, 1, math.MaxInt32))}
	f.Start, f.Limit = q.page()
	if err := q.faults.Err(); err != nil {
		return err
	}
	total, jobs, err := a.Jobs.Jobs(r.Context(), caller, f)
	if err != nil {
		return err
	}
	out := client.ConfigJobs{Count: total, Jobs: make([]client.ConfigJob, len(jobs))}
	for i := range jobs {
		out.Jobs[i] = configJob(&jobs[i])
		if i < maxVersions && out.Jobs[i].Version == 0 {
			if out.Jobs[i].Version, err = a.releasedVersion(r.Context(), caller, &jobs[i]); err != nil {
				return err
			}
		}
	}
	return answer(w, http.StatusOK, out)
}

// maxVersions bounds the jobs of a list whose versions are looked up: each needs a question to the record.
const maxVersions = 100

// releasedVersion is the version of its template that a release writes, 0 if it has several templates or nothing to show.
func (a *api) releasedVersion(ctx context.Context, caller gozzard.Caller, j *record.Job) (int64, error) {
	if j.Work != record.WorkRelease || len(j.Choice.Templates) != 1 {
		return 0, nil
	}
	page, err := a.Jobs.Tasks(ctx, caller, j.Biz, record.JobTaskFilter{Job: j.ID, Limit: 1, Results: true})
	if err != nil || len(page.Tasks) == 0 {
		return 0, err
	}
	var done []record.ConfigDone
	if json.Unmarshal(page.Tasks[0].Result, &done) != nil || len(done) == 0 {
		return 0, nil
	}
	return done[0].Version, nil
}

// getConfigJob reads a job with its tasks. Those of hosts that the caller may not see are left out.
func (a *api) getConfigJob(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	biz, id, err := a.configQuery(r, "job")
	if err != nil {
		return err
	}
	job, err := a.Jobs.Job(r.Context(), caller, biz, id)
	if err != nil {
		return err
	}
	if job.Work == record.WorkNone {
		return gozzard.Errorf(gozzard.ErrNotFound, "job %d of business %d is not about configuration files", id, biz)
	}
	page, err := a.Jobs.Tasks(r.Context(), caller, biz, record.JobTaskFilter{Job: id, Limit: -1, Results: true})
	if err != nil {
		return err
	}

	out := client.ConfigJobDetail{ConfigJob: configJob(&job), List: make([]client.ConfigTask, len(page.Tasks))}
	out.Tasks = map[string]int{}
	for i := range page.Tasks {
		t := &page.Tasks[i]
		out.Tasks[string(t.State)]++
		out.List[i] = configTask(t)
	}
	return answer(w, http.StatusOK, out)
}

func configTask(t *record.JobTask) client.ConfigTask {
	out := client.ConfigTask{Process: t.Process, Name: t.Name, Instance: t.Local, Host: hostRef(t.Agent, t.Addr), State: string(t.State),
		Reason: string(t.Reason), Message: strings.ReplaceAll(t.Message, "\n", ": "), Files: []client.ConfigOf{}}
	if t.Reason == record.ReasonUnsafe {
		out.Message = record.UnsafeError(t.Message).Error()
	}
	if t.Reason == record.ReasonRender && strings.Contains(t.Message, "\n") { // the first line is the number of one
		out.Message = "line " + out.Message
	}
	var done []record.ConfigDone
	if json.Unmarshal(t.Result, &done) != nil { // it has not ended
		return out
	}
	for i := range done {
		d := &done[i]
		out.Files = append(out.Files, client.ConfigOf{Template: d.TemplateName, Version: d.Version, Path: path.Join(d.Path, d.Name), SHA256: d.Hash, Live: d.Live,
			Changed: d.Changed, Reason: string(d.Reason), Message: d.Message})
	}
	return out
}
