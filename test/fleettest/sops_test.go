//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// sopsJob sends create_job as the atom of bk-sops does, byte for byte: through the bus, with the credentials in the body and
// all five parts of the expression. Then it polls job_status as the atom does, and returns the state and the codes.
func sopsJob(t *testing.T, a *ft.API, object, action, process, extra string) (state string, codes map[int]int) {
	t.Helper()
	const path = "/api/c/compapi/v2/gsekit/api/job/"
	who := fmt.Sprintf(`"bk_app_code":%q,"bk_app_secret":%q,"bk_username":%q,"bk_biz_id":2`, a.Cred.AppCode, a.Cred.Secret, a.Cred.Username)
	send := func(call, body string, data any) {
		t.Helper()
		ans, err := a.Post(path+call+"/", []byte(body), nil)
		if err == nil && ans.Result && ans.Code == 0 {
			err = json.Unmarshal(ans.Data, data)
		}
		if err != nil || !ans.Result {
			t.Fatalf("%s %s: %v %s", call, action, err, ans.Raw)
		}
	}

	var made struct {
		ID int64 `json:"job_id"`
	}
	send("create_job", fmt.Sprintf(`{%s,"expression_scope":{"bk_set_env":"3","bk_set_name":"*","bk_module_name":"*",`+
		`"service_instance_name":"*","bk_process_name":%q,"bk_process_id":"*"},"job_object":%q,"job_action":%q,"extra_data":%s}`,
		who, process, object, action, extra), &made)

	var job configJob
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("%s: job %d: %+v", action, made.ID, job) }, func() bool {
		job = configJob{}
		send("job_status", fmt.Sprintf(`{%s,"job_id":%d}`, who, made.ID), &job)
		return job.Info.Status != "pending" && job.Info.Status != "running"
	})
	return job.Info.Status, job.codes()
}

// TestSopsAtoms runs bk-sops' four atoms (operate, generate, release, diff) against real processes and files on three hosts.
func TestSopsAtoms(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	conf := fileFolder(t, "nobody")
	var places []string
	var daemons []*ft.Daemon
	for n := 1; n <= 3; n++ {
		state := t.TempDir()
		rules := fmt.Sprintf("allow_root: true\nusers: [\"*\"]\ndeny_uids: \"\"\npath_prefixes: [/tmp]\ntrusted_paths: false\nfiles: {paths: [%s], max_size: 65536}\n", conf)
		if err := os.WriteFile(state+"/policy.yaml", []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		s.StartAgentIn(t, n, state, "")
		d := ft.NewDaemon(t, t.TempDir(), "sops_proc")
		daemons = append(daemons, d)
		places = append(places, place(n, n, fmt.Sprint("s", n), 40+n, d, ""))
	}
	applyTopology(t, s.API, 2, "biz: 2\nname: b\nsets:\n  - {id: 5, name: s, env: 3, modules: [{id: 21, name: web, instances: ["+
		strings.Join(places, ", ")+"]}]}\n")
	wants := func(what, state string, codes map[int]int, wantState string, want map[int]int) {
		t.Helper()
		if state != wantState || fmt.Sprint(codes) != fmt.Sprint(want) {
			t.Fatalf("%s: %s %v, want %s %v", what, state, codes, wantState, want)
		}
	}
	fine := map[int]int{41: 0, 42: 0, 43: 0}
	operate := func(action string, wantState string, want map[int]int) {
		t.Helper()
		state, codes := sopsJob(t, s.API, "process", action, "sops_proc", "{}")
		wants(action, state, codes, wantState, want)
	}
	running := func(want bool) {
		t.Helper()
		for n, d := range daemons {
			if got := d.PID() > 0; got != want {
				t.Errorf("host %d: running is %v, want %v", n+1, got, want)
			}
		}
	}

	// Operate.
	operate("start", "succeeded", fine)
	running(true)
	operate("restart", "succeeded", fine)
	operate("reload", "succeeded", fine)

	// Generate, release and diff.
	admin := &tenant{API: s.API, t: t}
	var template struct {
		ID int64 `json:"config_template_id"`
	}
	if code, text := admin.kitData(http.MethodPost, "config_template/", ft.J{"template_name": "sops", "file_name": "${bk_host_innerip}.conf",
		"abs_path": conf, "owner": "nobody", "group": "nogroup", "filemode": "0640", "line_separator": "LF"}, &template); code != 0 {
		t.Fatal(text)
	}
	at := fmt.Sprintf("config_template/%d/", template.ID)
	var objects []ft.J
	for n := 1; n <= 3; n++ {
		objects = append(objects, ft.J{"process_object_type": "INSTANCE", "process_object_id": 40 + n})
	}
	for path, body := range map[string]ft.J{
		"create_config_version/":    {"description": "d", "content": "host ${bk_host_innerip}\n", "is_active": true},
		"bind_template_to_process/": {"process_object_list": objects},
	} {
		if code, text := admin.kitData(http.MethodPost, at+path, body, nil); code != 0 {
			t.Fatal(text)
		}
	}
	config := func(action, wantState string, want map[int]int) {
		t.Helper()
		state, codes := sopsJob(t, s.API, "configfile", action, "sops_proc", fmt.Sprintf(`{"config_template_ids":[%d]}`, template.ID))
		wants(action, state, codes, wantState, want)
	}
	config("generate", "succeeded", fine)
	config("release", "succeeded", fine)
	config("diff", "succeeded", fine)
	for n := 1; n <= 3; n++ {
		file := fmt.Sprintf("%s/127.0.0.%d.conf", conf, n)
		if got, err := os.ReadFile(file); err != nil || string(got) != fmt.Sprintf("host 127.0.0.%d\n", n) {
			t.Errorf("host %d has %q, %v", n, got, err)
		}
	}
	if err := os.WriteFile(conf+"/127.0.0.2.conf", []byte("by hand\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	config("diff", "failed", map[int]int{41: 0, 42: 4103007, 43: 0})
	operate("stop", "succeeded", fine)
	running(false)
}
