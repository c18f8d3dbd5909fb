package configfile_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/configfile"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/test/storetest"
)

// plane has one business, and everybody sees the whole of it.
type plane struct{ rec record.Business }

func newPlane(t *testing.T, document string) *plane {
	t.Helper()
	b, err := topology.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := topology.Number(nil, b)
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{rec: record.Business{Business: *b, Numbers: numbers}}
	p.rec.ID, p.rec.Name = b.ID, b.Name
	return p
}

func (p *plane) Business(context.Context, gozzard.Caller, int) (record.Business, error) {
	return p.rec, nil
}

func (p *plane) FindProcesses(gozzard.Caller, topology.Query) (int, []topology.Row) { return 0, nil }

func (p *plane) TopologyItems(context.Context, int, []topology.Row, gozzard.Action) ([]record.TopologyItem, error) {
	return nil, nil
}

func (p *plane) May(gozzard.Caller, gozzard.Action, gozzard.Key, gozzard.Target, []byte) bool {
	return true
}

// hosts is one file on one host. say makes the outcome that its agent reports of what an agent of now reports.
type hosts struct {
	content string
	exists  bool
	say     func(gozzard.Outcome) gozzard.Outcome

	writes  []gozzard.FileWrite
	outcome gozzard.Outcome
}

func (h *hosts) WriteFiles(_ context.Context, op *gozzard.FileOperation) (gozzard.Task, error) {
	w := op.Writes[0]
	h.writes = append(h.writes, w)
	digest, out := gozzard.FileDigest([]byte(h.content)), gozzard.Outcome{Code: gozzard.CodeRefused}
	switch {
	case w.Expect != "" && w.Expect != gozzard.FileAbsent && !h.exists:
		out.Message = "file /etc/a.conf does not exist, but the operation expects one: compare it again"
		out.File.Code = gozzard.FileGone
	case w.Expect != "" && h.exists && w.Expect != digest:
		out.Message = "file /etc/a.conf has changed on the host: its sha256 is " + digest + ", and the operation expects " + w.Expect
		out.File = gozzard.FileResult{Code: gozzard.FileChanged, SHA256: digest}
	default:
		out = gozzard.Outcome{Code: gozzard.CodeOK, Message: "replaced", File: gozzard.FileResult{Code: gozzard.FileReplaced, SHA256: digest}}
		h.content, h.exists = string(w.Content), true
	}
	h.outcome = h.say(out)
	return gozzard.Task{ID: "20200101000000:7"}, nil
}

func (h *hosts) Await(context.Context, gozzard.Caller, gozzard.TaskID, time.Duration) (record.TaskResults, error) {
	state := gozzard.AttemptNotExecuted
	if h.outcome.Code == gozzard.CodeOK {
		state = gozzard.AttemptOK
	}
	return record.TaskResults{Attempts: []gozzard.Attempt{{State: state, Outcome: h.outcome}}}, nil
}

func (h *hosts) ReadFile(context.Context, gozzard.Caller, gozzard.FileRead) (gozzard.FileView, error) {
	return gozzard.FileView{}, nil
}

func (h *hosts) Operate(context.Context, *gozzard.Operation) (gozzard.Task, error) {
	return gozzard.Task{}, nil
}

// rig is a template that is bound to process 41, with a record.
type rig struct {
	t        *testing.T
	files    *configfile.Files
	template int64
	job      int64
}

var admin = gozzard.Caller{App: "admin", User: "root", Rights: gozzard.Everything()}

func newRig(t *testing.T, p *plane, h *hosts) *rig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "record.db")
	storetest.NewSQLite(t, path)
	store, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{t: t, files: configfile.New(configfile.Options{Store: store, Plane: p, Hosts: h})}
	r.apply("first\n")
	return r
}

// apply makes a content the active version of the template.
func (r *rig) apply(content string) {
	r.t.Helper()
	got, err := r.files.Apply(r.t.Context(), admin, &record.ConfigWanted{Content: content,
		Template: record.ConfigTemplate{Biz: 2, Name: "a", FileName: "a.conf", Path: "/etc", Owner: "shop", Group: "shop", Mode: "0644", LineSeparator: "LF"},
		Objects:  []record.ConfigObject{{Kind: record.ConfigOfProcess, ID: 41}}}, false)
	if err != nil {
		r.t.Fatal(err)
	}
	r.template = got.Template
}

// work does a job on the file and returns its task.
func (r *rig) work(work record.JobWork, c record.ConfigChoice) record.JobTask {
	r.t.Helper()
	r.job++
	task := record.JobTask{ID: r.job, Job: r.job, Biz: 2, Process: 41, Local: 1, Inst: 1, Agent: "web-1"}
	steps := record.JobSteps{Save: func([]*record.JobTask) error { return nil }, Renew: func() error { return nil }}
	j := &record.Job{ID: r.job, Biz: 2, Action: gozzard.ActionConfigure, Work: work, Choice: c, Caller: admin}
	if err := r.files.Work(r.t.Context(), j, []*record.JobTask{&task}, steps); err != nil {
		r.t.Fatal(err)
	}
	return task
}
