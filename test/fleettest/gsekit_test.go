//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

const kit = "/api/c/compapi/v2/gsekit/api/"

// kitCall calls the GSEKit door. The call must succeed.
func kitCall(t *testing.T, a *ft.API, path string, body ft.J, out any) {
	t.Helper()
	ans, err := a.TryWith(path, body, nil)
	if err != nil || ans.Status != http.StatusOK || !ans.Result || ans.Code != 0 {
		t.Fatalf("%s: %v %s", path, err, ans.Raw)
	}
	if out != nil {
		if err := json.Unmarshal(ans.Data, out); err != nil {
			t.Fatalf("%s: %v in %s", path, err, ans.Data)
		}
	}
}

// applyTopology applies a topology document through the native API.
func applyTopology(t *testing.T, a *ft.API, biz int, document string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut,
		fmt.Sprintf("%s/api/v1/topology/%d", a.Cred.URL, biz), strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}

	cred, err := json.Marshal(ft.J{"bk_app_code": a.Cred.AppCode, "bk_app_secret": a.Cred.Secret,
		"bk_username": a.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}

	req.Header.Set("X-Bkapi-Authorization", string(cred))
	req.Header.Set("Content-Type", "application/yaml")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}

	defer res.Body.Close()

	if res.StatusCode != http.StatusOK {
		t.Fatalf("topology: %s", res.Status)
	}
}

// place is one service instance of a document with one process.
func place(id, host int, name string, process int, d *ft.Daemon, more string) string {
	return fmt.Sprintf(`{id: %d, name: %s, host: {ip: 127.0.0.%d, cloud: 0}, processes: [{id: %d, name: %s, func_name: %s, user: root, work_path: %s, pid_file: %s,
          start_cmd: ./start.sh, stop_cmd: ./stop.sh, restart_cmd: ./restart.sh, reload_cmd: ./reload.sh, face_stop_cmd: ./kill.sh, timeout: 30, start_check_secs: 1%s}]}`,
		id, name, host, process, d.Name, d.Name, d.Dir, d.PIDFile(), more)
}

// kitJob is the answer of job_status.
type kitJob struct {
	Info struct {
		Status string `json:"status"`
	} `json:"job_info"`
	Counter map[string]int `json:"status_counter"`
	Tasks   []struct {
		Process int    `json:"bk_process_id"`
		Status  string `json:"status"`
		Code    int    `json:"err_code"`
	} `json:"job_tasks"`
}

// runJob creates a job, or retries the failed part of one, and waits for its end.
func runJob(t *testing.T, a *ft.API, path string, body ft.J) (id int64, job kitJob) {
	t.Helper()
	body["bk_biz_id"] = 2
	var made struct {
		ID int64 `json:"job_id"`
	}
	kitCall(t, a, path, body, &made)

	if made.ID == 0 {
		t.Fatalf("%s: no job", path)
	}

	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("job %d: %+v", made.ID, job) }, func() bool {
		job = kitJob{}
		kitCall(t, a, kit+"job/job_status/", ft.J{"bk_biz_id": 2, "job_id": made.ID}, &job)
		return job.Info.Status == "succeeded" || job.Info.Status == "failed"
	})

	return made.ID, job
}

// TestDocumentedProcessStatus sends the documented request of process_status against the documented topology and a real
// process. With its trailing commas it is rejected with the number of the wrong line. Without them the answer has the
// documented shape and the live values.
func TestDocumentedProcessStatus(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	fx := ft.NewDaemon(t, t.TempDir(), "gse_agent")
	applyTopology(t, d.API, 2, fmt.Sprintf(`biz: 2
name: 蓝鲸
clouds: [{id: 0, name: default area}]
sets:
  - {id: 5, name: 管控平台, env: 3, modules: [{id: 21, name: gse_agent, service_template_id: 26, instances: [
      %s]}]}
config_templates: [{id: 2, name: MySQL配置, file_name: mysql.ini, abs_path: /etc, owner: root, group: root, mode: "0644", bind: {templates: [26]}}]
`, place(5, 1, "127.0.0.1_gse_agent", 46, fx, ", template_id: 26, proc_num: 1, priority: 1")))
	text, err := os.ReadFile("testdata/seed-002-request.txt")
	if err != nil {
		t.Fatal(err)
	}

	// The request as documented, with its commas.
	credentials := strings.NewReplacer(`"xxxx"`, `"`+d.Cred.AppCode+`"`, `"xxx"`, `"`+d.Cred.Secret+`"`)
	const path = "//v2/gsekit/api/process/process_status/"
	ans, err := d.Post(path, []byte(credentials.Replace(string(text))), nil)
	if err != nil || ans.Result || ans.Code != 4100001 || !strings.Contains(ans.Message, "12") {
		t.Errorf("with its commas: %v %s", err, ans.Raw)
	}

	// The valid request, before and after the start of the process.
	valid := regexp.MustCompile(`,(\s*})`).ReplaceAllString(credentials.Replace(string(text)), "$1")
	status := func() (count int, data json.RawMessage) {
		t.Helper()
		ans, err := d.Post(path, []byte(valid), nil)
		if err != nil || !ans.Result || ans.Code != 0 {
			t.Fatalf("%v %s", err, ans.Raw)
		}
		var c struct{ Count int }
		if err := json.Unmarshal(ans.Data, &c); err != nil {
			t.Fatal(err)
		}
		return c.Count, ans.Data
	}

	if n, data := status(); n != 0 { // the request filters for running and supervised processes
		t.Errorf("before it is started: %s", data)
	}

	_, job := runJob(t, d.API, kit+"job/create_job/", ft.J{"job_object": "process", "job_action": "start",
		"expression_scope": ft.J{"bk_set_env": "3", "bk_set_name": "[管控平台, PaaS平台]", "bk_process_id": "4[6, 8, 9]"}})
	if job.Info.Status != "succeeded" || fx.PID() < 0 {
		t.Fatalf("%+v", job)
	}

	n, data := status()
	if n != 1 {
		t.Fatalf("%s", data)
	}

	// The answer has the documented shape and live values.
	sameShape(t, "002", data)
	var got struct {
		List []struct {
			Expression string
			Status     int    `json:"process_status"`
			Auto       bool   `json:"is_auto"`
			Service    string `json:"bk_service_name"`
			Cloud      string `json:"bk_cloud_name"`
			Stale      bool
			Reported   any `json:"report_time"`
			Configs    []struct {
				Name string `json:"template_name"`
			} `json:"config_templates"`
		}
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}

	if r := got.List[0]; r.Expression != "管控平台.gse_agent.127.0.0.1_gse_agent.gse_agent.46" || r.Status != 1 ||
		!r.Auto || r.Service != "127.0.0.1_gse_agent" ||
		r.Cloud != "default area" || r.Stale || r.Reported == nil || len(r.Configs) != 1 ||
		r.Configs[0].Name != "MySQL配置" {
		t.Errorf("%s", data)
	}
}

// TestKitJobInWaves starts processes by expression on three hosts with priorities. A process that fails holds back the
// later waves of its set only, a retry repairs it, and the status shows at once that a process died.
func TestKitJobInWaves(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 3)
	root := t.TempDir()
	first, second, third := ft.NewDaemon(t, root, "gzwaveone"), ft.NewDaemon(t, root, "gzwavetwo"),
		ft.NewDaemon(t, root, "gzwavethree")
	second.Script("start.sh",
		"echo start >> calls\n[ -e healed ] || { echo no licence >&2; exit 3; }\nsetsid ./gzwavetwo 1000000 </dev/null >/dev/null 2>&1 &\necho $! > "+second.PIDFile())
	applyTopology(t, d.API, 2, fmt.Sprintf(`biz: 2
name: 波
clouds: [{id: 0, name: default area}]
sets:
  - {id: 5, name: 大区一, env: 3, modules: [{id: 21, name: game, instances: [
      %s,
      %s,
      %s]}]}
`, place(1, 1, "one", 11, first, ", priority: 1"), place(2, 2, "two", 12, second, ", priority: 2"), place(3, 3, "three", 13, third, ", priority: 3")))
	scope := ft.J{"bk_set_env": 3, "bk_set_name": "大区*", "bk_process_name": "gzwave*"}
	id, job := runJob(t, d.API, kit+"job/create_job/",
		ft.J{"job_object": "process", "job_action": "start", "expression_scope": scope})
	if job.Info.Status != "failed" || job.Counter["succeeded"] != 1 || job.Counter["failed"] != 2 {
		t.Fatalf("%+v", job)
	}

	for _, task := range job.Tasks {
		if want := map[int]int{11: 0, 12: 65535, 13: 4103003}[task.Process]; task.Code != want {
			t.Errorf("process %d: %+v, not %d", task.Process, task, want)
		}
	}

	if first.PID() < 0 || second.PID() > 0 || third.Count("start") != 0 {
		t.Errorf("calls %v, %v, %v", first.Calls(), second.Calls(), third.Calls())
	}
	if err := os.WriteFile(second.Dir+"/healed", nil, 0o644); err != nil {
		t.Fatal(err)
	}

	kitCall(t, d.API, fmt.Sprintf("/api/2/job/%d/retry/", id), ft.J{}, nil)

	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("%+v", job) }, func() bool {
		job = kitJob{}
		kitCall(t, d.API, kit+"job/job_status/", ft.J{"bk_biz_id": 2, "job_id": id}, &job)
		return job.Info.Status == "succeeded"
	})

	if first.Count("start") != 1 || second.PID() < 0 || third.PID() < 0 {
		t.Errorf("calls %v, %v, %v", first.Calls(), second.Calls(), third.Calls())
	}

	// Stop supervising it, so that it stays dead.
	if _, job := runJob(t, d.API, kit+"job/create_job/",
		ft.J{"job_object": "process", "job_action": "unset_auto",
			"scope": ft.J{"bk_set_env": "3", "bk_process_ids": []int{11}}}); job.Info.Status != "succeeded" {
		t.Fatalf("%+v", job)
	}

	ft.KillPID(t, first.PID())

	began := time.Now()

	ft.Until(t, 30*time.Second, func() string { return "its death is not seen" }, func() bool {
		var page struct{ Count int }
		kitCall(t, d.API, kit+"process/process_status/",
			ft.J{"bk_biz_id": 2, "scope": ft.J{"bk_set_env": "3"}, "process_status": 2, "page": 1, "pagesize": 10},
			&page)
		return page.Count == 1
	})

	t.Logf("a kill was seen by process_status after %d ms", time.Since(began).Milliseconds())
}
