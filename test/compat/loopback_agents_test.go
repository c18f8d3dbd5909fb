//go:build linux

package compat_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func (l *loopback) agentDir(n int) string { return filepath.Join(l.dir, fmt.Sprint("agent", n)) }

func (l *loopback) agentID(n int) string {
	return strings.TrimSpace(read(l.t, filepath.Join(l.agentDir(n), "agent-id")))
}

// startAgents starts the three agents on their old state folders. What the first two have on record keeps its meaning, with
// and without an account. For the third one an operation waits whose definition has no account: the owner of that host does
// what docs/upgrade.md says.
func (l *loopback) startAgents(t *testing.T) map[int]*daemon {
	t.Helper()
	own, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.agentDir(3), "policy.yaml")
	if err := os.WriteFile(path, []byte(read(t, path)+"\ndefault_user: "+own.Username+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	agents := map[int]*daemon{}
	for n := 1; n <= 3; n++ {
		agents[n] = start(t, fmt.Sprint("agent", n), "agent", "--data", l.agentDir(n), "--server", l.server.agents,
			"--ip", fmt.Sprint("127.0.0.", n), "--secret-file", filepath.Join(l.data, "join.secret"))
	}
	return agents
}

// alone asks each agent over its socket: its id, its journal, the server key that it obeys, its processes.
func (l *loopback) alone() {
	g := newGolden(l.t, l.version, "loopback-agents")
	for n := 1; n <= 3; n++ {
		var status struct {
			Agent   string          `json:"agent"`
			Key     json.RawMessage `json:"server_key"`
			Journal struct {
				ID string `json:"id"`
			} `json:"journal"`
		}
		l.fromAgent(n, "status", &status)
		var list struct {
			Processes []struct {
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
				Wanted    string `json:"wanted"`
				Managed   bool   `json:"managed"`
			} `json:"processes"`
		}
		l.fromAgent(n, "ps", &list)
		b, err := json.Marshal(map[string]any{"status": status, "ps": list})
		if err != nil {
			l.t.Fatal(err)
		}
		g.document(fmt.Sprint("agent ", n), 0, b)
	}

	g.compare()

	running := []string{"web", "front", "hosted", "kept", "slow", "late1"}
	wait(l.t, "the agents have started what must run", func() bool {
		return !slices.ContainsFunc(running, func(name string) bool { return pidOf(name) == 0 })
	})
}

// fromAgent asks an agent over its socket as soon as it answers.
func (l *loopback) fromAgent(n int, command string, out any) {
	l.t.Helper()
	wait(l.t, fmt.Sprintf("agent %d answers", n), func() bool {
		text, code := run(l.t, nil, "agent", command, "--data", l.agentDir(n), "-o", "json")
		return code == 0 && json.Unmarshal([]byte(text), out) == nil
	})
}

// agentsOnline waits for the agents, which have their old names.
func (l *loopback) agentsOnline() {
	for n := 1; n <= 3; n++ {
		ip, id := fmt.Sprint("127.0.0.", n), l.agentID(n)
		l.until(ip+" is online", func() bool { return l.online()[ip] == id })
	}
}

// actsGoOn checks that the act logs of the agents continue those of the fixture.
func (l *loopback) actsGoOn(before map[int]string) {
	for n, then := range before {
		now := read(l.t, filepath.Join(l.agentDir(n), "acts.log"))
		if !strings.HasPrefix(now, then) || n == 1 && len(now) == len(then) {
			l.t.Errorf("acts.log of agent %d was not continued: it had %d bytes, now %d", n, len(then), len(now))
		}
	}
}

// interrupted looks at the two operations that were open: the journal of 127.0.0.2 has the beginning of a stop
// without its end, and 127.0.0.3 has never heard of its start.
func (l *loopback) interrupted() {
	g := newGolden(l.t, l.version, "loopback-verdicts")
	for _, name := range []string{"interrupted", "waiting"} {
		task := strings.TrimSpace(read(l.t, filepath.Join(l.data, name+".task")))
		l.verdict(task)
		l.ask(g, gse+"get_proc_operate_result/", `{"task_id":"`+task+`"}`)
		status, answer := l.call(l.admin, http.MethodGet, "/api/v1/tasks/"+url.PathEscape(task), "")
		g.document(name+" task", status, answer)
	}
	g.compare()
}

// kept checks that the agents keep every process in its wanted state.
func (l *loopback) kept() {
	running := []string{"web@127.0.0.1", "front@127.0.0.1", "hosted@127.0.0.1", "kept@127.0.0.2", "slow@127.0.0.2",
		"late1@127.0.0.3", "late2@127.0.0.3"}
	idle := []string{"stopped@127.0.0.1", "loose@127.0.0.1", "killed@127.0.0.1", "registered@127.0.0.1",
		"broken@127.0.0.1"}

	l.until("the processes run that must", func() bool {
		now := l.processes("demo")
		return !slices.ContainsFunc(running, func(name string) bool {
			p := now[name]
			return p.State != "running" || !p.Managed || p.Stale || p.PID != pidOf(strings.Split(name, "@")[0])
		})
	})

	now := l.processes("demo")
	for _, name := range idle {
		p, known := now[name]
		if !known || p.State != "stopped" || p.Managed || p.Stale {
			l.t.Errorf("%s: %+v", name, p)
		}
		if file := filepath.Join(runDir, strings.Split(name, "@")[0]+".pid"); exists(file) {
			l.t.Errorf("%s was started", name)
		}
	}

	if p := now["tick@127.0.0.1"]; !p.Managed || p.Stale {
		l.t.Errorf("the periodic process: %+v", p)
	}
	if p, known := now["gone@127.0.0.1"]; known {
		l.t.Errorf("%+v was unregistered and is known", p)
	}
	if exists(filepath.Join(runDir, "once.calls")) {
		l.t.Error("the one-shot process ran again")
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// works operates processes by their old definitions, under the old policy.
func (l *loopback) works() {
	before := pidOf("web")

	for _, step := range []struct {
		name, op string
		code     int
	}{
		{"web", "7", 0}, {"web", "1", 0}, {"web", "1", 829}, {"web", "0", 0}, {"web", "0", 828},
		{"web", "8", 65535}, // the policy of the host does not allow a reload
		{"stopped", "0", 0}, {"broken", "0", 65535}, {"loose", "3", 0}, {"registered", "9", 829},
	} {
		if e := l.operate(step.name, "127.0.0.1", step.op); e.Code != step.code {
			l.t.Errorf("op_type %s on %s: %+v, want %d", step.op, step.name, e, step.code)
		}
	}

	l.until("what is managed was started", func() bool { return pidOf("loose") > 0 }) // the verdict does not wait for that
	if now := pidOf("web"); now == 0 || now == before || pidOf("stopped") == 0 {
		l.t.Errorf("web had pid %d, now %v", before, pids(l.t))
	}
}

// business runs a job on the old business. Its processes are root's.
func (l *loopback) business() {
	if os.Getuid() != 0 {
		l.t.Skip("the processes of the business run as root, and this test does not")
	}

	l.until("nginx runs", func() bool { return pidOf("nginx-1") > 0 && pidOf("nginx-2") > 0 && pidOf("nginx2-1") > 0 })

	if pidOf("cache-1") > 0 {
		l.t.Error("cache was stopped by a job and runs")
	}

	var made struct {
		Data struct {
			Job int `json:"job_id"`
		} `json:"data"`
	}
	_, answer := l.call(l.admin, http.MethodPost, gsekit+"job/create_job/", `{"bk_biz_id":2,"job_object":"process",`+
		`"job_action":"start","expression_scope":{"bk_set_env":"3","bk_set_name":"front","bk_process_id":"47"}}`)
	if err := json.Unmarshal(answer, &made); err != nil || made.Data.Job == 0 {
		l.t.Fatalf("create_job: %v in %s", err, answer)
	}

	l.until("the job has succeeded", func() bool {
		body := fmt.Sprintf(`{"bk_biz_id":2,"job_id":%d}`, made.Data.Job)
		_, answer = l.call(l.admin, http.MethodPost, gsekit+"job/job_status/", body)
		return strings.Contains(string(answer), `"job_action":"start","status":"succeeded"`)
	})

	if made.Data.Job != 1+len(lines(l.t, filepath.Join(l.data, "jobs.list"))) || pidOf("cache-1") == 0 {
		l.t.Errorf("job %d, pids %v", made.Data.Job, pids(l.t))
	}
}
