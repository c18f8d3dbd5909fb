package gsekit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/blueking/gsekit"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/server"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/supervise"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/waves"
	"github.com/gozzard/gozzard/test/sim"
)

var _ gsekit.Jobs = (*waves.Runner)(nil)

// real is the server of the program with agents over machines in memory.
type real struct {
	rig
	t      *testing.T
	server *server.Server
	plane  *server.Plane
	key    signing.Key // of the server
	hosts  []*sim.Host
	ctx    context.Context
	wg     *sync.WaitGroup
}

const joinSecret = "for agents of this test and nobody else"

// newReal applies a topology and starts n hosts.
func newReal(t *testing.T, document string, n int, options gsekit.Options) *real {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &real{t: t, ctx: ctx, wg: new(sync.WaitGroup)}

	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	// Start the server.
	var err error
	data := t.TempDir()
	r.server, err = server.New(ctx, server.Options{
		Data: data, Listen: "127.0.0.1:0", AgentListen: "127.0.0.1:0", Version: "test", JoinSecret: joinSecret,
		FirstApp: server.FirstApp{Code: "bk_sops", Secret: "secret"},
		Fatal:    func(err error) { t.Error(err) }, Log: slog.New(slog.DiscardHandler),
	})
	must(err)
	r.wg.Go(func() {
		if err := r.server.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		r.wg.Wait()
	})

	keys, err := signing.Keys(data)
	must(err)
	r.key = keys[len(keys)-1].Key

	// Apply the document, and make the door with the options of this test.
	parts := r.server.Parts()
	r.plane = parts.Plane
	b, err := topology.Parse([]byte(document))
	must(err)
	_, err = r.plane.ApplyTopology(ctx, record.ApplyRequest{Caller: everybody, Business: b, Source: record.SourceFile})
	must(err)
	options.Plane, options.Jobs, options.Configs, options.Auth = parts.Plane, parts.Jobs, parts.Configs, book(t)
	r.Handler = gsekit.New(options)

	for range n {
		r.addHost()
	}

	return r
}

// addHost starts the next host, 127.1.1.n, and waits until it is online.
func (r *real) addHost() *sim.Host {
	r.t.Helper()
	i := len(r.hosts)
	return r.addHostAt(sim.Addr(0, i), gozzard.AgentID(fmt.Sprintf("real-%d", i)))
}

// addHostAt starts a host with an address and waits until it is online.
func (r *real) addHostAt(addr gozzard.HostAddr, id gozzard.AgentID) *sim.Host {
	r.t.Helper()
	host := sim.NewHost()
	r.hosts = append(r.hosts, host)
	log := slog.New(slog.DiscardHandler)
	a, err := agent.New(agent.Options{
		Dir: filepath.Join(r.t.TempDir(), string(id)), Host: host, Files: host.Files(), Log: log,
		Fatal: func(err error) { r.t.Error(err) }, SampleEvery: time.Minute, Simulated: true,
		Info: gozzard.HostInfo{Agent: id, Addrs: []gozzard.HostAddr{addr}, OS: "linux", Version: "test",
			BootID: "test", StartedAt: time.Now().Unix(), CPUs: 1, MemBytes: 1 << 30},
	})
	if err != nil {
		r.t.Fatal(err)
	}

	keys, err := signing.OpenKeyRing(r.t.TempDir(), nil)
	if err == nil {
		err = keys.Trust(r.key)
	}
	if err != nil {
		r.t.Fatal(err)
	}

	link, err := nats.NewLink(nats.LinkOptions{
		URL: r.server.AgentAddr(), Agent: id, Secret: joinSecret, Log: log, Command: a.Receive, Up: a.Connected,
		Down: a.Disconnected, Open: func(b []byte) ([]byte, error) { return keys.Open(id, b) },
	})
	if err != nil {
		r.t.Fatal(err)
	}

	r.wg.Go(func() { _ = a.Run(r.ctx, link) })
	r.wg.Go(func() { _ = link.Run(r.ctx) })

	r.until("host "+string(id)+" is online", func() bool {
		h, known := r.plane.Resolve(everybody, gozzard.Target{Agent: id})
		return known && h.Online
	})

	return host
}

func (r *real) until(what string, done func() bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// row is what process_status returns for a process.
type row struct {
	ID     int  `json:"bk_process_id"`
	Status int  `json:"process_status"`
	Auto   bool `json:"is_auto"`
	Stale  bool
	Time   int64 `json:"report_time"`
	Insts  []struct {
		Local  int  `json:"local_inst_id"`
		Status int  `json:"process_status"`
		Auto   bool `json:"is_auto"`
	} `json:"proc_inst_infos"`
}

func (r *real) processes() map[int]row {
	r.t.Helper()
	e := r.post(r.t, "/api/2/process/process_status/", `{"scope":{"bk_set_env":"0"},"page":1,"pagesize":1000}`)
	var page struct{ List []row }
	if err := json.Unmarshal(e.Data, &page); err != nil {
		r.t.Fatal(err)
	}
	out := map[int]row{}
	for _, p := range page.List {
		out[p.ID] = p
	}
	return out
}

// jobView is what job_status returns for a job.
type jobView struct {
	Info struct {
		Status string
		Extra  struct {
			Reason string `json:"failed_reason"`
		} `json:"extra_data"`
		Expression string
	} `json:"job_info"`
	Tasks []struct {
		ID      int64
		Process int `json:"bk_process_id"`
		Status  string
		ErrCode int    `json:"err_code"`
		Start   string `json:"start_time"`
		End     string `json:"end_time"`
		Op      string `json:"pipeline_id"`
		Extra   struct {
			Local     int    `json:"local_inst_id"`
			Reason    string `json:"failed_reason"`
			Retryable bool
		} `json:"extra_data"`
	} `json:"job_tasks"`
	Counter map[string]int `json:"status_counter"`
}

// run does a job on some processes and waits for its end.
func (r *real) run(action string, processes ...int) jobView {
	r.t.Helper()
	ids, _ := json.Marshal(processes)
	return r.create(fmt.Sprintf(`{"job_object":"process","job_action":%q,"scope":{"bk_set_env":"0","bk_process_ids":%s}}`, action, ids))
}

func (r *real) create(body string) jobView {
	r.t.Helper()
	e := r.post(r.t, "/api/2/job/", body)
	var made struct {
		ID int64 `json:"job_id"`
	}
	if err := json.Unmarshal(e.Data, &made); err != nil || *e.Code != 0 {
		r.t.Fatalf("%d %s", *e.Code, *e.Message)
	}
	return r.await(made.ID)
}

func (r *real) await(id int64) (v jobView) {
	r.t.Helper()
	r.until(fmt.Sprintf("job %d ends", id), func() bool {
		v = jobView{}
		e := r.post(r.t, fmt.Sprintf("/api/2/job/%d/job_status", id), "")
		if err := json.Unmarshal(e.Data, &v); err != nil {
			r.t.Fatal(err)
		}
		return v.Info.Status != "pending" && v.Info.Status != "running"
	})
	return v
}

// codes are the error codes of a job's tasks by process.
func (v jobView) codes() map[int]int {
	out := map[int]int{}
	for _, t := range v.Tasks {
		out[t.Process] = t.ErrCode
	}
	return out
}

// line is a process of a document with all attributes; later ones win.
func line(id int, name string, attributes ...string) string {
	has := map[string]string{
		"user": "root", "work_path": "/srv", "pid_file": "/run/x.pid", "start_cmd": "ok", "stop_cmd": "ok",
		"restart_cmd": "ok", "reload_cmd": "ok",
		"face_stop_cmd": "ok", "timeout": "10", "start_check_secs": "1",
	}
	for _, a := range attributes {
		key, value, _ := strings.Cut(a, "=")
		has[key] = value
	}

	text := fmt.Sprintf("{id: %d, name: %s", id, name)
	for key, value := range has {
		if value != "" {
			text += fmt.Sprintf(", %s: %s", key, value)
		}
	}

	return text + "}"
}

// place is a service instance on the n-th host with its processes.
func place(id, n int, lines ...string) string {
	return fmt.Sprintf("{id: %d, name: svc-%d, host: {ip: %s, cloud: 0}, processes: [%s]}", id, id, sim.Addr(0, n).IP,
		strings.Join(lines, ", "))
}

func module(places ...string) string {
	return "{biz: 2, name: b, clouds: [{id: 0, name: default area}], sets: [{id: 1, name: set1, env: 3, modules: [{id: 1, name: mod1, instances: [" +
		strings.Join(places, ", ") + "]}]}]}"
}

// TestActionsOnAFleet has the rows of the contract's tables 4.3 and 4.4 on real parts.
func TestActionsOnAFleet(t *testing.T) {
	t.Parallel()
	r := newReal(t, module(
		place(1, 0,
			line(10, "one", "priority=1"), line(20, "two", "priority=2", "proc_num=2"), line(30, "three", "priority=3"),
			line(40, "idle"), // never touched before
			line(50, "bare", "start_cmd=", "user=", "restart_cmd=", "reload_cmd=", "stop_cmd=", "face_stop_cmd="),
			line(60, "inert", "start_cmd=nothing"), line(61, "steady"), line(62, "broken", "start_cmd=fail 3 boom")),
		place(2, 7, line(70, "away")), // no such host
	), 1, gsekit.Options{})

	expect := func(v jobView, status string, want map[int]int) {
		t.Helper()
		if got := v.codes(); v.Info.Status != status || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("job %s, tasks %v; want %s %v: %+v", v.Info.Status, got, status, want, v.Tasks)
		}
	}

	is := func(id, status int, auto bool) {
		t.Helper()
		r.until(fmt.Sprintf("process %d has status %d, hosted %v", id, status, auto), func() bool {
			p := r.processes()[id]
			return p.Status == status && p.Auto == auto
		})
	}

	// order checks that the tasks of a process began only after those of the process before it had ended.
	order := func(v jobView, processes ...int) {
		t.Helper()
		last := ""
		for _, id := range processes {
			first, end := "", ""
			for _, task := range v.Tasks {
				if task.Process == id {
					if first == "" || task.Start < first {
						first = task.Start
					}
					end = max(end, task.End)
				}
			}
			if first < last {
				t.Fatalf("process %d began at %s, before %s: %+v", id, first, last, v.Tasks)
			}
			last = end
		}
	}

	if p := r.processes()[10]; p.Status != 0 || p.Auto {
		t.Fatalf("never registered: %+v", p)
	}

	v := r.run("start", 10, 20, 30)
	expect(v, "succeeded", map[int]int{10: 0, 20: 0, 30: 0})
	order(v, 10, 20, 30)

	if len(v.Tasks) != 4 || v.Counter["succeeded"] != 4 {
		t.Fatalf("a task for every instance: %+v", v)
	}

	is(20, 1, true)
	entries := map[string]struct {
		Code int `json:"error_code"`
	}{}
	r.ask("get_proc_operate_result_v2", fmt.Sprintf(`{"task_id":%q}`, v.Tasks[0].Op), &entries)

	if len(entries) != 1 || entries["0:127.1.1.1:GSEKIT_BIZ_2:one_1"].Code != 0 {
		t.Fatalf("the GSE door does not know what carried it: %v", entries)
	}

	expect(r.run("start", 10), "failed", map[int]int{10: 828})
	expect(r.run("unset_auto", 10, 20), "succeeded", map[int]int{10: 0, 20: 0})
	is(10, 1, false)
	expect(r.run("reload", 10), "succeeded", map[int]int{10: 0})
	is(10, 1, false)
	expect(r.run("set_auto", 10, 20), "succeeded", map[int]int{10: 0, 20: 0})
	is(10, 1, true)
	r.run("unset_auto", 10)
	v = r.run("restart", 10, 20)
	expect(v, "succeeded", map[int]int{10: 0, 20: 0})
	order(v, 20, 10)
	is(10, 1, true) // GSE hosts what it restarts; the original's own flag stayed behind until its next sync
	v = r.run("stop", 10, 20, 30)
	expect(v, "succeeded", map[int]int{10: 0, 20: 0, 30: 0})
	order(v, 30, 20, 10)
	is(10, 2, false)
	v = r.run("stop", 10)
	expect(v, "succeeded", map[int]int{10: 4})

	if v.Tasks[0].Status != "ignored" || !strings.HasPrefix(v.Tasks[0].Extra.Reason, "[GSE_ERROR-829]: ") {
		t.Fatalf("%+v", v.Tasks)
	}

	is(10, 2, false)
	expect(r.run("force_stop", 10), "failed", map[int]int{10: 829})

	for _, action := range []string{"start", "stop", "restart", "reload", "force_stop", "set_auto"} {
		v := r.run(action, 50)
		expect(v, "failed", map[int]int{50: 4104002})
		if task := v.Tasks[0]; task.Extra.Retryable || !strings.Contains(task.Extra.Reason, "user") ||
			!strings.HasPrefix(task.Extra.Reason, "[4104002] ") {
			t.Fatalf("%s: %+v", action, task)
		}
	}

	if got := r.run("unset_auto", 50).codes()[50]; got == 4104002 {
		t.Fatal("unset_auto needs no attribute")
	}

	v = r.run("start", 60, 61, 62, 70)
	expect(v, "failed", map[int]int{60: 836, 61: 0, 62: 65535, 70: 117})

	for _, task := range v.Tasks {
		if task.Process == 62 && !strings.Contains(task.Extra.Reason, "boom") {
			t.Fatalf("the output is lost: %+v", task)
		}
	}

	v = r.run("start", 999)
	if v.Info.Status != "failed" || !strings.HasPrefix(v.Info.Extra.Reason, "[4102007] ") || len(v.Tasks) != 0 {
		t.Fatalf("%+v", v)
	}
}

// TestStopThatDoesNothing: a stop command that stops nothing fails. The check after it takes long, so this test has a
// separate fleet.
func TestStopThatDoesNothing(t *testing.T) {
	t.Parallel()
	r := newReal(t, module(place(1, 0, line(61, "stuck", "stop_cmd=nothing"))), 1, gsekit.Options{})
	r.run("start", 61)
	v := r.run("stop", 61)
	if v.codes()[61] != 836 || !strings.HasPrefix(v.Tasks[0].Extra.Reason, "[GSE_ERROR-836]: 停止失败，进程仍在运行 (detail: ") {
		t.Fatalf("%+v", v.Tasks)
	}
}

// TestRolloutByExpression: a job with priorities runs on three hosts, and one of them is offline. Only the processes
// that wait for this host are not operated, and a retry completes the job.
func TestRolloutByExpression(t *testing.T) {
	t.Parallel()
	var places []string
	for n := range 3 {
		id := 10 * (n + 1)
		places = append(places, place(n+1, n, line(id+1, "db", "priority=1"), line(id+2, "app", "priority=2"),
			line(id+3, "cache", "priority=2")))
	}

	r := newReal(t, module(places...), 2, gsekit.Options{Granularity: record.ByHost})
	e := r.post(t, "/api/2/job/",
		`{"job_object":"process","job_action":"start","expression_scope":{"bk_set_env":3,"bk_set_name":"set[1-9]","bk_process_name":"[db, app]"}}`)
	var made struct {
		ID int64 `json:"job_id"`
	}
	if err := json.Unmarshal(e.Data, &made); err != nil {
		t.Fatal(err)
	}

	v := r.await(made.ID)
	if want := map[int]int{11: 0, 12: 0, 21: 0, 22: 0, 31: 117, 32: 4103003}; v.Info.Status != "failed" ||
		fmt.Sprint(v.codes()) != fmt.Sprint(want) ||
		v.Info.Expression != "set[1-9].*.*.[db, app].*" {
		t.Fatalf("%+v", v)
	}

	host := r.addHost()
	starts := r.hosts[0].Commands(topology.Key(2, "db", 1), gozzard.ActionStart)

	if e := r.post(t, fmt.Sprintf("/api/2/job/%d/retry", made.ID), ``); *e.Code != 0 {
		t.Fatal(*e.Message)
	}
	if v = r.await(made.ID); v.Info.Status != "succeeded" || v.Counter["succeeded"] != 6 {
		t.Fatalf("%+v", v)
	}
	if now := r.hosts[0].Commands(topology.Key(2, "db", 1), gozzard.ActionStart); now != starts {
		t.Fatalf("what had succeeded was done again: %d times", now-starts)
	}
	if e := r.post(t, fmt.Sprintf("/api/2/job/%d/retry", made.ID), ``); *e.Code != 0 || string(e.Data) != "null" {
		t.Fatalf("nothing is left to retry: %d %s", *e.Code, *e.Message)
	}

	// An exit is visible at once. A supervised process would be restarted, so stop supervising it first.
	r.run("unset_auto", 31)

	if n := host.End(topology.Key(2, "db", 1), supervise.Exit{Known: true, Signal: "killed"}); n != 1 {
		t.Fatalf("%d processes ended", n)
	}

	began := time.Now()
	r.until("the killed process is seen as stopped", func() bool { return r.processes()[31].Status == 2 })
	t.Logf("seen after %v", time.Since(began))

	e = r.post(t, "/api/2/process/sync_process_status/", ``)
	if *e.Code != 0 || !strings.Contains(string(e.Data), `"cost_time":`) {
		t.Fatalf("%d %s %s", *e.Code, *e.Message, e.Data)
	}

	ips := r.do(t, http.MethodGet, fmt.Sprintf("/api/2/job/%d/search_ip/?status=succeeded", made.ID), "")
	if n := strings.Count(string(ips.Data), `"bk_host_innerip":"127.1.1.`); n != 3 {
		t.Fatalf("%s", ips.Data)
	}
	if e = r.do(t, http.MethodGet, "/api/2/meta/access_overview/",
		""); string(e.Data) != `{"process":true,"configfile":false,"is_access":true}` {
		t.Fatalf("%s", e.Data)
	}

	names := []string{}
	for _, p := range r.processes() {
		names = append(names, fmt.Sprint(p.ID, p.Status, p.Auto, p.Stale))
	}

	slices.Sort(names)

	if want := "11 1 true false,12 1 true false,13 0 false false,21 1 true false,22 1 true false,23 0 false false,31 2 false false,32 1 true false,33 0 false false"; strings.Join(names, ",") != want {
		t.Fatalf("%s", strings.Join(names, ","))
	}
}
