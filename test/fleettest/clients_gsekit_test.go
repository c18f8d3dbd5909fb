//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// kitFleet is a server that reads its businesses from CMDB, with one host.
type kitFleet struct {
	t *testing.T
	*ft.Server
	cmdb *ft.CMDB
}

func startKit(t *testing.T, rows ...ft.CMDBProcess) *kitFleet {
	t.Helper()
	cmdb := ft.StartCMDB(t, rows...)
	s := ft.StartServer(t, "", cmdb.Flags()...)
	s.StartAgent(t, 1, "")
	return &kitFleet{t, s, cmdb}
}

// flush calls flush_process, which must succeed, and returns what was not taken over.
func (k *kitFleet) flush() []string {
	k.t.Helper()
	var data *struct {
		Left []string `json:"left"`
	}
	kitCall(k.t, k.API, kit+"process/flush_process/", ft.J{"bk_biz_id": 2}, &data)
	if data == nil {
		return nil
	}
	return data.Left
}

// find lists the processes that process_status finds, as alias and id.
func (k *kitFleet) find(body ft.J) (found []string) {
	k.t.Helper()
	body["bk_biz_id"], body["page"], body["pagesize"] = 2, 1, 100
	if body["scope"] == nil && body["expression_scope"] == nil {
		body["scope"] = ft.J{"bk_set_env": "0"}
	}
	var page struct {
		List []struct {
			Alias string `json:"bk_process_name"`
			ID    int    `json:"bk_process_id"`
		}
	}
	kitCall(k.t, k.API, kit+"process/process_status/", body, &page)
	for _, p := range page.List {
		found = append(found, fmt.Sprintf("%s %d", p.Alias, p.ID))
	}
	slices.Sort(found)
	return found
}

func (k *kitFleet) wants(what string, got []string, want ...string) {
	k.t.Helper()
	if !slices.Equal(got, want) {
		k.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// left checks that something was not taken over: in the answer, the log, the list of businesses and an event.
func (k *kitFleet) left(lines []string, parts ...string) {
	k.t.Helper()
	if len(lines) != 1 {
		k.t.Fatalf("not taken: %q", lines)
	}
	cli := func(args ...string) string {
		out, err := exec.Command(ft.Binary(k.t), append(args, "--credentials", filepath.Join(k.Data, "credentials.json"))...).CombinedOutput()
		if err != nil {
			k.t.Fatalf("gozzard %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	event := ""
	ft.Until(k.t, time.Minute, func() string { return "no event says it: " + event }, func() bool {
		event = cli("events", "--kind", "topology_left_out")
		return strings.Contains(event, parts[0])
	})
	for place, text := range map[string]string{"the answer": lines[0], "the log": k.Output(), "gozzard topology list": cli("topology", "list"),
		"the event": event} {
		for _, part := range parts {
			if !strings.Contains(text, part) {
				k.t.Errorf("%s does not say %q: %s", place, part, text)
			}
		}
	}
}

// TestD3OneConflictOfABusiness: a process whose alias is on its host already is left out and named, and the rest of the
// business is taken. So it is when the alias of a supervised process changes: that one stays as it was.
func TestD3OneConflictOfABusiness(t *testing.T) {
	t.Parallel() // it mostly waits
	fx := ft.NewDaemon(t, t.TempDir(), "gzconflict")
	agent := ft.CMDBProcess{ID: 41, Alias: "gse_agent", Set: "control", Module: 21, Service: 5, IP: "127.0.0.1", Daemon: fx}
	twin := ft.CMDBProcess{ID: 44, Alias: "gse_agent", Set: "control", Module: 22, Service: 6, IP: "127.0.0.1"}
	other := ft.CMDBProcess{ID: 45, Alias: "other", Set: "control", Module: 22, Service: 6, IP: "127.0.0.1"}
	k := startKit(t, agent, twin, other)

	// The same alias twice on a host.
	k.left(k.flush(), "process 44 is left out", "is on host 0:127.0.0.1 twice", "process 41")
	k.wants("with a conflict", k.find(ft.J{}), "gse_agent 41", "other 45")

	// The alias of a supervised process changes, one is new, and one has gone.
	if _, job := runJob(t, k.API, kit+"job/create_job/", ft.J{"job_object": "process", "job_action": "start",
		"scope": ft.J{"bk_set_env": "3", "bk_process_ids": []int{41}}}); job.Info.Status != "succeeded" {
		t.Fatalf("%+v", job)
	}
	pid := fx.PID()
	renamed := agent
	renamed.Alias = "renamed"
	added := ft.CMDBProcess{ID: 46, Alias: "added", Set: "second", Module: 23, Service: 7, IP: "127.0.0.1"}
	k.cmdb.Set(renamed, added)
	k.left(k.flush(), "process 41 stays as it was", "gse_agent")
	k.wants("after a change of a supervised process", k.find(ft.J{}), "added 46", "gse_agent 41")
	if fx.PID() != pid || fx.Count("start") != 1 {
		t.Errorf("what runs was touched: %v", fx.Calls())
	}

	// It is removed as long as it is supervised.
	k.cmdb.Set(added)
	k.left(k.flush(), "process 41 stays as it was", "gse_agent")
	k.wants("while it is supervised", k.find(ft.J{}), "added 46", "gse_agent 41")

	// It is made again under another id, in another module: what runs belongs to that one now.
	again := ft.CMDBProcess{ID: 40, Alias: "gse_agent", Set: "second", Module: 23, Service: 7, IP: "127.0.0.1", Daemon: fx}
	k.cmdb.Set(added, again)
	k.wants("not taken", k.flush())
	k.wants("under another id", k.find(ft.J{}), "added 46", "gse_agent 40")
	if fx.PID() != pid || fx.Count("start") != 1 {
		t.Errorf("what runs was touched: %v", fx.Calls())
	}
	k.cmdb.Set(added)
	k.left(k.flush(), "process 40 stays as it was", "gse_agent")

	// When nobody supervises it any more, the business is as CMDB has it.
	if _, job := runJob(t, k.API, kit+"job/create_job/", ft.J{"job_object": "process", "job_action": "stop",
		"scope": ft.J{"bk_set_env": "3", "bk_process_ids": []int{40}}}); job.Info.Status != "succeeded" {
		t.Fatalf("%+v", job)
	}
	var lines []string
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("still not taken: %q", lines) }, func() bool {
		lines = k.flush() // a status comes a moment after the verdict
		return len(lines) == 0
	})
	k.wants("in the end", k.find(ft.J{}), "added 46")
}

// TestD2AliasesOfCMDB: aliases as CMDB allows them are taken, and one that cannot be taken is named. One whose name a shell
// could obey does not get into a command.
func TestD2AliasesOfCMDB(t *testing.T) {
	t.Parallel() // it mostly waits
	fx := ft.NewDaemon(t, t.TempDir(), "gzalias")
	var rows []ft.CMDBProcess
	var want []string
	for i, alias := range []string{"nginx:80", "java(1)", "进程（1）", "web/api", "a[b]", "nginx#1", "a,b", "$(reboot)"} {
		rows = append(rows, ft.CMDBProcess{ID: 10 + i, Alias: alias, Set: "s", Module: 21, Service: 5, IP: "127.0.0.1", Daemon: fx})
		want = append(want, fmt.Sprintf("%s %d", alias, 10+i))
	}
	slices.Sort(want)
	rows = append(rows, ft.CMDBProcess{ID: 30, Alias: "a\\b", Set: "s", Module: 21, Service: 5, IP: "127.0.0.1"})
	k := startKit(t, rows...)
	k.left(k.flush(), "process 30 is left out: name: ")
	k.wants("all", k.find(ft.J{}), want...)

	// GSEKit's sync of the business, and a life of one of them.
	kitCall(t, k.API, kit+"process/sync_process_status/", ft.J{"bk_biz_id": 2}, nil)
	for _, action := range []string{"start", "stop"} {
		if _, job := runJob(t, k.API, kit+"job/create_job/", ft.J{"job_object": "process", "job_action": action,
			"scope": ft.J{"bk_set_env": "3", "bk_process_names": []string{"nginx:80"}}}); job.Info.Status != "succeeded" {
			t.Fatalf("%s: %+v", action, job)
		}
	}
}

// TestD4D7D8RowsOfProcessStatus: a set without environment is not formal, a filter for stopped processes finds those that
// were never registered, and a module without a template has the number 0.
func TestD4D7D8RowsOfProcessStatus(t *testing.T) {
	t.Parallel() // it mostly waits
	k := startKit(t,
		ft.CMDBProcess{ID: 1, Alias: "formal", Set: "a1", Module: 21, Service: 5, IP: "127.0.0.1"},
		ft.CMDBProcess{ID: 2, Alias: "none", Set: "a1 ", Env: "", Module: 22, Service: 6, IP: "127.0.0.1"})
	k.wants("not taken", k.flush())

	k.wants("D4: formal", k.find(ft.J{"scope": ft.J{"bk_set_env": "3"}}), "formal 1")
	k.wants("D4: all", k.find(ft.J{"scope": ft.J{"bk_set_env": "0"}}), "formal 1", "none 2")
	k.wants("D7: process_status 2", k.find(ft.J{"process_status": 2}), "formal 1", "none 2")
	k.wants("D7: process_status_list [2]", k.find(ft.J{"process_status_list": []int{2}}), "formal 1", "none 2")
	k.wants("D7: process_status 0", k.find(ft.J{"process_status": 0}), "formal 1", "none 2")
	k.wants("D7: process_status 1", k.find(ft.J{"process_status": 1}))

	// Names are never trimmed.
	k.wants("a1", k.find(ft.J{"expression_scope": ft.J{"bk_set_env": "0", "bk_set_name": "a1"}}), "formal 1")
	k.wants("a1 with a blank", k.find(ft.J{"expression_scope": ft.J{"bk_set_env": "0", "bk_set_name": "a1 "}}), "none 2")
	var matched struct {
		Results []string `json:"filter_results"`
	}
	kitCall(t, k.API, kit+"meta/expression_match/", ft.J{"expression": "a1", "candidates": []string{" a1", "a1", "a1 "}}, &matched)
	k.wants("expression_match", matched.Results, "a1")

	var page struct {
		List []struct {
			Template json.RawMessage `json:"service_template_id"`
			Env      string          `json:"bk_set_env"`
			ID       int             `json:"bk_process_id"`
		}
	}
	kitCall(t, k.API, kit+"process/process_status/", ft.J{"bk_biz_id": 2, "scope": ft.J{"bk_set_env": "0"}, "page": 1, "pagesize": 10}, &page)
	for _, r := range page.List {
		if string(r.Template) != "0" || r.Env != map[int]string{1: "3", 2: ""}[r.ID] {
			t.Errorf("D8: %+v", r)
		}
	}
}

// TestD9D10DetailsAndRetryOfAJob: the tasks of a job have the attributes of their processes, an expression job has the
// processes that it found, and a retry of a job of which nothing failed is a success.
func TestD9D10DetailsAndRetryOfAJob(t *testing.T) {
	t.Parallel() // it mostly waits
	fx := ft.NewDaemon(t, t.TempDir(), "gzdetails")
	k := startKit(t, ft.CMDBProcess{ID: 7, Alias: "web", Set: "s", Module: 21, Service: 5, IP: "127.0.0.1", Daemon: fx})
	k.flush()
	id, job := runJob(t, k.API, kit+"job/create_job/", ft.J{"job_object": "process", "job_action": "start",
		"expression_scope": ft.J{"bk_set_env": "3", "bk_process_name": "w*"}})
	if job.Info.Status != "succeeded" {
		t.Fatalf("%+v", job)
	}

	var detail struct {
		Info struct {
			Scope struct {
				Processes []int `json:"bk_process_ids"`
			}
		} `json:"job_info"`
		Tasks []struct {
			Extra struct {
				Info struct {
					Process map[string]any `json:"process"`
					Host    map[string]any `json:"host"`
				} `json:"process_info"`
				Level map[string]any `json:"topo_level_info"`
			} `json:"extra_data"`
		} `json:"job_tasks"`
	}
	kitCall(t, k.API, kit+"job/job_status/", ft.J{"bk_biz_id": 2, "job_id": id}, &detail)
	if !slices.Equal(detail.Info.Scope.Processes, []int{7}) || len(detail.Tasks) != 1 {
		t.Fatalf("%+v", detail)
	}
	attributes := ft.J{"bk_func_name": fx.Name, "user": "root", "work_path": fx.Dir, "pid_file": fx.PIDFile(),
		"start_cmd": "./start.sh", "stop_cmd": "./stop.sh", "restart_cmd": "./restart.sh", "reload_cmd": "./reload.sh",
		"face_stop_cmd": "./kill.sh", "timeout": 30.0, "bk_start_check_secs": 1.0, "bk_func_id": "9"}
	for key, want := range attributes {
		if got := detail.Tasks[0].Extra.Info.Process[key]; got != want {
			t.Errorf("D9: %s is %v, want %v", key, got, want)
		}
	}
	bound, _ := json.Marshal(detail.Tasks[0].Extra.Info.Process["bind_info"])
	if string(bound) != `[{"enable":true,"ip":"127.0.0.1","port":"80","protocol":"1"}]` {
		t.Errorf("D9: bind_info is %s", bound)
	}

	if extra := detail.Tasks[0].Extra; extra.Info.Host["bk_host_id"] != 3.0 || extra.Level["bk_host_id"] != 3.0 {
		t.Errorf("D9: %v, %v", extra.Info.Host, extra.Level)
	}
	var list struct{ List []map[string]any }
	kitCall(t, k.API, fmt.Sprintf("/api/2/job/%d/job_task/", id), ft.J{"page": 1, "pagesize": 10}, &list)
	if task, _ := json.Marshal(list.List); !strings.Contains(string(task), `"face_stop_cmd":"./kill.sh"`) || !strings.Contains(string(task), `"bk_host_id":3`) {
		t.Errorf("D9: job_task: %s", task)
	}
	if status, body := k.Get(t, fmt.Sprintf("/api/2/job/%d/search_ip/", id)); status != 200 || !strings.Contains(body, `"bk_host_id":3`) {
		t.Errorf("D9: search_ip: %d %s", status, body)
	}

	ans, err := k.TryWith(fmt.Sprintf("/api/2/job/%d/retry/", id), ft.J{}, nil)
	if err != nil || !ans.Result || string(ans.Data) != "null" {
		t.Errorf("D10: %v %s", err, ans.Raw)
	}
	if fx.Count("start") != 1 {
		t.Errorf("D10: %v", fx.Calls())
	}
}
