package gsekit

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/topology"
)

// workWords are the words for work on configuration files.
func workWords() []string {
	return []string{string(record.WorkGenerate), string(record.WorkRelease), string(record.WorkDiff)}
}

// configJob creates a job on the configuration files of a scope: of one template, or of all that are bound.
func (s *server) configJob(work record.JobWork) handler {
	return func(ctx context.Context, r *request) (any, error) {
		sel := r.selection(r.biz)
		r.narrow(&sel.query)
		if id, given := opt(r.form, "config_template_id", integer(1, maxID)); given {
			sel.choice = record.ConfigChoice{Templates: []int64{id}, Every: true}
			if versions := list(r.form, "config_version_ids", versionID); len(versions) > 0 {
				sel.choice.Versions = map[int64][]int64{id: versions}
			}
		}
		return s.create(ctx, r, objectConfig, string(work), sel)
	}
}

// choice reads which files a job is about. As in GSEKit, a process must have all named templates.
func (f *form) choice() (c record.ConfigChoice) {
	c.Every = true
	c.Templates = listOf(f, "config_template_ids", record.MaxConfigTemplates, integer(1, maxID))
	for _, v := range listOf(f, "config_version_ids_map", record.MaxConfigTemplates, versionChoice) {
		if len(v.versions) > 0 {
			if c.Versions == nil {
				c.Versions = map[int64][]int64{}
			}
			c.Versions[v.template] = v.versions
		}
	}
	return c
}

// chosenVersions are the versions of a template that a job is about.
type chosenVersions struct {
	template int64
	versions []int64
}

func versionChoice(l speech, v *strictjson.Value) (c chosenVersions, reason string) {
	if !v.IsObject() {
		return c, l.say(sayWantObject, l.show(v))
	}
	in := &form{object: *v, lang: l}
	c.template = must(in, "config_template_id", integer(1, maxID))
	c.versions = listOf(in, "config_version_ids", record.MaxConfigVersions, versionID)
	return c, in.faults.String()
}

// versionID reads the id of a version, or the sign of GSEKit for a file that was never released.
func versionID(l speech, v *strictjson.Value) (int64, string) {
	if v.IsString() && v.Text() == "-" {
		return record.ConfigUnreleased, ""
	}
	return integer(1, maxID)(l, v)
}

// syncGenerate is how long sync_generate_config waits for its job.
const syncGenerate = 30 * time.Second

// syncGenerateConfig renders the file of one template for a process, and answers when that is done.
func (s *server) syncGenerateConfig(ctx context.Context, r *request) (any, error) {
	template, process := r.templateID(), int(must(r.form, "bk_process_id", integer(1, maxID)))
	if err := r.err(); err != nil {
		return nil, err
	}
	_, rows := s.plane.FindProcesses(r.Caller, topology.Query{Biz: r.biz, Processes: []int{process}, Limit: 1})
	if len(rows) == 0 {
		return nil, fail(codeNoProcess, r.lang.say(sayNoProcess, strconv.Itoa(process)))
	}

	// Create the job as a request for this process would.
	asked := &scope{Env: rows[0].Env.String(), Processes: []int{process}}
	sel := &selection{scope: asked, query: topology.Query{Biz: r.biz, Processes: []int{process}, Limit: -1},
		choice: record.ConfigChoice{Templates: []int64{template}}}
	made, err := s.create(ctx, r, objectConfig, string(record.WorkGenerate), sel)
	if err != nil {
		return nil, err
	}
	return s.awaitTasks(ctx, r, made.(created).JobID)
}

// awaitTasks waits for a job, and lists its tasks.
func (s *server) awaitTasks(ctx context.Context, r *request, id int64) (any, error) {
	for end := time.Now().Add(syncGenerate); ; {
		job, err := s.jobs.Job(ctx, r.Caller, r.biz, id)
		if err != nil {
			return nil, err
		}
		if job.State.Final() || time.Now().After(end) {
			out := []taskInfo{}
			err := s.eachTask(ctx, r, record.JobTaskFilter{Job: id, Results: true}, func(t *record.JobTask) {
				out = append(out, r.lang.task(&job, t, utc()))
			})
			return out, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// configExtra is what a task on configuration files has besides.
type configExtra struct {
	Templates []int64      `json:"config_template_ids,omitempty"`
	Related   *relatedInfo `json:"related_config_info,omitempty"`
	Instances *[]doneInfo  `json:"config_instances,omitempty"`
}

type relatedInfo struct {
	Specified bool    `json:"is_config_specified"`
	Templates []int64 `json:"related_config_template_ids"`
}

// doneInfo is what a task did with one file.
type doneInfo struct {
	ID           int64         `json:"id"`
	Hash         string        `json:"sha256,omitempty"`
	Template     int64         `json:"config_template_id"`
	TemplateName string        `json:"template_name"`
	User         string        `json:"user,omitempty"`
	File         string        `json:"file_name"`
	Inst         int           `json:"inst_id,omitempty"`
	Path         string        `json:"path,omitempty"`
	OS           int           `json:"os_type,omitempty"`
	Snapshot     *snapshotHash `json:"config_snapshot_info,omitempty"`
	Err          *doneError    `json:"err,omitempty"`
}

type snapshotHash struct {
	Hash     string `json:"sha256"`
	Job      int64  `json:"job_instance_id"`
	Instance int64  `json:"config_instance_id"`
}

type doneError struct {
	Code      int    `json:"err_code"`
	Reason    string `json:"failed_reason"`
	Retryable bool   `json:"retryable"`
}

// configExtra shows what a task did. The numbers of systems are those of Job: 1 is Linux, 2 is Windows.
func (l speech) configExtra(j *record.Job, t *record.JobTask) configExtra {
	var done []record.ConfigDone
	if json.Unmarshal(t.Result, &done) != nil {
		done = nil // it has not ended
	}
	related := &relatedInfo{Specified: len(j.Choice.Templates) > 0, Templates: []int64{}}
	files := []doneInfo{}
	for i := range done {
		d := &done[i]
		if !slices.Contains(related.Templates, d.Template) {
			related.Templates = append(related.Templates, d.Template)
		}
		f := doneInfo{ID: d.Instance, Template: d.Template, TemplateName: d.TemplateName, File: d.Name}
		if j.Work != record.WorkGenerate {
			f.Hash, f.User, f.Inst, f.Path, f.OS = d.Hash, d.Owner, t.Inst, d.Path, 1
			if d.CRLF {
				f.OS = 2
			}
		}
		if d.Live != "" {
			f.Snapshot = &snapshotHash{d.Live, j.ID, d.Instance}
		}
		if d.Reason != record.ReasonNone {
			f.Err = &doneError{reasonCode(d.Reason, ""), l.configReason(d.Reason, d.Message), true}
		}
		files = append(files, f)
	}
	return configExtra{Templates: j.Choice.Templates, Related: related, Instances: &files}
}

// configReason says why a task on configuration files did not succeed, "" if the reason is another one.
func (l speech) configReason(reason record.JobReason, message string) string {
	switch reason {
	case record.ReasonUnbound:
		return l.say(sayUnbound)
	case record.ReasonNoActive:
		return l.say(sayNoActive, message)
	case record.ReasonRender:
		return l.rendering(message)
	case record.ReasonUnsafe:
		return message
	case record.ReasonThen, record.ReasonWatch, record.ReasonStopped:
		return l.Message(message)
	case record.ReasonInclude:
		return l.say(sayNoInclude, message)
	case record.ReasonGone:
		return l.say(sayNoProcess, message)
	case record.ReasonNotMade:
		return l.say(sayNotMade)
	case record.ReasonWrite:
		return l.say(sayNotWritten, l.Message(message))
	case record.ReasonAbsent:
		return l.say(sayAbsent, message)
	case record.ReasonDiffers:
		return l.say(sayDiffers)
	case record.ReasonRead:
		return l.say(sayNotRead, l.Message(message))
	}
	return ""
}

// rendering is the text of an error of a template. The task has line, source and message in three lines, and a fourth one may
// say more, which GSEKit does not.
func (l speech) rendering(message string) string {
	parts := strings.SplitN(message, "\n", 4)
	if len(parts) < 3 {
		return l.say(sayRenderFault, "0", "", message)
	}
	return l.say(sayRenderFault, parts[0], parts[1], parts[2])
}

// preview renders a content for the first instance of a process. Nothing is stored.
func (s *server) preview(ctx context.Context, r *request) (any, error) {
	content := must(r.form, "content", filledUntrimmed)
	process := must(r.form, "bk_process_id", integer(1, maxID))
	if err := r.err(); err != nil {
		return nil, err
	}
	out, err := s.configs.Preview(ctx, r.Caller, r.biz, int(process), content)
	if err != nil {
		return nil, err
	}
	return out, nil
}
