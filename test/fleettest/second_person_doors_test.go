//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// rootDoors is a fleet of two hosts on which root's commands on a second host need a second person.
type rootDoors struct {
	*ft.Server
	t      *testing.T
	daemon *ft.Daemon
	apps   map[string]*ft.API
}

func startRootDoors(t *testing.T) *rootDoors {
	t.Helper()
	s := ft.StartServer(t, "", "--second-person", "root-hosts=1", "--second-person", "admin-grants")
	for n := 1; n <= 2; n++ {
		s.StartAgent(t, n, "")
	}
	s.AwaitOnline(t, 2)
	d := &rootDoors{Server: s, t: t, daemon: ft.NewDaemon(t, t.TempDir(), "gzroots"), apps: map[string]*ft.API{}}
	applyTopology(t, s.API, 2, fmt.Sprintf(`biz: 2
name: roots
sets:
  - {id: 5, name: front, env: 3, modules: [{id: 21, name: web, instances: [
      %s,
      %s]}]}
`, place(5, 1, "one", 46, d.daemon, ""), place(6, 2, "two", 47, d.daemon, "")))

	// Further apps, each a person of its own when it comes without a login.
	for _, name := range []string{"gateway", "job", "kit", "steps", "portal"} {
		file := filepath.Join(t.TempDir(), name+".json")
		d.run("app", "create", name, "--role", "operator", "--asserts-users", "--unknown-users", "--account", "root", "--out", file)
		api := *s.API
		if err := json.Unmarshal(read(t, file), &api.Cred); err != nil {
			t.Fatal(err)
		}
		api.Cred.Username = "someone"
		d.apps[name] = &api
	}
	return d
}

// run runs a command as the app admin.
func (d *rootDoors) run(args ...string) string {
	d.t.Helper()
	cmd := exec.Command(ft.Binary(d.t), append(args, "--credentials", filepath.Join(d.Data, "credentials.json"))...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("gozzard %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// doors sends a start by each door of BlueKing, and returns the HTTP status and what is wrong; "" for nothing.
func (d *rootDoors) doors() map[string]func(as *ft.API, user string, more ft.J, hosts ...int) (int, string) {
	gse := func(path string) func(*ft.API, string, ft.J, ...int) (int, string) {
		return func(as *ft.API, user string, more ft.J, hosts ...int) (int, string) {
			daemon := *d.daemon
			daemon.User = user
			return d.answer(as, path, ft.J{"meta": ft.J{"namespace": "roots", "name": "web"}, "op_type": 0,
				"hosts": hostsOf(hosts), "spec": daemon.Spec(nil)}, more)
		}
	}
	return map[string]func(*ft.API, string, ft.J, ...int) (int, string){
		"esb":     gse("/api/c/compapi/v2/gse/operate_proc_v2/"),
		"gateway": gse("/api/v2/proc/operate_proc_v2"),
		"job": func(as *ft.API, user string, more ft.J, hosts ...int) (int, string) {
			return d.answer(as, "/api/c/compapi/v2/job/operate_proc/", ft.J{"bk_biz_id": 2, "op_type": 0,
				"process_infos": []ft.J{{"setup_path": d.daemon.Dir, "proc_name": d.daemon.Name,
					"pid_path": d.daemon.PIDFile(), "account": user, "ip_list": hostsOf(hosts)}}}, more)
		},
	}
}

func hostsOf(numbers []int) (list []ft.J) {
	for _, n := range numbers {
		list = append(list, ft.Host(n))
	}
	return list
}

// answer sends a request, and checks the code and the message of a refusal.
func (d *rootDoors) answer(as *ft.API, path string, body, more ft.J) (int, string) {
	d.t.Helper()
	maps.Copy(body, more)
	ans, err := as.TryWith(path, body, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	if ans.Code == 0 {
		return ans.Status, ""
	}
	return ans.Status, fmt.Sprintf("%d %s", ans.Code, ans.Message)
}

// kit starts processes by a job of GSEKit, and returns its state, the code and the message of each task that failed.
func (d *rootDoors) kit(as *ft.API, more ft.J, processes string) (state string, failed []string) {
	d.t.Helper()
	body := ft.J{"job_object": "process", "job_action": "start",
		"expression_scope": ft.J{"bk_set_env": "3", "bk_process_id": processes}}
	maps.Copy(body, more)
	id, job := runJob(d.t, as, kit+"job/create_job/", body)
	for _, task := range job.Tasks {
		if task.Status == "failed" {
			failed = append(failed, fmt.Sprint(task.Code))
		}
	}
	page := ft.J{"page": 1, "pagesize": 10}
	maps.Copy(page, more)
	ans, err := as.TryWith(fmt.Sprintf("/api/2/job/%d/job_task/", id), page, nil)
	refused := strings.Contains(strings.Join(failed, " "), "4103002") // not one that runs already
	if err != nil || refused && !strings.Contains(string(ans.Raw), "need a second person") {
		d.t.Errorf("the tasks of job %d do not say why they failed: %v %s", id, err, ans.Raw)
	}
	return job.Info.Status, failed
}

// TestTT14SecondPersonByBlueKingDoors: BlueKing's APIs cannot wait for a second person. Each refuses root's commands on
// more hosts than one person may reach, with its documented code, and nothing runs: not at once, not by small steps, by
// another door, another app, another name of a user or another name of root.
func TestTT14SecondPersonByBlueKingDoors(t *testing.T) {
	t.Parallel() // it mostly waits
	d := startRootDoors(t)
	doors := d.doors()
	const refusal = "1306402 commands of root on more than 1 hosts in an hour need a second person"
	refused := func(what string, wantStatus, status int, got string) {
		t.Helper()
		if status != wantStatus || !strings.HasPrefix(got, refusal) {
			t.Errorf("%s: HTTP %d %q", what, status, got)
		}
	}
	status := map[string]int{"esb": http.StatusOK, "gateway": http.StatusForbidden, "job": http.StatusOK}

	// All hosts at once.
	for door, send := range doors {
		for _, user := range []string{"root", "0", "ROOT", "00", "0x0", `HOST\Administrator`} {
			code, got := send(d.apps["steps"], user, nil, 1, 2)
			refused(door+" as "+user, status[door], code, got)
		}
	}
	if state, failed := d.kit(d.apps["steps"], nil, "4[6, 7]"); state != "failed" || strings.Join(failed, " ") != "4103002 4103002" {
		t.Errorf("GSEKit: %s %v", state, failed)
	}
	if calls := d.daemon.Calls(); len(calls) != 0 {
		t.Fatalf("commands ran: %v", calls)
	}

	// One host, and then the other one: by every door, and with another name that the app claims.
	if _, got := doors["esb"](d.apps["steps"], "root", nil, 1); got != "" {
		t.Fatalf("the first host: %s", got)
	}
	for door, send := range doors {
		code, got := send(d.apps["steps"], "root", ft.J{"bk_username": "another"}, 2)
		refused(door+", the second host", status[door], code, got)
	}
	if state, failed := d.kit(d.apps["steps"], nil, "47"); state != "failed" || strings.Join(failed, " ") != "4103002" {
		t.Errorf("GSEKit, the second host: %s %v", state, failed)
	}

	// The first step by each of the other doors counts for all doors.
	for _, door := range []string{"gateway", "job"} {
		if _, got := doors[door](d.apps[door], "root", nil, 1); got != "" {
			t.Fatalf("%s, the first host: %s", door, got)
		}
		_, got := doors["esb"](d.apps[door], "root", nil, 2)
		refused(door+" and then ESB", http.StatusOK, http.StatusOK, got)
	}
	if _, failed := d.kit(d.apps["kit"], nil, "46"); strings.Contains(strings.Join(failed, " "), "4103002") {
		t.Errorf("GSEKit, the first host: %v", failed)
	}
	_, got := doors["esb"](d.apps["kit"], "root", nil, 2)
	refused("GSEKit and then ESB", http.StatusOK, http.StatusOK, got)

	// A person with a login is one person by every app.
	password := filepath.Join(t.TempDir(), "password")
	put(t, password, []byte("correct horse battery staple\n"), 0o600)
	d.run("user", "create", "alice", "--password-file", password, "--role", "operator", "--account", "root")
	me := filepath.Join(t.TempDir(), "alice.json")
	d.run("user", "login", "alice", "--password-file", password, "--out", me)
	token := func(app string) ft.J {
		cmd := exec.Command(ft.Binary(t), "user", "token", "create", "alice", "--for-app", app, "--password-file", password,
			"--credentials", me)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("token for %s: %v %s", app, err, out)
		}
		return ft.J{"bk_token": strings.TrimSpace(string(out)), "bk_username": ""}
	}
	if _, got := doors["esb"](d.apps["portal"], "root", token("portal"), 1); got != "" {
		t.Fatalf("alice by one app: %s", got)
	}
	_, got = doors["job"](d.apps["gateway"], "root", token("gateway"), 2)
	refused("alice by another app", http.StatusOK, http.StatusOK, got)
	out, err := exec.Command(ft.Binary(t), "start", "web", "-n", "roots", "--host", "127.0.0.2", "--credentials", me).CombinedOutput()
	if err == nil {
		t.Errorf("alice by the command line: %s", out)
	}

	// Nothing of this reached the second host.
	if out := d.run("ps", "-o", "json"); strings.Contains(out, "127.0.0.2") {
		t.Errorf("the second host has a process: %s", out)
	}
}
