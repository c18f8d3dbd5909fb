package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

// plane is a control plane over a real index of the fleet. It records its operations and answers what the test sets.
type plane struct {
	*fleet.Index
	*businesses
	mu      sync.Mutex
	ops     []*gozzard.Operation
	refuse  error
	before  []byte // the recorded definition of every process
	results map[gozzard.TaskID]record.TaskResults
	awaited time.Duration
	list    record.TaskPage // what Tasks answers
	listed  record.TaskFilter
	log     func(gozzard.Target, gozzard.LogQuery) (gozzard.LogChunk, error)
	history func(gozzard.Target, gozzard.HistoryQuery) (gozzard.History, error)

	listedMax int
	failed    []gozzard.Item // what FailedItems answers
	repeated  []int          // which attempts FailedItems was asked for
	ring      *control.EventRing
}

func newPlane() *plane {
	return &plane{Index: fleet.New(), results: map[gozzard.TaskID]record.TaskResults{},
		ring: newRing(time.Now()),
		before: gozzard.EncodeSpec(&gozzard.Spec{Identity: gozzard.Identity{ProcName: "web", SetupPath: "/opt/web"},
			Policy: gozzard.DefaultPolicy()})}
}

func (p *plane) Preview(_ context.Context, op *gozzard.Operation) ([]record.Preview, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []record.Preview
	for i := range op.Items {
		it := &op.Items[i]
		for _, t := range it.Targets {
			v := record.Preview{Attempt: gozzard.Attempt{Agent: t.Agent, Addr: t.Addr, Key: it.Key, Action: it.Action}}
			if it.Spec != nil {
				v.Defines, v.Before, v.After = true, p.before, gozzard.EncodeSpec(it.Spec)
			}
			out = append(out, v)
		}
	}
	return out, p.refuse
}

func (p *plane) Definitions(_ context.Context, caller gozzard.Caller, f fleet.Filter, start, limit int) (int,
	[]record.Definition, error) {
	n, rows := p.Find(caller, f, start, limit)
	var out []record.Definition
	for i := range rows {
		out = append(out, record.Definition{Addr: rows[i].Addr, Process: record.Process{Spec: p.before,
			ID: gozzard.ProcID{Agent: rows[i].Agent, Key: rows[i].Status.Key}}})
	}
	return n, out, nil
}

func (p *plane) Operate(_ context.Context, op *gozzard.Operation) (gozzard.Task, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != nil {
		return gozzard.Task{}, p.refuse
	}
	p.ops = append(p.ops, op)
	n := 0
	for _, it := range op.Items {
		n += len(it.Targets)
	}
	return gozzard.Task{ID: "20240102030405:7", Targets: n}, nil
}

func (p *plane) Results(_ context.Context, caller gozzard.Caller, id gozzard.TaskID) (record.TaskResults, error) {
	r, ok := p.results[id]
	if !ok || r.Task.Caller.App != caller.App {
		return record.TaskResults{}, gozzard.Errorf(gozzard.ErrNotFound, "no such task")
	}
	return r, nil
}

func (p *plane) Tasks(_ context.Context, _ gozzard.Caller, f record.TaskFilter, limit int) (record.TaskPage, error) {
	p.listed, p.listedMax = f, limit
	return p.list, nil
}

func (p *plane) FailedItems(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID,
	only []int) ([]gozzard.Item, error) {
	p.repeated = only
	_, err := p.Results(ctx, caller, id)
	return p.failed, err
}

// CancelTask cancels what waits.
func (p *plane) CancelTask(ctx context.Context, q *record.Cancel) (record.TaskResults, error) {
	res, err := p.Results(ctx, q.Caller, q.Task)
	if err != nil {
		return res, err
	}
	res.Attempts = slices.Clone(res.Attempts)
	for i := range res.Attempts {
		if a := &res.Attempts[i]; a.State == gozzard.AttemptPending && q.Only(a) {
			a.State, a.Outcome = gozzard.AttemptNotExecuted, gozzard.Outcome{Code: gozzard.CodeCancelled}
		}
	}
	return res, nil
}

func (p *plane) Await(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID,
	max time.Duration) (record.TaskResults, error) {
	p.awaited = max
	return p.Results(ctx, caller, id)
}

func (p *plane) Status(_ gozzard.Caller, key gozzard.Key, targets []gozzard.Target) []record.StatusRow {
	rows := make([]record.StatusRow, len(targets))
	for i, t := range targets {
		rows[i].Host, rows[i].HostKnown = p.Resolve(gozzard.Caller{}, t)
		rows[i].Row, rows[i].ProcKnown = p.Get(rows[i].Host.Info.Agent, key)
	}
	return rows
}

func (p *plane) May(caller gozzard.Caller, a gozzard.Action, key gozzard.Key, _ gozzard.Target, _ []byte) bool {
	return caller.Rights.MaySpace(a, key.Namespace)
}

func (p *plane) Resolve(_ gozzard.Caller, t gozzard.Target) (fleet.Host, bool) {
	if t.Agent != "" {
		return p.Host(t.Agent)
	}
	return p.HostByAddr(t.Addr)
}

func (p *plane) Forget(_ context.Context, _ gozzard.Caller, host gozzard.HostRef) (record.Forgotten, error) {
	n, _ := p.Index.Find(gozzard.Everything(), fleet.Filter{Agents: []gozzard.AgentID{host.Agent}}, 0, 0)
	p.Index.Forget(host.Agent)
	return record.Forgotten{Processes: n}, p.refuse
}

func (p *plane) Find(caller gozzard.Caller, f fleet.Filter, start, limit int) (int, []fleet.Row) {
	return p.Index.Find(caller.Rights, f, start, limit)
}

func (p *plane) Hosts(caller gozzard.Caller) []fleet.Host { return p.Index.Hosts(caller.Rights) }

// newRing makes a ring for 50 events. Numbers begin with the clock.
func newRing(now time.Time) *control.EventRing {
	ring := control.NewEventRing(50)
	ring.Load(record.EventState{Last: uint64(now.UnixMicro())}, nil, true)
	return ring
}

// record numbers events and adds them to those that readers see.
func (p *plane) record(events ...record.Event) {
	before := p.ring.Last()
	for i := range events {
		events[i].ID = before + 1 + uint64(i)
	}
	p.ring.Append(before, events)
}

func (p *plane) LastEvent() uint64 { return p.ring.Last() }

func (p *plane) Events(_ context.Context, _ gozzard.Caller, f record.EventFilter, limit int) (record.EventPage, error) {
	page, _ := p.ring.Newest(f, seesAll, limit)
	return page, nil
}

func (p *plane) LastTaskChange() uint64 { return 0 }

func (p *plane) TasksAfter(context.Context, gozzard.Caller, uint64) ([]record.TaskSummary, uint64, <-chan struct{},
	error) {
	return nil, 0, nil, nil
}

// EventsAfter has no record: what is not in the ring any more is lost.
func (p *plane) EventsAfter(_ context.Context, _ gozzard.Caller, f record.EventFilter, id uint64,
	limit int) (record.EventPage, <-chan struct{}, error) {
	page, changed, place := p.ring.After(f, seesAll, id, limit)
	page.Lost = place == control.EventsOlder
	return page, changed, nil
}

func (p *plane) Log(_ context.Context, _ gozzard.Caller, t gozzard.Target, q gozzard.LogQuery) (gozzard.LogChunk,
	error) {
	return p.log(t, q)
}

func (p *plane) History(_ context.Context, _ gozzard.Caller, t gozzard.Target, q gozzard.HistoryQuery) (gozzard.History,
	error) {
	return p.history(t, q)
}

func (p *plane) WriteFiles(ctx context.Context, op *gozzard.FileOperation) (gozzard.Task, error) {
	whole, err := control.OperationOf(op)
	if err != nil {
		return gozzard.Task{}, err
	}
	return p.Operate(ctx, whole)
}

func (p *plane) ReadFile(_ context.Context, _ gozzard.Caller, q gozzard.FileRead) (gozzard.FileView, error) {
	content := []byte("account = " + q.Account + "\n")
	if q.Kept != "" {
		content = []byte{0xff, 0}
	}
	return gozzard.FileView{Exists: true, Owner: q.Account, Group: "www", Mode: "0640", Size: int64(len(content)),
		SHA256: gozzard.FileDigest(content), Changed: 1700000000000, Content: content}, nil
}

func (p *plane) FileHistory(_ context.Context, _ gozzard.Caller, q gozzard.FileRead) ([]gozzard.FileVersion, error) {
	return []gozzard.FileVersion{{At: 1700000000000, SHA256: gozzard.FileDigest(nil), Owner: q.Account, Group: "www",
		Mode: "0644", Task: 7}}, nil
}

func (p *plane) last(t *testing.T) *gozzard.Operation {
	t.Helper()
	if len(p.ops) == 0 {
		t.Fatal("nothing was operated")
	}
	return p.ops[len(p.ops)-1]
}

const secret = "a-secret-of-the-app"

// server is the API over a fleet of three hosts: two in cloud 0, one in cloud 3 with an address that cloud 0 has too.
type server struct {
	*plane
	handler http.Handler
	metrics *api.Metrics
}

func newServer(t testing.TB) *server {
	t.Helper()
	book, err := auth.New(auth.Config{Apps: []auth.App{
		{Code: "app", Secrets: []auth.Digest{auth.Hash(secret)}, AssertsUsers: true},
		{Code: "other", Secrets: []auth.Digest{auth.Hash(secret)}, AssertsUsers: true},
	}})
	if err != nil {
		t.Fatal(err)
	}

	p := newPlane()
	for agent, addrs := range map[gozzard.AgentID][]gozzard.HostAddr{
		"a1": {at(0, "10.0.0.1")}, "a2": {at(0, "10.0.0.2")}, "a3": {at(3, "10.0.0.1"), at(3, "10.0.0.9")},
	} {
		p.PutHost(fleet.Host{Info: gozzard.HostInfo{Agent: agent, Addrs: addrs, Hostname: "host-" + string(agent),
			OS: "linux", Arch: "amd64"}, Session: 1, Online: agent != "a3",
			LastSeen: time.Unix(1700000000, 0)})
	}

	for _, agent := range []gozzard.AgentID{"a1", "a2", "a3"} {
		var rows []gozzard.Status
		for _, k := range []gozzard.Key{{Namespace: "shop", Name: "web"}, {Namespace: "shop", Name: "worker"},
			{Namespace: "游戏", Name: "网关服"}} {
			rows = append(rows, gozzard.Status{Key: k, State: gozzard.StateRunning, Wanted: gozzard.StateRunning,
				PID: 77, Hosted: k.Name != "worker", Labels: map[string]string{"tier": "front"}})
		}
		rows[1].State, rows[1].PID = gozzard.StateStopped, -1
		p.Apply(agent, rows, nil)
	}

	m := api.NewMetrics()
	m.Watch(p.Index, func() gozzard.FabricCounts { return gozzard.FabricCounts{Sent: 5} })
	return &server{plane: p, metrics: m, handler: api.New(api.Options{Plane: p,
		Authenticate: blueking.ByHeaders(book), Challenge: blueking.AuthorizationHeader, Metrics: m})}
}

func at(cloud int, ip string) gozzard.HostAddr {
	return gozzard.HostAddr{Cloud: cloud, IP: netip.MustParseAddr(ip)}
}

type reply struct {
	code   int
	header http.Header
	body   string
}

func (s *server) call(method, path, body string, edit ...func(*http.Request)) reply {
	var in io.Reader

	if body != "" {
		in = strings.NewReader(body)
	}

	r := httptest.NewRequest(method, path, in)
	r.RemoteAddr = "192.0.2.1:999"
	r.Header.Set("X-Bkapi-Authorization", `{"bk_app_code":"app","bk_app_secret":"`+secret+`","bk_username":"me"}`)

	for _, f := range edit {
		f(r)
	}

	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return reply{w.Code, w.Header(), w.Body.String()}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if value == "" {
			r.Header.Del(name)
			return
		}
		r.Header.Set(name, value)
	}
}

type failure struct {
	Error struct {
		Kind    gozzard.ErrorKind `json:"kind"`
		Message string            `json:"message"`
		Faults  []gozzard.Fault   `json:"faults"`
	} `json:"error"`
}

func (r reply) failure(t *testing.T) failure {
	t.Helper()
	var f failure
	if err := json.Unmarshal([]byte(r.body), &f); err != nil || f.Error.Kind == "" {
		t.Fatalf("answer is no error of the API: %d %s", r.code, r.body)
	}
	return f
}

func (r reply) decode(t *testing.T, v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewBufferString(r.body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Fatalf("cannot decode %d %s: %v", r.code, r.body, err)
	}
}
