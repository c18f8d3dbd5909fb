//go:build linux

package fleettest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// tenant is a caller of a server, by app.
type tenant struct {
	*ft.API
	t *testing.T
}

// newTenant makes an app with grants.
func newTenant(t *testing.T, s *ft.Server, code string, grants ...ft.J) *tenant {
	t.Helper()
	admin := &tenant{API: s.API, t: t}
	var made struct {
		Secret string `json:"secret"`
	}
	admin.native(http.MethodPost, "/api/v1/apps", ft.KnownFields(t, ft.J{"code": code, "asserts_users": true,
		"unknown_users": true, "grants": grants}), &made)
	a := *s.API
	a.Cred.AppCode, a.Cred.Secret, a.Cred.Username = code, made.Secret, code
	return &tenant{API: a.For(t), t: t}
}

// native calls our own API. A text is sent as it is. It returns the status and the answer.
func (c *tenant) native(method, path string, body, out any) (int, string) {
	c.t.Helper()
	content, ok := body.(string)
	if !ok && body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		content = string(b)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.Cred.URL+path, strings.NewReader(content))
	if err != nil {
		c.t.Fatal(err)
	}
	cred, err := json.Marshal(ft.J{"bk_app_code": c.Cred.AppCode, "bk_app_secret": c.Cred.Secret,
		"bk_username": c.Cred.Username})
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("X-Bkapi-Authorization", string(cred))
	req.Header.Set("Content-Type", "application/json")
	if ok {
		req.Header.Set("Content-Type", "application/yaml")
	}

	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if out != nil && json.Unmarshal(answer, out) != nil {
		c.t.Fatalf("%s %s: HTTP %d %s", method, path, res.StatusCode, answer)
	}
	return res.StatusCode, string(answer)
}

// settled waits for a task of our own API and returns its attempts as text.
func (c *tenant) settled(task string) (text string) {
	c.t.Helper()
	ft.Until(c.t, time.Minute, func() string { return "the task has no verdicts: " + text }, func() bool {
		_, text = c.native(http.MethodGet, "/api/v1/tasks/"+task+"?wait=20s", nil, nil)
		return strings.Contains(text, `"final":true`)
	})
	return text
}

// operate sends an operation to our own API and returns its result as text. A request that is refused as a whole has
// the refusal as its result.
func (c *tenant) operate(method, path string, body ft.J) string {
	c.t.Helper()
	var made struct {
		Task string `json:"task_id"`
	}
	status, text := c.native(method, path, body, &made)
	if status != http.StatusAccepted {
		return text
	}
	return c.settled(made.Task)
}

// loot is a folder in which commands of every account leave their names.
type loot struct {
	t   *testing.T
	dir string
}

func newLoot(t *testing.T) *loot {
	t.Helper()
	dir, err := os.MkdirTemp("", "gozzard-loot-") // every account must be able to enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return &loot{t, dir}
}

// command writes the account that it runs as into a file of the folder.
func (l *loot) command(name string) string { return "id -un >> " + filepath.Join(l.dir, name) }

// spec is a definition whose commands leave the name of their account.
func (l *loot) spec(name, user string) ft.J {
	return ft.J{"identity": ft.J{"proc_name": "gzloot", "setup_path": l.dir, "pid_path": filepath.Join(l.dir, "pid"),
		"user": user},
		"control": ft.J{"start_cmd": l.command(name), "stop_cmd": l.command(name), "reload_cmd": l.command(name),
			"restart_cmd": l.command(name), "kill_cmd": l.command(name)},
		"resource": ft.J{}, "monitor_policy": ft.J{"auto_type": 2, "start_check_secs": 0, "stop_check_secs": 0,
			"op_timeout": 20}}
}

// taken is what commands left in a file, and all files with what they have.
func (l *loot) taken(name string) string {
	b, err := os.ReadFile(filepath.Join(l.dir, name))
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(bytes.TrimSpace(b))), " ")
}

// business is a document with one host and one process.
func (l *loot) business(biz, host int, user, file string) string {
	return fmt.Sprintf(`biz: %d
name: b%[1]d
clouds: [{id: 0, name: default}]
sets: [{id: 1, name: s, env: 3, modules: [{id: 1, name: m, instances: [{id: 1, name: i, host: {ip: 127.0.0.%d, cloud: 0},
  processes: [{id: 1, name: loot, func_name: gzloot, user: %q, work_path: %s, pid_file: %[4]s/pid,
    start_cmd: %[5]q, stop_cmd: %[5]q, restart_cmd: %[5]q, timeout: 20, start_check_secs: 1}]}]}]}]
`, biz, host, user, l.dir, l.command(file))
}

// byDoors starts a process of a business as an account on a host, by every door that takes a definition. It returns
// what each door answered.
func (c *tenant) byDoors(l *loot, biz, host int, user, file string) map[string]string {
	c.t.Helper()
	out := map[string]string{}
	space := fmt.Sprintf("JOB_BIZ_%d", biz)
	ip := fmt.Sprintf("127.0.0.%d", host)

	// Our own API: with the operation, and by registering first.
	out["native"] = c.operate(http.MethodPost, "/api/v1/operations", ft.J{"action": "start", "namespace": space,
		"names": []string{"n1"}, "hosts": []ft.J{{"cloud": 0, "ip": ip}}, "spec": l.spec(file, user)})
	out["put"] = c.operate(http.MethodPut, "/api/v1/processes", ft.J{"namespace": space, "name": "n2",
		"hosts": []ft.J{{"cloud": 0, "ip": ip}}, "spec": l.spec(file, user)})
	if !strings.Contains(out["put"], "permitted") && !strings.Contains(out["put"], "not in the fleet") {
		c.operate(http.MethodPost, "/api/v1/operations", ft.J{"action": "start", "namespace": space,
			"names": []string{"n2"}, "hosts": []ft.J{{"cloud": 0, "ip": ip}}})
	}

	// GSE: several items in one request.
	meta := func(name string) ft.J {
		return ft.J{"namespace": space, "name": name, "labels": ft.J{"proc_name": "x"}}
	}
	task := c.Operate("operate_proc_multi", ft.J{"proc_operate_req": []ft.J{
		{"meta": meta("g1"), "op_type": 0, "hosts": []ft.J{ft.Host(host)}, "spec": l.spec(file, user)},
		{"meta": meta("g2"), "op_type": 7, "hosts": []ft.J{ft.Host(host)}, "spec": l.spec(file, user)},
	}})
	for entry, e := range c.Await(task) {
		out["gse "+entry] = fmt.Sprint(e)
	}

	// Job: a process with its commands.
	ans, err := c.TryWith("/api/c/compapi/v2/job/operate_process/", ft.J{"bk_biz_id": biz, "op_type": 0,
		"process_infos": []ft.J{{"setup_path": l.dir, "proc_name": "gzloot", "pid_path": l.dir + "/pid", "account": user,
			"start_cmd": l.command(file), "stop_cmd": l.command(file), "restart_cmd": l.command(file),
			"reload_cmd": l.command(file), "kill_cmd": l.command(file), "type": 1, "value_key": "v",
			"ip_list": []ft.J{{"bk_cloud_id": 0, "ip": ip}}}}}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	var made struct {
		ID string `json:"bk_gse_taskid"`
	}
	if json.Unmarshal(ans.Data, &made) == nil && made.ID != "" {
		out["job"] = fmt.Sprint(c.Await(made.ID))
	}
	out["job"] += string(ans.Raw)
	return out
}

// TestTI3BusinessGrantBindsHostsAndAccounts: the documented way to make a tenant, a grant by business without networks,
// reaches the hosts that are assigned to the business as the accounts that the grant names, and no others, by no door.
// An admin of a business cannot put another host into it, nor another account.
func TestTI3BusinessGrantBindsHostsAndAccounts(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	s.StartAgent(t, 2, "")
	l := newLoot(t)
	admin := &tenant{API: s.API, t: t}
	for biz, host := range map[int]int{2: 1, 3: 2} {
		if status, text := admin.native(http.MethodPut, fmt.Sprint("/api/v1/topology/", biz),
			l.business(biz, host, "nobody", "topology"), nil); status != http.StatusOK {
			t.Fatal(text)
		}
	}
	shop := newTenant(t, s, "shop", ft.J{"role": "operator", "businesses": []int{2}, "accounts": []string{"nobody"}})
	boss := newTenant(t, s, "boss", ft.J{"role": "admin", "businesses": []int{2}, "accounts": []string{"nobody"}})

	// The tenant works where it may, by every door.
	for door, text := range shop.byDoors(l, 2, 1, "nobody", "own") {
		if strings.Contains(text, "permitted") {
			t.Errorf("%s: a tenant cannot use its own host: %s", door, text)
		}
	}
	if got := l.taken("own"); !strings.Contains(got, "nobody nobody nobody nobody") || strings.Contains(got, "root") {
		t.Errorf("the own commands ran as %q", got)
	}

	// Neither another host, nor another account there, under any name.
	for _, c := range []*tenant{shop, boss} {
		for door, text := range c.byDoors(l, 2, 2, "nobody", "foreign") {
			if !strings.Contains(text, "is not in the fleet") {
				t.Errorf("%s on a foreign host: %s", door, text)
			}
		}
		for _, user := range []string{"root", "0", "daemon", "ROOT"} {
			for door, text := range c.byDoors(l, 2, 1, user, "foreign") {
				if !strings.Contains(text, "not permitted") {
					t.Errorf("%s as %q: %s", door, user, text)
				}
			}
		}
	}

	// A grant by namespaces that does not say its hosts is not made. If it is, it reaches a host that it did not name.
	for name, grant := range map[string]ft.J{
		"silent":   {"role": "operator", "namespaces": []string{"JOB_BIZ_2"}, "accounts": []string{"nobody"}},
		"assigned": {"role": "operator", "namespaces": []string{"own*"}, "accounts": []string{"nobody"}, "hosts": "assigned"},
	} {
		if c := newTenant(t, s, name, grant); c.Cred.Secret != "" {
			t.Errorf("an app has a grant by namespaces without hosts: %v", c.byDoors(l, 2, 2, "nobody", "foreign"))
		}
	}

	// What is on the other host does not exist.
	_, hosts := shop.native(http.MethodGet, "/api/v1/hosts", nil, nil)
	if strings.Contains(hosts, "127.0.0.2") || !strings.Contains(hosts, "127.0.0.1") {
		t.Errorf("the tenant sees these hosts: %s", hosts)
	}

	// The admin of a business changes what its hosts have, but brings no host and no account in.
	for name, doc := range map[string]string{
		"host":             l.business(2, 2, "nobody", "foreign"),
		"account":          l.business(2, 1, "root", "foreign"),
		"number":           l.business(2, 1, "0", "foreign"),
		"no account":       l.business(2, 1, "", "foreign"),
		"another business": l.business(3, 1, "nobody", "foreign"),
		"a second host": strings.Replace(l.business(2, 1, "nobody", "foreign"), "instances: [{id: 1,",
			"instances: [{id: 2, name: j, host: {ip: 127.0.0.2, cloud: 0}, processes: []}, {id: 1,", 1),
	} {
		if status, text := boss.native(http.MethodPut, "/api/v1/topology/"+doc[5:6], doc,
			nil); status != http.StatusForbidden {
			t.Errorf("topology, %s: HTTP %d %s", name, status, text)
		}
	}
	if status, text := boss.native(http.MethodPut, "/api/v1/topology/2", l.business(2, 1, "nobody", "changed"),
		nil); status != http.StatusOK {
		t.Errorf("an admin cannot change its own business: %s", text)
	}
	_, job := runJob(t, shop.API, kit+"job/create_job/", ft.J{"job_object": "process", "job_action": "start",
		"expression_scope": ft.J{"bk_set_env": "3", "bk_set_name": "*", "bk_module_name": "*",
			"service_instance_name": "*", "bk_process_name": "*", "bk_process_id": "*"}})
	if got := l.taken("changed"); got != "nobody" {
		t.Errorf("the job ran as %q: %+v", got, job)
	}

	// An admin of the host does it.
	giver := newTenant(t, s, "giver", ft.J{"role": "admin", "nets": []string{"127.0.0.2/32"},
		"accounts": []string{"nobody"}}, ft.J{"role": "admin", "businesses": []int{2}, "accounts": []string{"nobody"}})
	if status, text := giver.native(http.MethodPut, "/api/v1/topology/2", l.business(2, 2, "nobody", "given"),
		nil); status != http.StatusOK {
		t.Errorf("an admin of the host cannot give it: %s", text)
	}
	if text := shop.operate(http.MethodPost, "/api/v1/operations", ft.J{"action": "start", "namespace": "JOB_BIZ_2",
		"names": []string{"n1"}, "hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.2"}},
		"spec": l.spec("given", "nobody")}); l.taken("given") != "nobody" {
		t.Errorf("a host that was given is not reached: %s", text)
	}

	if got := l.taken("foreign"); got != "" {
		t.Errorf("foreign commands ran as %s", got)
	}
}

// TestTE10StartIsNotTheRightToDefine: a caller that may start, and nothing else, runs the recorded definition. A
// definition of its own is refused by every door, and does not replace the recorded one.
func TestTE10StartIsNotTheRightToDefine(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	l := newLoot(t)
	admin := &tenant{API: s.API, t: t}
	if status, text := admin.native(http.MethodPut, "/api/v1/topology/2", l.business(2, 1, "root", "t"),
		nil); status != http.StatusOK {
		t.Fatal(text)
	}
	alice := newTenant(t, s, "alice", ft.J{"role": "operator", "businesses": []int{2}, "actions": []string{"start"},
		"accounts": []string{"root", "*"}})
	host := []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}
	operation := func(action, name string, spec ft.J) ft.J {
		body := ft.J{"action": action, "namespace": "JOB_BIZ_2", "names": []string{name}, "hosts": host}
		if spec != nil {
			body["spec"] = spec
		}
		return body
	}

	for _, name := range []string{"n1", "n2", "g1", "g2"} {
		if text := admin.operate(http.MethodPut, "/api/v1/processes", ft.J{"namespace": "JOB_BIZ_2", "name": name,
			"hosts": host, "spec": l.spec("recorded", "root")}); strings.Contains(text, "refused") {
			t.Fatal(text)
		}
	}

	// A new definition, and one that differs.
	for door, text := range alice.byDoors(l, 2, 1, "nobody", "evil") {
		if !strings.Contains(text, "not permitted") {
			t.Errorf("%s: %s", door, text)
		}
	}
	for _, name := range []string{"n1", "new"} {
		text := alice.operate(http.MethodPost, "/api/v1/operations", operation("query", name, l.spec("evil", "root")))
		if !strings.Contains(text, "not permitted") {
			t.Errorf("query of %s: %s", name, text)
		}
	}

	// The recorded one runs, without a definition and with an equal one.
	for _, spec := range []ft.J{nil, l.spec("recorded", "root")} {
		if text := alice.operate(http.MethodPost, "/api/v1/operations", operation("start", "n1", spec)); strings.Contains(
			text, "permitted") {
			t.Errorf("start of the recorded definition: %s", text)
		}
	}
	if got := l.taken("recorded"); !strings.HasPrefix(got, "root root") {
		t.Errorf("the recorded definition ran %q", got)
	}
	admin.operate(http.MethodPost, "/api/v1/operations", operation("stop", "n1", nil))
	if got := l.taken("evil"); got != "" {
		t.Errorf("a definition of the caller ran as %s", got)
	}
}

// TestTE11ViewerCannotReadForeignProcesses: a query of a viewer brings no definition, so it cannot name a process of the
// host that the viewer has nothing to do with: one of another namespace, and one that no agent manages.
func TestTE11ViewerCannotReadForeignProcesses(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	managed, alone := ft.NewDaemon(t, t.TempDir(), "gzsecret"), ft.NewDaemon(t, t.TempDir(), "gzsolitary")
	viewer := newTenant(t, s, "viewer", ft.J{"role": "viewer", "namespaces": []string{"shop*"}, "hosts": "any"})

	// The processes.
	task := s.Operate("operate_proc_multi", ft.J{"proc_operate_req": []ft.J{{
		"meta": ft.J{"namespace": "other", "name": "secret", "labels": ft.J{"proc_name": "x"}}, "op_type": 0,
		"hosts": []ft.J{ft.Host(1)}, "spec": managed.Spec(nil)}}})
	s.Await(task)
	if out, err := exec.Command(filepath.Join(alone.Dir, "start.sh")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	// The viewer gives their identity, by every door that has a query.
	for _, d := range []*ft.Daemon{managed, alone} {
		ft.Until(t, time.Minute, func() string { return d.Name + " does not run: nothing is proven" },
			func() bool { return d.PID() > 1 })
		for _, text := range viewer.queries(d.Spec(nil)) {
			if !strings.Contains(text, "not permitted") || strings.Contains(text, fmt.Sprint(d.PID())) ||
				strings.Contains(text, d.Dir) {
				t.Errorf("the viewer is shown: %s", text)
			}
		}
	}
}

// queries asks for a process by a definition, by every door that has a query. It returns the answers.
func (c *tenant) queries(spec ft.J) []string {
	c.t.Helper()
	answers := []string{c.operate(http.MethodPost, "/api/v1/operations", ft.J{"action": "query",
		"namespace": "shop1", "names": []string{"x"}, "hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}, "spec": spec})}
	for _, call := range []string{"operate_proc_v2", "operate_proc"} {
		task := c.Operate(call, ft.J{"meta": ft.J{"namespace": "shop1", "name": "x", "labels": ft.J{"proc_name": "x"}},
			"op_type": 2, "hosts": []ft.J{ft.Host(1)}, "agent_id_list": []string{"0:127.0.0.1"}, "spec": spec})
		answers = append(answers, fmt.Sprint(c.Await(task)))
	}
	return answers
}
