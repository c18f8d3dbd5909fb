//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestD5RegisterOfCMDB32: bk-cmdb 3.2 registers without user, and its own logics without proc_name too. Both can be
// started then.
func TestD5RegisterOfCMDB32(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	root := t.TempDir()
	for i, identity := range []ft.J{{"proc_name": "gzcmdb0"}, {}} {
		fx := ft.NewDaemon(t, root, fmt.Sprintf("gzcmdb%d", i))
		pid := filepath.Join(fx.Dir, fx.Name+".pid")
		fx.Script("start.sh", "setsid ./"+fx.Name+" 1000000 </dev/null >/dev/null 2>&1 &\necho $! > "+pid+"; cp "+pid+" daemon.pid")
		maps.Copy(identity, ft.J{"setup_path": fx.Dir, "pid_path": pid})
		meta, hosts := ft.J{"namespace": "2.5", "name": fmt.Sprintf("cmdbproc%d", i)}, []ft.J{ft.Host(1)}
		registered := map[string]ft.Entry{}
		d.OK("register_proc_info", ft.J{"bk_supplier_id": "0", "meta": meta, "hosts": hosts, "op_type": 3, "spec": ft.J{
			"identity": identity, "control": ft.J{"start_cmd": "./start.sh", "stop_cmd": "kill $(cat " + pid + ")"}, "resource": ft.J{},
			"monitor_policy": ft.J{"auto_type": 1, "start_check_secs": 1}, "warn_report_policy": ft.J{}}}, &registered)
		for key, e := range registered {
			if e.Code != 0 && e.Code != 115 {
				t.Errorf("%s: %+v", key, e)
			}
		}
		for key, e := range d.Await(d.Operate("operate_proc", ft.J{"meta": meta, "hosts": hosts, "op_type": 0})) {
			if e.Code != 0 || fx.PID() < 0 {
				t.Errorf("%s: %+v", key, e)
			}
		}
	}
}

// TestD6D11EntriesOfV1: entries of V1 have errcode and errmsg beside error_code and error_msg; those of V2 do not.
// The sentence of a failed check is there once.
func TestD6D11EntriesOfV1(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	fx := ft.NewDaemon(t, t.TempDir(), "gzcheck")
	fx.Script("start.sh", "echo start >> calls") // it starts nothing
	meta, hosts := ft.J{"namespace": "gse", "name": "check"}, []ft.J{ft.Host(1)}

	for _, call := range []string{"operate_proc", "operate_proc_v2"} {
		task := d.Operate(call, ft.J{"meta": meta, "hosts": hosts, "op_type": 0, "spec": fx.Spec(nil)})
		d.Await(task)
		raw := map[string]map[string]any{}
		d.OK("get_proc_operate_result", ft.J{"task_id": task}, &raw)
		for key, e := range raw {
			text, _ := e["error_msg"].(string)
			const sentence = "start process (gzcheck) failed, for post-check status not alive"
			content, _ := e["content"].(string)
			if e["error_code"] != 836.0 || strings.Count(text, sentence) != 1 || strings.Count(content, sentence) != 1 {
				t.Errorf("D11: %s: %v", key, e)
			}
			code, old := e["errcode"]
			if call == "operate_proc" && (code != 836.0 || e["errmsg"] != text) || call != "operate_proc" && old {
				t.Errorf("D6: %s of %s: %v", key, call, e)
			}
		}
	}
}

// TestD11EveryCheck: the sentence of a failed check is there once after a start, a stop and a restart.
func TestD11EveryCheck(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	fx := ft.NewDaemon(t, t.TempDir(), "gzchecks")
	fx.Script("stop.sh", "echo stop >> calls") // it stops nothing
	fx.Script("restart.sh", "kill -9 $(cat "+fx.PIDFile()+")")
	spec := fx.Spec(nil)
	run := func(op int) ft.Entry {
		t.Helper()
		task := d.Operate("operate_proc_multi", ft.J{"proc_operate_req": []ft.J{{"meta": ft.J{"namespace": "gse", "name": "checks"},
			"op_type": op, "hosts": []ft.J{ft.Host(1)}, "spec": spec}}})
		for _, e := range d.Await(task) {
			return e
		}
		t.Fatal("no entry")
		return ft.Entry{}
	}

	if e := run(0); e.Code != 0 {
		t.Fatalf("start: %+v", e)
	}
	checks := []struct {
		op       int
		sentence string
	}{
		{1, "stop process (gzchecks) failed, for post-check status still alive"},
		{7, "restart process (gzchecks) failed, for post-check status not alive"},
	}
	for _, c := range checks {
		if e := run(c.op); e.Code != 836 || strings.Count(e.Msg, c.sentence) != 1 || strings.Count(e.Content, c.sentence) != 1 {
			t.Errorf("%+v, want %q once", e, c.sentence)
		}
	}
}

// TestD12FieldsOfAgents: what nodemgr copies is there, with true values.
func TestD12FieldsOfAgents(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	ask := func(name string) (row map[string]any) {
		t.Helper()
		ans, err := d.TryWith("/api/v2/cluster/"+name, ft.J{"agent_id_list": []string{"0:127.0.0.1"}}, nil)
		var rows []map[string]any
		if err != nil || !ans.Result || json.Unmarshal(ans.Data, &rows) != nil || len(rows) != 1 {
			t.Fatalf("%s: %v %s", name, err, ans.Raw)
		}
		return rows[0]
	}

	var info map[string]any
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("D12: %v", info) }, func() bool { // after the first heartbeat
		info = ask("list_agent_info")
		rate, _ := info["mem_rate"].(float64)
		return rate > 0 && rate <= 100
	})
	cpus, _ := info["cpu_num"].(float64)
	mem, _ := info["mem_size"].(float64)
	now := float64(time.Now().UnixMilli())
	seen, _ := info["last_work_time"].(float64)
	if !slices.Contains([]any{"x86", "arm"}, info["bk_cpu_architecture"]) || cpus < 1 || mem < 64 || seen < now-600e3 || seen > now+60e3 ||
		info["last_status_code"] != 2.0 || info["conn_cycle_time"] != 0.0 {
		t.Errorf("D12: %v", info)
	}
	state := ask("list_agent_state")
	at, _ := state["report_time"].(float64)
	if state["status_code"] != 2.0 || state["last_status_code"] != 2.0 || at < now-600e3 || at > now+60e3 {
		t.Errorf("D12: %v", state)
	}
}

// TestD14NamesBeforeV2OfJob: requests with the names of Job before version 2 are served on both paths, with answers in the
// same names. manage_proc needs no pid file, and a set of businesses is another owner than the business of its number.
func TestD14NamesBeforeV2OfJob(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	fx := ft.NewDaemon(t, t.TempDir(), "gzbase")
	old := ft.J{"app_id": 1, "operate_type": 0, "proc_list": []ft.J{{"username": "root", "setup_path": fx.Dir, "proc_name": fx.Name,
		"pid_path": fx.PIDFile(), "ip_list": []ft.J{{"ip": "127.0.0.1", "source": 0}}}}}

	for i, path := range []string{"/api/c/compapi/v2/job/operate_proc/", "/api/c/compapi/job/gse_proc_operate/"} {
		ans, err := d.TryWith(path, old, nil)
		var task struct {
			ID string `json:"gse_task_id"`
		}
		if err != nil || !ans.Result || json.Unmarshal(ans.Data, &task) != nil || task.ID == "" {
			t.Fatalf("%s: %v %s", path, err, ans.Raw)
		}
		var poll struct {
			Status int
			Result map[string]struct {
				Code int    `json:"m_errcode"`
				Text string `json:"m_rsp"`
				Old  int    `json:"errcode"`
			}
		}
		ft.Until(t, time.Minute, func() string { return fmt.Sprintf("%+v", poll) }, func() bool {
			ans, err := d.TryWith("/api/c/compapi/job/get_proc_result/", ft.J{"app_id": 1, "gse_task_id": task.ID}, nil)
			if err != nil || !ans.Result || json.Unmarshal(ans.Data, &poll) != nil {
				t.Fatalf("get_proc_result: %v %s", err, ans.Raw)
			}
			return poll.Status == 0
		})
		want := []int{0, 828}[i] // the second request means the same process
		if e := poll.Result[fx.Dir+"/"+fx.Name+":0:127.0.0.1"]; e.Code != want || e.Old != want || e.Text == "" {
			t.Errorf("%s: %+v, want %d", path, poll, want)
		}
	}

	manage := ft.J{"bk_biz_id": 1, "op_type": 1, "process_infos": []ft.J{{"setup_path": fx.Dir, "proc_name": "gzperiodic", "type": 0,
		"cycle_time": 3600, "start_cmd": "true", "ip_list": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}}}}
	for _, path := range []string{"/api/c/compapi/v2/job/manage_proc/", "/api/c/compapi/job/gse_process_manage/"} {
		for key, e := range jobRun(t, d, path, manage) {
			if e.Code != 0 {
				t.Errorf("%s: %s: %+v", path, key, e)
			}
		}
	}

	for _, scope := range []struct{ kind, space string }{{"biz", "JOB_BIZ_77"}, {"biz_set", "JOB_BIZ_SET_77"}} {
		ans, err := d.TryWith("/api/job/v3/job-execute/operate_proc/", ft.J{"bk_scope_type": scope.kind, "bk_scope_id": "77", "op_type": 2,
			"process_infos": []ft.J{{"setup_path": fx.Dir, "proc_name": fx.Name, "pid_path": fx.PIDFile(),
				"ip_list": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}}}}, nil)
		var task struct {
			ID string `json:"bk_gse_taskid"`
		}
		if err != nil || !ans.Result || json.Unmarshal(ans.Data, &task) != nil {
			t.Fatalf("%s: %v %s", scope.kind, err, ans.Raw)
		}
		status, body := d.Get(t, "/api/v1/tasks/"+strings.TrimPrefix(task.ID, "GSETASK:"))
		if status != http.StatusOK || !strings.Contains(body, `"`+scope.space+`"`) {
			t.Errorf("%s: %d %s", scope.kind, status, body)
		}
	}
}

// TestD15QueryAndUnhostUnderAPolicy: with the policy that an agent writes by itself, a query and the end of supervision are
// answered also for a definition that the policy does not allow. Nothing runs, nothing is stored, and the command line of
// the process is not told.
func TestD15QueryAndUnhostUnderAPolicy(t *testing.T) {
	t.Parallel() // it mostly waits
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	s := ft.StartServer(t, "")
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ft.Start(t, "agent", nil, "agent", "--data", dir, "--server", s.Agents, "--ip", "127.0.0.1",
		"--secret-file", filepath.Join(s.Data, "join.secret"))
	s.AwaitOnline(t, 1)

	// It runs, and Gozzard has not started it.
	fx := ft.NewDaemon(t, t.TempDir(), "gzforeign")
	if out, err := exec.Command(filepath.Join(fx.Dir, "start.sh")).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	ft.Until(t, time.Minute, func() string { return "it does not run" }, func() bool { return fx.PID() > 0 })
	run := func(op int) ft.Entry {
		t.Helper()
		task := s.Operate("operate_proc_multi", ft.J{"proc_operate_req": []ft.J{{
			"meta": ft.J{"namespace": "gse", "name": "foreign"}, "op_type": op, "hosts": []ft.J{ft.Host(1)}, "spec": fx.Spec(nil)}}})
		all := slices.Collect(maps.Values(s.Await(task)))
		if len(all) != 1 {
			t.Fatalf("%d entries", len(all))
		}
		return all[0]
	}

	var content struct {
		Process []struct {
			Instance []struct {
				PID     int
				Cmdline string
			}
		}
	}
	e := run(2)
	if err := json.Unmarshal([]byte(e.Content), &content); err != nil || e.Code != 0 {
		t.Fatalf("query: %+v, %v", e, err)
	}
	if in := content.Process[0].Instance[0]; in.PID != fx.PID() || in.Cmdline != "" {
		t.Errorf("query: %+v, the pid is %d", in, fx.PID())
	}
	if e := run(4); e.Code != 0 {
		t.Errorf("unhost: %+v", e)
	}

	// The definition by which it was found: a program of the system, with an account of the system.
	system := ft.J{"meta": ft.J{"namespace": "gse", "name": "nginx"}, "hosts": []ft.J{ft.Host(1)}, "spec": ft.J{
		"identity": ft.J{"proc_name": "nginx", "setup_path": "/usr/sbin", "pid_path": filepath.Join(fx.Dir, "none.pid"), "user": "www-data"},
		"control":  ft.J{"start_cmd": "./nginx"}, "resource": ft.J{}, "monitor_policy": ft.J{"auto_type": 1}}}
	for op, allowed := range map[int]bool{2: true, 4: true, 0: false} {
		system["op_type"] = op
		for key, e := range s.Await(s.Operate("operate_proc_multi", ft.J{"proc_operate_req": []ft.J{system}})) {
			if refused := e.Code == 65535 && strings.Contains(e.Msg, "folder /usr/sbin is not allowed by local policy"); allowed != (e.Code == 0) || allowed == refused {
				t.Errorf("op_type %d on nginx: %s: %+v", op, key, e)
			}
			checkQueryContent(t, key, e)
		}
	}
	for _, op := range []int{0, 1, 3, 7, 8, 9} {
		if e := run(op); e.Code != 65535 || !strings.Contains(e.Msg, "is not allowed by local policy") {
			t.Errorf("op_type %d: %+v", op, e)
		}
	}
	if all := s.Status("gse", "foreign", ft.Host(1)); len(all) != 1 || all[0].IsAuto || fx.PID() < 0 || len(fx.Calls()) != 1 {
		t.Errorf("%+v, %v", all, fx.Calls())
	}
}

// TestD18PlatformAppOnManyHosts: bk_nodeman restarts a plug-in 12,000 times within an hour, with the limits that a server
// has by default, while another app is rejected above its quota. Stages of the gateway have any name.
func TestD18PlatformAppOnManyHosts(t *testing.T) {
	const hosts, plugins = 120, 100
	s := ft.StartLimitedServer(t, "", "--log-level", "warn")
	s.StartSim(t, hosts)
	apps := map[string]string{}
	for _, app := range []string{"bk_nodeman", "other"} {
		out, err := exec.Command(ft.Binary(t), "app", "create", app, "--asserts-users", "--unknown-users", "--role=operator",
			"--account=root", "--credentials", filepath.Join(s.Data, "credentials.json")).Output()
		if err != nil {
			t.Fatal(err)
		}
		apps[app] = strings.TrimSpace(string(out))
	}
	all := simHosts(hosts)
	ft.Until(t, 5*time.Minute, func() string { return "the hosts do not come" }, func() bool {
		var agents map[string]struct {
			Alive int `json:"bk_agent_alive"`
		}
		s.OK("get_agent_status", ft.J{"hosts": all}, &agents)
		n := 0
		for _, a := range agents {
			n += a.Alive
		}
		return n == hosts
	})

	// restart sends one request for a plug-in on ten times all hosts, and returns its code.
	restart := func(app string, i int) int {
		t.Helper()
		var items []ft.J
		for p := range 10 {
			items = append(items, ft.J{"meta": ft.J{"namespace": "nodeman", "name": fmt.Sprintf("plugin%d", i*10+p)}, "op_type": 7,
				"hosts": all, "spec": ft.J{"identity": ft.J{"proc_name": "bkmonitorbeat", "setup_path": "/srv", "pid_path": "/srv/pid",
					"user": "root"}, "control": ft.J{"restart_cmd": "ok", "start_cmd": "ok"}, "resource": ft.J{},
					"monitor_policy": ft.J{"auto_type": 1, "start_check_secs": 0}}})
		}
		ans, err := s.TryWith("/api/bk-gse/stag/api/v2/proc/operate_proc_multi", ft.J{"bk_app_code": app, "bk_app_secret": apps[app],
			"bk_username": "nodeman", "proc_operate_req": items}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return ans.Code
	}
	for i := range plugins / 10 {
		code := -1
		ft.Until(t, 5*time.Minute, func() string {
			return fmt.Sprintf("restart %d to %d of bk_nodeman: %d", i*hosts*10, (i+1)*hosts*10, code)
		},
			func() bool { code = restart("bk_nodeman", i); return code != 1306429 }) // a slow server takes them when it has done those before; a quota is for an hour
		if code != 0 {
			t.Fatalf("restart %d to %d of bk_nodeman: %d", i*hosts*10, (i+1)*hosts*10, code)
		}
	}
	rejected := 0
	for i := range plugins / 10 {
		if restart("other", i) == 1306429 {
			rejected++
		}
	}
	if rejected == 0 {
		t.Error("another app may do as much")
	}
}
