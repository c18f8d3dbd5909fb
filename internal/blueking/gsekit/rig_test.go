package gsekit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/blueking/gsekit"
	"github.com/gozzard/gozzard/internal/configfile"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/taskname"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/topology/index"
	"github.com/gozzard/gozzard/test/storetest"
)

// The real parts fit the door.
var _ gsekit.Plane = (*control.Plane)(nil)

const taskID = gozzard.TaskID("20200101000000:7")

// plane answers from the real index over the topology of testdata; it records the operations.
type plane struct {
	index *index.Index
	rec   record.Business
	calls []string
	err   error
}

func readBusiness(t testing.TB) *topology.Business {
	t.Helper()
	doc, err := os.ReadFile("testdata/topology.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b, err := topology.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newPlane(t testing.TB) *plane {
	t.Helper()
	b := readBusiness(t)
	numbers, err := topology.Number(nil, b)
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{index: index.New(), rec: record.Business{Business: *b, Numbers: numbers}}
	p.rec.ID, p.rec.Name, p.rec.At = b.ID, b.Name, time.Date(2026, 7, 1, 2, 3, 4, 5000, time.UTC)
	p.index.Put(b, numbers)
	p.index.RefreshBusiness(b.ID, look)
	return p
}

// look is the fleet: gse_agent is running and supervised, the first java is running, nginx is stopped but supervised,
// and all others were never registered.
func look(_ topology.Host, keys []gozzard.Key, out []topology.Status) {
	for i, key := range keys {
		switch key.Name {
		case "gse_agent_1":
			out[i] = topology.Status{State: gozzard.StateRunning, Hosted: true}
		case "java_1":
			out[i] = topology.Status{State: gozzard.StateRunning}
		case "java_2":
			out[i] = topology.Status{State: gozzard.StateStopped}
		case "nginx_1":
			out[i] = topology.Status{State: gozzard.StateStopped, Hosted: true}
		}
	}
}

func (p *plane) FindProcesses(_ gozzard.Caller, q topology.Query) (int, []topology.Row) {
	n, rows := p.index.Find(q)
	for i := range rows {
		if rows[i].State != gozzard.StateUnregistered {
			rows[i].ReportedAt = 1632830304
		}
		rows[i].Stale = rows[i].Name == "nginx"
	}
	return n, rows
}

func (p *plane) Business(_ context.Context, _ gozzard.Caller, biz int) (record.Business, error) {
	if biz != p.rec.ID {
		return record.Business{}, gozzard.Errorf(gozzard.ErrNotFound, "no business %d", biz)
	}
	return p.rec, p.err
}

func (p *plane) May(caller gozzard.Caller, a gozzard.Action, key gozzard.Key, _ gozzard.Target, _ []byte) bool {
	return caller.Rights.MaySpace(a, key.Namespace)
}

func (p *plane) Businesses(gozzard.Caller) []record.BusinessHead {
	return []record.BusinessHead{p.rec.BusinessHead}
}

func (p *plane) TopologyItems(_ context.Context, biz int, rows []topology.Row,
	a gozzard.Action) ([]record.TopologyItem, error) {
	var out []record.TopologyItem
	for i := range rows {
		for j, in := range rows[i].Instances {
			key := topology.Key(biz, rows[i].Name, in.Local)
			addr := rows[i].Host.Addr()
			out = append(out, record.TopologyItem{Row: &rows[i], Instance: j, Item: gozzard.Item{
				Action: a, Key: key, Spec: &gozzard.Spec{},
				Targets: []gozzard.Target{{Addr: addr, ResultKey: addr.String() + ":" + key.String()}},
			}})
		}
	}
	return out, p.err
}

func (p *plane) Operate(_ context.Context, op *gozzard.Operation) (gozzard.Task, error) {
	for _, it := range op.Items {
		spec := ""
		if it.Spec != nil {
			spec = " with a definition"
		}
		p.calls = append(p.calls, fmt.Sprintf("%s by %s/%s: %s %s at %s%s", op.Door, op.Caller.App, op.Caller.User,
			it.Action.Stored(), it.Key, it.Targets[0].ResultKey, spec))
	}
	return gozzard.Task{ID: taskID}, p.err
}

func (p *plane) Await(_ context.Context, _ gozzard.Caller, id gozzard.TaskID,
	limit time.Duration) (record.TaskResults, error) {
	p.calls = append(p.calls, fmt.Sprintf("await %s for at most 3s: %v", taskname.Of(id), limit > 0 && limit <= 3*time.Second))
	return record.TaskResults{}, p.err
}

// jobs is a record of jobs that are never carried out.
type jobs struct {
	calls []string
	last  record.JobRequest
	list  []record.Job // the newest first
	tasks map[int64][]record.JobTask
	err   error // of retry
}

func (j *jobs) Create(_ context.Context, r record.JobRequest) (record.Job, error) {
	j.last = r
	q, err := json.Marshal(r.Query)
	j.calls = append(j.calls, fmt.Sprintf("create %s by %s/%s in business %d, %s, of %s: %s", r.Action.Stored(), r.Caller.App,
		r.Caller.User, r.Biz, r.Granularity, r.Expression, q))
	return record.Job{ID: 158}, err
}

func (j *jobs) Job(_ context.Context, _ gozzard.Caller, biz int, id int64) (record.Job, error) {
	for _, job := range j.list {
		if job.ID == id && job.Biz == biz {
			return job, nil
		}
	}
	return record.Job{}, gozzard.Errorf(gozzard.ErrNotFound, "no such job")
}

func (j *jobs) Jobs(_ context.Context, _ gozzard.Caller, f record.JobFilter) (int, []record.Job, error) {
	b, err := json.Marshal(f)
	j.calls = append(j.calls, fmt.Sprintf("jobs %s", b))
	var fit []record.Job
	for _, job := range j.list {
		if job.Biz == f.Biz {
			fit = append(fit, job)
		}
	}

	from, to := min(f.Start, len(fit)), len(fit)

	if f.Limit >= 0 {
		to = min(from+f.Limit, to)
	}

	return len(fit), slices.Clone(fit[from:to]), err
}

func (j *jobs) Tasks(_ context.Context, _ gozzard.Caller, biz int, f record.JobTaskFilter) (record.JobTaskPage, error) {
	has := func(n int, list []int) bool { return len(list) == 0 || slices.Contains(list, n) }
	page := record.JobTaskPage{Counts: map[record.JobState]int{}}
	for _, t := range j.tasks[f.Job] {
		page.Counts[t.State]++
		if t.Biz != biz || !has(t.Set, f.Sets) || !has(t.Module, f.Modules) || !has(t.Process, f.Processes) ||
			len(f.Names) > 0 && !slices.Contains(f.Names, t.Name) ||
			len(f.States) > 0 && !slices.Contains(f.States, t.State) || len(f.IDs) > 0 &&
			!slices.Contains(f.IDs, t.ID) {
			continue
		}
		if page.Total >= f.Start && (f.Limit < 0 || len(page.Tasks) < f.Limit) {
			page.Tasks = append(page.Tasks, t)
		}
		page.Total++
	}

	return page, nil
}

func (j *jobs) Retry(_ context.Context, caller gozzard.Caller, biz int, id int64, tasks []int64) (record.Job, error) {
	j.calls = append(j.calls, fmt.Sprintf("retry by %s/%s in business %d: job %d, tasks %v", caller.App, caller.User,
		biz, id, tasks))
	return record.Job{}, j.err
}

func (j *jobs) CountJobs(_ context.Context, _ gozzard.Caller, f record.JobFilter) (out []record.JobCount, _ error) {
	for i := range j.list {
		job := &j.list[i]
		if len(f.Actions) > 0 && !slices.Contains(f.Actions, job.Action.String()) || job.Biz != f.Biz || !f.From.IsZero() && job.Started.Before(f.From) || !f.Until.IsZero() && job.Started.After(f.Until) {
			continue
		}
		out = append(out, record.JobCount{Biz: job.Biz, Action: job.Action, Work: job.Work, App: job.Caller.App,
			User: job.Caller.User, State: job.State, At: job.Started.Truncate(15 * time.Minute), Count: 1})
	}
	return out, nil
}

func (j *jobs) HasJobs(_ context.Context, _ gozzard.Caller, biz int) (bool, error) {
	return biz == 2, nil
}

// rig is a door with fakes behind it.
type rig struct {
	*blueking.Handler
	plane   *plane
	jobs    *jobs
	configs *configfile.Files
	flushed []string
	flush   error
}

func book(t testing.TB) *auth.Directory {
	t.Helper()
	b, err := auth.New(auth.Config{Apps: []auth.App{{Code: "bk_sops", Secrets: []auth.Digest{auth.Hash("secret")},
		AssertsUsers: true}}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newStore opens an empty record.
func newStore(t testing.TB) *sqlstore.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "record.db")
	storetest.NewSQLite(t, path)
	s, err := sqlstore.OpenSQLite(context.Background(), path, sqlstore.Options{Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ticking is a clock that goes on by a second whenever it is read.
func ticking() func() time.Time {
	now := time.Date(2026, 11, 15, 13, 41, 10, 289_000_000, time.UTC)
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{plane: newPlane(t), jobs: &jobs{list: someJobs(), tasks: map[int64][]record.JobTask{158: someTasks()}}}
	r.configs = configfile.New(configfile.Options{Store: newStore(t), Plane: r.plane, Now: ticking()})
	r.Handler = gsekit.New(gsekit.Options{
		Plane: r.plane, Jobs: r.jobs, Configs: r.configs, Auth: book(t), SyncWait: 3 * time.Second, Zone: time.FixedZone("", 8*3600),
		Flush: func(_ context.Context, caller gozzard.Caller, biz int) ([]string, error) {
			r.flushed = append(r.flushed, fmt.Sprintf("flush of business %d by %s/%s", biz, caller.App, caller.User))
			return nil, r.flush
		},
	})
	return r
}

const (
	bus  = "/api/c/compapi/v2/gsekit/api/"
	cred = `"bk_app_code":"bk_sops","bk_app_secret":"secret","bk_username":"admin"`
	head = `{"bk_app_code":"bk_sops","bk_app_secret":"secret","bk_username":"admin"}`
)

type envelope struct {
	Result  *bool           `json:"result"`
	Code    *int            `json:"code"`
	Message *string         `json:"message"`
	Data    json.RawMessage `json:"data"`
	ID      *string         `json:"request_id"`
	status  int
}

// do sends a request, with credentials in a header, and checks what every answer must have.
func (r *rig) do(t testing.TB, method, path, body string, headers ...string) envelope {
	t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("X-Bkapi-Authorization", head)

	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}

	w := httptest.NewRecorder()

	if !r.Owns(req) {
		t.Fatalf("%s is not owned", path)
	}

	r.ServeHTTP(w, req)
	e := envelope{status: w.Code}
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Result == nil || e.Code == nil ||
		e.Message == nil || e.ID == nil || e.Data == nil {
		t.Fatalf("%s: not an envelope (%v): %.300s", path, err, w.Body)
	}

	if *e.Result != (*e.Code == 0) || len(*e.ID) != 32 || !*e.Result && string(e.Data) != "null" || *e.Result &&
		*e.Message != "" {
		t.Fatalf("%s: %.300s", path, w.Body)
	}

	return e
}

func (r *rig) post(t testing.TB, path, body string, headers ...string) envelope {
	t.Helper()
	return r.do(t, http.MethodPost, path, body, headers...)
}

// everybody is a caller with all rights.
var everybody = gozzard.Caller{Rights: gozzard.Everything()}
