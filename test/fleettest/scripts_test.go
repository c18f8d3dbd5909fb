//go:build linux

package fleettest_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// scriptRules allow scripts of nobody.
const scriptRules = "users: [nobody, daemon]\ndeny_uids: \"\"\nscripts: {accounts: [nobody], max_seconds: 60}\n"

// step is an atomic task of a script.
func step(id int, command string, seconds int) ft.J {
	return ft.J{"atomic_task_id": id, "command": command, "timeout_seconds": seconds}
}

// script is a request in the form of bk-bscp and nodemgr that runs a text on host 1.
func script(user, text string, more ft.J) ft.J {
	body := ft.J{
		"agents":                 []ft.J{{"bk_agent_id": "0:127.0.0.1", "bk_container_id": "", "user": user, "pwd": ""}},
		"scripts":                []ft.J{{"script_name": "run.sh", "script_store_dir": "/tmp/gozzard-scripts/", "script_content": text}},
		"atomic_tasks":           []ft.J{step(0, "/tmp/gozzard-scripts/run.sh", 30)},
		"atomic_tasks_relations": []ft.J{{"atomic_task_id": 0, "atomic_task_id_idx": []int{}}},
	}
	for k, v := range more {
		body[k] = v
	}
	return body
}

// stepRow is the result of a step.
type stepRow struct {
	Agent     string `json:"bk_agent_id"`
	ID        int    `json:"atomic_task_id"`
	Status    int    `json:"status"`
	ErrorCode int    `json:"error_code"`
	ErrorMsg  string `json:"error_msg"`
	Exit      int    `json:"script_exit_code"`
	Screen    string `json:"screen"`
	Start     int64  `json:"start_time"`
	End       int64  `json:"end_time"`
}

const scriptPath = "/api/v2/task/extensions/"

// beginScript sends a script and returns its task, or the refusal of the whole request.
func (c *tenant) beginScript(body ft.J) (task, refusal string) {
	c.t.Helper()
	var made struct {
		Data struct {
			Result struct {
				TaskID string `json:"task_id"`
			} `json:"result"`
		} `json:"data"`
	}
	_, text := c.native(http.MethodPost, "/api/bk-gse/prod"+scriptPath+"async_execute_script/", body, &made)
	return made.Data.Result.TaskID, text
}

// steps polls a script once.
func (c *tenant) steps(task string, more ft.J) (rows []stepRow, text string) {
	c.t.Helper()
	body := ft.J{"task_id": task}
	for k, v := range more {
		body[k] = v
	}
	var got struct {
		Data struct {
			Result []stepRow `json:"result"`
		} `json:"data"`
	}
	_, text = c.native(http.MethodPost, scriptPath+"get_execute_script_result", body, &got)
	return got.Data.Result, text
}

// ended waits for the end of a script as bk-bscp does: until no row has status 1 without an error.
func (c *tenant) ended(task string) (rows []stepRow) {
	c.t.Helper()
	ft.Until(c.t, time.Minute, func() string { return fmt.Sprintf("the script has not ended: %+v", rows) }, func() bool {
		if rows, _ = c.steps(task, nil); len(rows) == 0 {
			return false
		}
		for _, r := range rows {
			if r.ErrorCode == 0 && r.Status == 1 {
				return false
			}
		}
		return true
	})
	return rows
}

// run runs a script to its end. A request that is refused as a whole has a row with the refusal.
func (c *tenant) run(body ft.J) []stepRow {
	c.t.Helper()
	task, refusal := c.beginScript(body)
	if task == "" {
		return []stepRow{{ErrorCode: -1, ErrorMsg: refusal}}
	}
	return c.ended(task)
}

// taskState is the answer of get_task_state as text.
func (c *tenant) taskState(task string) string {
	c.t.Helper()
	_, text := c.native(http.MethodPost, "/api/v2/task/get_task_state", ft.J{"task_id": task}, nil)
	return text
}

// scripter is an app with the right to run scripts as nobody.
func scripter(t *testing.T, s *ft.Server, code string) *tenant {
	t.Helper()
	return newTenant(t, s, code, ft.J{"role": "operator", "hosts": "any", "actions": []string{"script"},
		"accounts": []string{"nobody"}})
}

// scriptAgent starts agent 1 with a policy.
func scriptAgent(t *testing.T, s *ft.Server, rules string) *ft.Program {
	t.Helper()
	state := t.TempDir()
	if err := os.WriteFile(state+"/policy.yaml", []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.StartAgentIn(t, 1, state, "")
}

// TestScripts runs scripts through the API of GSE, with an agent of root and a policy.
func TestScripts(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	scriptAgent(t, s, scriptRules)
	c := scripter(t, s, "scripts")

	// A text with an argument, as the account, in memory only.
	task, refusal := c.beginScript(script("nobody", "#!/bin/sh\nid -un; echo \"got $1\"; ls -d /tmp/gozzard-scripts; pwd",
		ft.J{"atomic_tasks": []ft.J{step(0, "/tmp/gozzard-scripts/run.sh 'a b'", 30)}}))
	if task == "" {
		t.Fatal(refusal)
	}
	rows := c.ended(task)
	if len(rows) != 1 || rows[0].Status != 2 || rows[0].ErrorCode != 0 || rows[0].Exit != 0 || rows[0].Agent != "0:127.0.0.1" ||
		!strings.HasPrefix(rows[0].Screen, "nobody\ngot a b\n") || !strings.Contains(rows[0].Screen, "No such file") ||
		!strings.HasSuffix(rows[0].Screen, "\n/\n") || rows[0].End < rows[0].Start || rows[0].Start == 0 {
		t.Errorf("%+v", rows)
	}
	if text := c.taskState(task); !strings.Contains(text, `"state":"successed","successed_agents":["0:127.0.0.1"]`) {
		t.Errorf("%s", text)
	}

	// A part of the output, and a host that is not in the task.
	ask := func(agent string, offset, limit int) ft.J {
		return ft.J{"agent_tasks": []ft.J{{"bk_agent_id": agent, "bk_container_id": "",
			"atomic_tasks": []ft.J{{"atomic_task_id": 0, "offset": offset, "limit": limit}}}}}
	}
	if rows, _ := c.steps(task, ask("0:127.0.0.1", 7, 3)); len(rows) != 1 || rows[0].Screen != "got" {
		t.Errorf("%+v", rows)
	}
	if rows, _ := c.steps(task, ask("0:127.0.0.9", 0, 0)); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}

	// Steps run in the order of their relations; what follows a failed one does not run.
	rows = c.run(script("nobody", "exit 3", ft.J{
		"atomic_tasks": []ft.J{step(2, "echo two", 20), step(0, "echo zero", 20), step(1, "sh /tmp/gozzard-scripts/run.sh", 20)},
		"atomic_tasks_relations": []ft.J{{"atomic_task_id": 2, "atomic_task_id_idx": []int{1}},
			{"atomic_task_id": 1, "atomic_task_id_idx": []int{0}}}}))
	if len(rows) != 3 || rows[0].ID != 0 || rows[0].Screen != "zero\n" || rows[1].ID != 1 || rows[1].Exit != 3 ||
		rows[1].Status != 5 || rows[1].ErrorCode == 0 || rows[2].ID != 2 || rows[2].Screen != "" || rows[2].Status != 5 ||
		!strings.Contains(rows[2].ErrorMsg, "step 1 did not succeed") {
		t.Errorf("%+v", rows)
	}

	// Much output: its start and its end.
	rows = c.run(script("nobody", "#!/bin/sh\necho first; i=0; while [ $i -lt 400000 ]; do echo $i 好; i=$((i+1)); done; echo last", nil))
	if out := rows[0].Screen; rows[0].Status != 2 || !strings.HasPrefix(out, "first\n0 好\n") || !strings.HasSuffix(out, "好\nlast\n") ||
		len(out) > gozzard.MaxScriptOutput || len(out) < gozzard.MaxScriptOutput-100 || !strings.Contains(rows[0].ErrorMsg, "left out") {
		t.Errorf("%d bytes, %q, status %d: %.40q … %q", len(out), rows[0].ErrorMsg, rows[0].Status, out, out[max(0, len(out)-40):])
	}
}

// marker is a text that no other process has in its command line.
func marker(t *testing.T) string { return fmt.Sprintf("7%d%d", os.Getpid(), len(t.Name())) + "1" }

// TestTT15ScriptTimeout: the time limit ends everything that a script started, whatever it does to be left alone.
func TestTT15ScriptTimeout(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	scriptAgent(t, s, scriptRules)
	c := scripter(t, s, "scripts-time")
	mark := marker(t)
	task, _ := c.beginScript(script("nobody", "#!/bin/sh\ntrap '' TERM HUP INT\nsetsid sleep "+mark+" &\nnohup sleep "+mark+
		" &\necho started\nsleep "+mark+"\nsleep "+mark, ft.J{"atomic_tasks": []ft.J{step(0, "/tmp/gozzard-scripts/run.sh", 1)}}))
	rows := c.ended(task)
	if rows[0].Status != 3 || rows[0].ErrorCode == 0 || rows[0].Screen != "started\n" || !strings.Contains(rows[0].ErrorMsg, "1 seconds") {
		t.Errorf("%+v", rows)
	}
	if n := ft.CountArgs(t, mark); n != 0 {
		t.Errorf("%d processes still run", n)
	}
	if text := c.taskState(task); !strings.Contains(text, `"state":"timeout"`) {
		t.Errorf("%s", text)
	}

	// What a script leaves behind ends with it.
	if rows := c.run(script("nobody", "#!/bin/sh\nsetsid sleep "+mark+" >/dev/null 2>&1 &\necho ok", nil)); rows[0].Status != 2 {
		t.Errorf("%+v", rows)
	}
	if n := ft.CountArgs(t, mark); n != 0 {
		t.Errorf("%d processes still run", n)
	}
}

// TestTT15ScriptOnce: a script whose agent is killed in the middle ran once, is ended, and its outcome is said not to be known.
func TestTT15ScriptOnce(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := scriptAgent(t, s, scriptRules)
	c := scripter(t, s, "scripts-once")
	dir, mark := fileFolder(t, "nobody"), marker(t)
	for round := range 3 {
		task, refusal := c.beginScript(script("nobody", fmt.Sprintf("#!/bin/sh\necho x >>%s/runs\nsleep %s\necho end >>%s/runs",
			dir, mark, dir), nil))
		if task == "" {
			t.Fatal(refusal)
		}
		want := strings.Repeat("x\n", round+1)
		runs := func() string { b, _ := os.ReadFile(dir + "/runs"); return string(b) }
		ft.Until(t, time.Minute, func() string { return "the script does not run" }, func() bool { return runs() == want })
		agent.Kill(syscall.SIGKILL)
		s.AgainOnline(t, agent)
		rows := c.ended(task)
		if rows[0].Status != 6 || rows[0].ErrorCode == 0 || !strings.Contains(rows[0].ErrorMsg, "at most once") {
			t.Errorf("%+v", rows)
		}
		if n := ft.CountArgs(t, mark); n != 0 || runs() != want {
			t.Errorf("%d processes still run; %q", n, runs())
		}
		if text := c.taskState(task); !strings.Contains(text, `"restarted_agents":["0:127.0.0.1"]`) {
			t.Errorf("%s", text)
		}
	}
}

// TestTT15ScriptsOfOthers tries to get around the right to run scripts and around the policy of the host.
func TestTT15ScriptsOfOthers(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	scriptAgent(t, s, scriptRules)
	dir := fileFolder(t, "nobody")
	evil := script("nobody", "#!/bin/sh\ntouch "+dir+"/evil", nil)
	as := func(account string, more ft.J) ft.J { return script(account, "#!/bin/sh\ntouch "+dir+"/evil", more) }
	refused := func(name string, rows []stepRow, want string) {
		t.Helper()
		if len(rows) == 0 || rows[0].ErrorCode == 0 || rows[0].Status == 2 || !strings.Contains(rows[0].ErrorMsg, want) {
			t.Errorf("%s: %+v", name, rows)
		}
	}

	// No role has the right: it must be listed. Lists of other things do not help.
	admin := &tenant{API: s.API, t: t}
	refused("admin of everything", admin.run(evil), "may not script")
	grant := func(more ft.J) ft.J {
		g := ft.J{"role": "operator", "hosts": "any", "actions": []string{"script"}, "accounts": []string{"nobody"}}
		for k, v := range more {
			if g[k] = v; v == nil {
				delete(g, k)
			}
		}
		return g
	}
	for name, x := range map[string]struct {
		grant ft.J
		want  string
	}{
		"operator":       {grant(ft.J{"actions": nil}), "may not script"},
		"starter":        {grant(ft.J{"actions": []string{"start", "register", "configure"}}), "may not script"},
		"viewer":         {grant(ft.J{"role": "viewer", "actions": nil, "accounts": nil}), "may not script"},
		"business":       {grant(ft.J{"namespaces": []string{"GSEKIT_BIZ_9"}}), "may not script"},
		"other account":  {grant(ft.J{"accounts": []string{"daemon"}}), "as account nobody"},
		"other networks": {grant(ft.J{"hosts": "listed", "nets": []string{"10.0.0.0/8"}}), "is not in the fleet"},
	} {
		refused(name, newTenant(t, s, "scripts-"+strings.ReplaceAll(name, " ", "-"), x.grant).run(evil), x.want)
	}

	// An admin with the right for one account may not use another one.
	mixed := newTenant(t, s, "scripts-mixed", ft.J{"role": "admin", "hosts": "any"}, grant(ft.J{"accounts": []string{"daemon"}}))
	refused("admin with another account", mixed.run(evil), "as account nobody")

	// The policy of the host holds everybody.
	every := newTenant(t, s, "scripts-every", grant(ft.J{"accounts": []string{"*", "root"}}))
	for name, x := range map[string]struct {
		body ft.J
		want string
	}{
		"not in scripts": {as("daemon", nil), "accounts do not include this account"},
		"root":           {as("root", nil), "allow_root"},
		"root by number": {as("0", nil), "not allowed by local policy"},
		"unknown":        {as("nosuchaccount", nil), "not allowed by local policy"},
		"too long":       {as("nobody", ft.J{"atomic_tasks": []ft.J{step(0, "true", 40), step(1, "true", 40)}}), "its max_seconds is 60"},
		"too large":      {script("nobody", strings.Repeat("#", 64<<10), nil), "its max_size is 65536"},
		"much too large": {script("nobody", strings.Repeat("#", 257<<10), nil), "at most 262144"},
		"container": {as("nobody", ft.J{"agents": []ft.J{{"bk_agent_id": "0:127.0.0.1", "bk_container_id": "abc", "user": "nobody"}}}),
			"containers cannot be reached"},
		"no account": {as("", nil), "user"},
		"folder up":  {as("nobody", ft.J{"scripts": []ft.J{{"script_name": "../x", "script_store_dir": "/tmp", "script_content": "x"}}}), "without a folder"},
		"cycle": {as("nobody", ft.J{"atomic_tasks_relations": []ft.J{{"atomic_task_id": 0, "atomic_task_id_idx": []int{0}}}}),
			"wait for each other"},
		"no steps": {as("nobody", ft.J{"atomic_tasks": []ft.J{}}), "at least one task"},
		"twice": {as("nobody", ft.J{"agents": []ft.J{{"bk_agent_id": "0:127.0.0.1", "user": "nobody"},
			{"bk_agent_id": "0:127.0.0.1", "user": "daemon"}}}), "in the list before"},
	} {
		refused(name, every.run(x.body), x.want)
	}

	// A script for a container does not run on its host when the task is repeated.
	inside, _ := every.beginScript(as("nobody", ft.J{"agents": []ft.J{{"bk_agent_id": "0:127.0.0.1", "bk_container_id": "abc",
		"user": "nobody"}}}))
	every.ended(inside)
	if status, text := every.native(http.MethodPost, "/api/v1/tasks/"+inside+"/retry", ft.J{}, nil); status >= 300 {
		t.Errorf("retry of a script for a container: %d %s", status, text)
	}

	// Other doors do not run scripts, and others do not see them.
	if status, text := every.native(http.MethodPost, "/api/v1/operations", ft.J{"action": "script", "namespace": "shop", "name": "x",
		"hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}}, nil); status < 400 {
		t.Errorf("%d %s", status, text)
	}
	task, _ := every.beginScript(script("nobody", "#!/bin/sh\necho secret", nil))
	if rows := every.ended(task); rows[0].Screen != "secret\n" {
		t.Errorf("%+v", rows)
	}
	other := scripter(t, s, "scripts-other")
	if rows, text := other.steps(task, nil); len(rows) != 0 || strings.Contains(text, "secret") || !strings.Contains(text, "no such task") {
		t.Errorf("%s", text)
	}
	if text := other.taskState(task); !strings.Contains(text, "no such task") {
		t.Errorf("%s", text)
	}

	// Nothing ran.
	if _, err := os.Lstat(dir + "/evil"); err == nil {
		t.Error("a refused script ran")
	}
}

// TestScriptsOffByDefault: without the setting in the policy of the host no script runs, and the text says what to write.
func TestScriptsOffByDefault(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	scriptAgent(t, s, "users: [nobody]\ndeny_uids: \"\"\n")
	c := scripter(t, s, "scripts-off")
	rows := c.run(script("nobody", "true", nil))
	if rows[0].ErrorCode == 0 || !strings.Contains(rows[0].ErrorMsg, "not allowed by local policy (scripts in ") ||
		!strings.Contains(rows[0].ErrorMsg, `scripts: {accounts: ["nobody"]}`) {
		t.Errorf("%+v", rows)
	}
}
