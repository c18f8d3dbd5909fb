//go:build linux

package fleettest_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// operateAgent sends operate_agent as nodemgr does, and returns the agents that it names as missing and the task, or the
// refusal.
func (c *tenant) operateAgent(more ft.J, agents ...string) (missing []string, task, refusal string) {
	c.t.Helper()
	body := ft.J{"type": 1, "current_version": "", "target_version_sign": "", "timeout": 0, "force": false, "remark": "a test",
		"agent_id_list": agents}
	for k, v := range more {
		body[k] = v
	}
	var made struct {
		Code int `json:"code"`
		Data struct {
			Missing []string `json:"results"`
			TaskID  string   `json:"task_id"`
		} `json:"data"`
	}
	_, text := c.native(http.MethodPost, "/api/bk-gse/prod/api/v2/cluster/operate_agent", body, &made)
	return made.Data.Missing, made.Data.TaskID, text
}

// stateOfTask waits until a task has ended, and returns the lists of its agents.
func (c *tenant) stateOfTask(task string) (state struct {
	State     string   `json:"state"`
	Successed []string `json:"successed_agents"`
	Failed    []string `json:"failed_agents"`
	Offline   []string `json:"offline_agents"`
	Restarted []string `json:"restarted_agents"`
}) {
	c.t.Helper()
	ft.Until(c.t, time.Minute, func() string { return fmt.Sprintf("task %s has not ended: %+v", task, state) }, func() bool {
		var got struct {
			Data struct {
				Result any `json:"result"`
			} `json:"data"`
		}
		got.Data.Result = &state
		_, _ = c.native(http.MethodPost, "/api/v2/task/get_task_state", ft.J{"task_id": task}, &got)
		return state.State != "pending" && state.State != "executing" && state.State != ""
	})
	return state
}

// startedAt is when the agent of host n started, and whether it is online.
func startedAt(t *testing.T, c *client.Client, n int) (at time.Time, online bool) {
	t.Helper()
	page, err := c.Hosts(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range page.Hosts {
		if h.Addrs[0].IP == fmt.Sprintf("127.0.0.%d", n) {
			return h.StartedAt.Time, h.Online
		}
	}
	t.Fatalf("no host %d", n)
	return at, false
}

// keptDaemon starts a daemon on a host. It must keep its pid.
type keptDaemon struct {
	*ft.Daemon
	pid int
}

func startKept(t *testing.T, s *ft.Server, root, name string, host int, account string) *keptDaemon {
	t.Helper()
	d := ft.NewDaemon(t, root, name)
	d.User = account
	if account != "root" {
		ft.Chown(t, d.Dir, account)
	}
	for k, e := range s.Await(s.Operate("operate_proc_multi", ft.J{"proc_operate_req": []ft.J{{"meta": ft.J{"namespace": "gse",
		"name": name}, "op_type": 0, "hosts": []ft.J{ft.Host(host)}, "spec": d.Spec(nil)}}})) {
		if e.Code != 0 {
			t.Fatalf("%s: %+v", k, e)
		}
	}
	return &keptDaemon{d, d.PID()}
}

// check fails if the process is another one, was started again, or is not supervised.
func (d *keptDaemon) check(t *testing.T, s *ft.Server, host int) {
	t.Helper()
	if d.PID() != d.pid || d.Count("start") != 1 || d.Count("restart") != 0 || d.Copies() != 1 {
		t.Errorf("the process had pid %d and has %d; calls: %v, copies: %d", d.pid, d.PID(), d.Calls(), d.Copies())
	}
	var rows []ft.Info
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("the process is not known again: %+v", rows) }, func() bool {
		rows = s.Status("gse", d.Name, ft.Host(host))
		return len(rows) == 1 && rows[0].PID == d.pid
	})
}

// TestTT17RestartAgents: operate_agent restarts agents once, and no process of theirs notices: of an agent of root and of one of an
// ordinary account. Unknown and offline agents are named. Callers without the right, and hosts with a policy against it,
// keep their agents.
func TestTT17RestartAgents(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	relay := newRecorder(t, s.Agents)
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}

	// A host with root's agent, one with the agent of an ordinary account, one with a policy against it, and one that is off.
	state := t.TempDir()
	ft.AllowEverything(t, state)
	agent := ft.Start(t, "agent1", nil, "agent", "--data", state, "--server", relay.addr(), "--ip", "127.0.0.1", "--log-level",
		"debug", "--secret-file", filepath.Join(s.Data, "join.secret"))
	s.AwaitOnline(t, 1)
	home := s.StartAgentAs(t, 2, "nobody", nil, "users: [nobody]\ndeny_uids: \"\"\npath_prefixes: [/]\n")
	closed := t.TempDir()
	if err := os.WriteFile(filepath.Join(closed, "policy.yaml"), []byte("agent_restart: false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	owned := s.StartAgentIn(t, 3, closed, "")
	away := s.StartAgent(t, 4, "")
	away.Kill(9)
	first := startKept(t, s, root, "gzrestone", 1, "root")
	second := startKept(t, s, home.Dir, "gzresttwo", 2, "nobody")
	c := native(t, s.API)
	ft.Until(t, time.Minute, func() string { return "host 4 is not offline" }, func() bool {
		_, online := startedAt(t, c, 4)
		return !online
	})

	node := newTenant(t, s, "gznodeman", ft.J{"role": "operator", "hosts": "any", "actions": []string{"restart-agent"}})
	one, two, three, four := "0:127.0.0.1", "0:127.0.0.2", "0:127.0.0.3", "0:127.0.0.4"
	before, _ := startedAt(t, c, 1)
	pid, sessions := agent.PID(), agent.Sessions()
	otherPID, others := home.PID(), home.Sessions()

	// Restart.
	missing, task, text := node.operateAgent(nil, one, two, three, four, "0:127.0.0.77", "no-such-agent")
	if strings.Join(missing, " ") != four+" 0:127.0.0.77 no-such-agent" || task == "" {
		t.Fatalf("missing %v: %s", missing, text)
	}
	got := node.stateOfTask(task)
	if fmt.Sprint(got.Successed) != fmt.Sprint([]string{one, two}) || fmt.Sprint(got.Failed) != fmt.Sprint([]string{three}) ||
		fmt.Sprint(got.Offline) != fmt.Sprint([]string{four, "0:127.0.0.77", "no-such-agent"}) || got.State != "failed" {
		t.Errorf("%+v", got)
	}
	if text := node.settled(task); !strings.Contains(text, "the agent restarted and runs version") ||
		!strings.Contains(text, "agent_restart in "+filepath.Join(closed, "policy.yaml")) || !strings.Contains(text, "is offline") {
		t.Errorf("verdicts: %s", text)
	}

	ft.Until(t, time.Minute, func() string { return "no new agent" }, func() bool {
		after, online := startedAt(t, c, 1)
		return online && after.After(before)
	})
	if agent.PID() != pid || agent.Sessions() <= sessions || home.PID() != otherPID || home.Sessions() <= others ||
		owned.Sessions() != 1 {
		t.Errorf("pids %d and %d became %d and %d; sessions %d, %d and %d", pid, otherPID, agent.PID(), home.PID(),
			agent.Sessions(), home.Sessions(), owned.Sessions())
	}
	first.check(t, s, 1)
	second.check(t, s, 2)

	// The same signed order does nothing again.
	sessions = agent.Sessions()
	again, _ := startedAt(t, c, 1)
	n := relay.replay(t)
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("%d messages were sent again: %s", n, agent.Output()) }, func() bool {
		return strings.Count(agent.Output(), "rejected an operation of another session") >= 2 // the start and the restart
	})
	if _, task, text := node.operateAgent(ft.J{"current_version": "0.0.1"}, one); task == "" {
		t.Errorf("another version: %s", text)
	} else if text := node.settled(task); !strings.Contains(text, "and the restart is for version 0.0.1") {
		t.Errorf("another version: %s", text)
	}
	if at, _ := startedAt(t, c, 1); agent.Sessions() != sessions || !at.Equal(again) {
		t.Errorf("the agent restarted again: %d sessions were %d", agent.Sessions(), sessions)
	}

	// The audit has it, and a restarted agent works.
	admin := &tenant{API: s.API, t: t}
	if _, text := admin.native(http.MethodGet, "/api/v1/audit?limit=50", nil, nil); !strings.Contains(text, "operate:restart-agent") {
		t.Errorf("audit: %s", text)
	}
	ft.KillPID(t, first.pid)
	ft.Until(t, time.Minute, func() string { return "not brought back" },
		func() bool { p := first.PID(); return p > 0 && p != first.pid })
}

// TestRestartInTheMiddle: a restart waits for an operation in progress. With force it interrupts the operation, whose verdict
// says so, and the process of another definition keeps its pid.
func TestRestartInTheMiddle(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	kept := startKept(t, s, root, "gzmiddle", 1, "root")
	slow := ft.NewDaemon(t, root, "gzmidslow")
	release := filepath.Join(slow.Dir, "go")
	slow.Script("reload.sh", "echo reload >> calls\nwhile [ ! -e "+release+" ]; do sleep 0.1; done")
	operate := func(op int) string {
		return s.Operate("operate_proc_multi", ft.J{"proc_operate_req": []ft.J{{"meta": ft.J{"namespace": "gse", "name": "gzmidslow"},
			"op_type": op, "hosts": []ft.J{ft.Host(1)}, "spec": slow.Spec(ft.J{"op_timeout": 300})}}})
	}
	const start, reload = 0, 8
	for _, e := range s.Await(operate(start)) {
		if e.Code != 0 {
			t.Fatal(e)
		}
	}
	pid := slow.PID()
	admin := &tenant{API: s.API, t: t}
	restart := func(body ft.J) string {
		body["hosts"] = []ft.J{{"ip": "127.0.0.1"}}
		return admin.operate(http.MethodPost, "/api/v1/hosts/restart", body)
	}

	// It does not restart while the operation runs, and restarts when the operation has ended.
	work := operate(reload)
	ft.Until(t, time.Minute, func() string { return "no reload" }, func() bool { return slow.Count("reload") == 1 })
	sessions := agent.Sessions()
	if text := restart(ft.J{"wait_seconds": 1}); !strings.Contains(text, "operations are still in progress on this host after 1 seconds") {
		t.Errorf("while an operation runs: %s", text)
	}
	_, patient, text := admin.operateAgent(ft.J{"timeout": 300}, "0:127.0.0.1")
	if patient == "" {
		t.Fatal(text)
	}
	if agent.Sessions() != sessions {
		t.Error("it restarted in the middle of an operation")
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Await(work) {
		if e.Code != 0 {
			t.Errorf("the operation that it waited for: %+v", e)
		}
	}
	if got := admin.stateOfTask(patient); got.State != "successed" {
		t.Errorf("%+v", got)
	}

	// With force, the operation is interrupted, and says so.
	if err := os.Remove(release); err != nil {
		t.Fatal(err)
	}
	work = operate(reload)
	ft.Until(t, time.Minute, func() string { return "no reload" }, func() bool { return slow.Count("reload") == 2 })
	if text := restart(ft.J{"force": true}); !strings.Contains(text, "the agent restarted and runs version") {
		t.Errorf("with force: %s", text)
	}
	for _, e := range s.Await(work) {
		if e.Code != 65535 || !strings.Contains(e.Msg, "interrupted") {
			t.Errorf("the operation that was interrupted: %+v", e)
		}
	}
	kept.check(t, s, 1)
	if slow.PID() != pid || slow.Count("start") != 1 {
		t.Errorf("the process had pid %d and has %d; calls: %v", pid, slow.PID(), slow.Calls())
	}
}

// TestTT17RestartNeedsItsRight: operators, admins of a part of the fleet and grants for other hosts restart nothing, by no door.
func TestTT17RestartNeedsItsRight(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	for code, c := range map[string]struct {
		grant ft.J
		want  string
	}{
		"gzrestoper": {ft.J{"role": "operator", "hosts": "any", "accounts": []string{"*", "root"}}, "may not restart agents"},
		"gzrestview": {ft.J{"role": "viewer", "hosts": "any"}, "may not restart agents"},
		"gzrestbiz":  {ft.J{"role": "admin", "businesses": []int{2}, "accounts": []string{"*"}}, "may not restart agents"},
		"gzrestns":   {ft.J{"role": "admin", "namespaces": []string{"*"}, "hosts": "any", "accounts": []string{"*"}}, "may not restart agents"},
		"gzrestlist": {ft.J{"role": "operator", "namespaces": []string{"gozzard-agent", "*"}, "hosts": "any",
			"actions": []string{"restart-agent"}}, "may not restart agents"},
		"gzrestnet": {ft.J{"role": "operator", "hosts": "listed", "nets": []string{"127.0.0.9/32"}, "actions": []string{"restart-agent"}},
			"is not in the fleet"},
	} {
		app := newTenant(t, s, code, c.grant)
		_, task, text := app.operateAgent(ft.J{"force": true}, "0:127.0.0.1")
		if task != "" {
			text = app.settled(task)
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%s by operate_agent: %s", code, text)
		}
		text = app.operate(http.MethodPost, "/api/v1/hosts/restart", ft.J{"hosts": []ft.J{{"ip": "127.0.0.1", "cloud": 0}}, "force": true})
		if !strings.Contains(text, c.want) {
			t.Errorf("%s by the native API: %s", code, text)
		}
		text = app.operate(http.MethodPost, "/api/v1/operations", ft.J{"action": "restart-agent", "namespace": "gozzard-agent",
			"names": []string{"agent:restart"}, "hosts": []ft.J{{"ip": "127.0.0.1", "cloud": 0}}})
		if !strings.Contains(text, "is not an action") {
			t.Errorf("%s as an operation: %s", code, text)
		}
	}
	if agent.Sessions() != 1 {
		t.Errorf("the agent opened %d sessions", agent.Sessions())
	}

	// Other types are rejected, and say what to do.
	admin := &tenant{API: s.API, t: t}
	for _, kind := range []int{0, 2, 3} {
		if _, task, text := admin.operateAgent(ft.J{"type": kind}, "0:127.0.0.1"); task != "" || !strings.Contains(text, "must be 1 (restart)") {
			t.Errorf("type %d: %s", kind, text)
		}
	}
}
