//go:build linux

package fleettest_test

import (
	"fmt"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestD16TemplatesOfCommands: commands of a process are rendered as GSEKit renders them. Arithmetic and lines of control
// work. One with an unknown name fails with its line, and nothing of it reaches a shell; so does one that wants to read a
// file of the server.
func TestD16TemplatesOfCommands(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	root := t.TempDir()
	commands := []struct {
		start string
		code  int
		call  string // what start.sh is called with
		says  string
	}{
		{start: `./start.sh mk${8000 + LocalInstID}`, call: "start mk8001"},
		{start: `% if local_inst_id == 1:\n./start.sh first\n% else:\n./start.sh rest\n% endif\n`, call: "start first"},
		{start: `./start.sh ${'%03d' % inst_id} ${FuncID.upper()}`, call: "start 001 GZMAKO2"},
		{start: `./start.sh mk${nope}`, code: 4101004, says: "./start.sh mk${nope}"},
		{start: `./start.sh ${open('/etc/passwd').read()}`, code: 4101004, says: "/etc/passwd"},
	}

	var places []string
	var daemons []*ft.Daemon
	for i, c := range commands {
		fx := ft.NewDaemon(t, root, fmt.Sprintf("gzmako%d", i))
		fx.Script("start.sh", "echo start $* >> calls\nsetsid ./"+fx.Name+" 1000000 </dev/null >/dev/null 2>&1 &\necho $! > "+fx.PIDFile())
		daemons = append(daemons, fx)
		places = append(places, strings.Replace(place(i+1, 1, fmt.Sprintf("place%d", i), i+1, fx, ""),
			"start_cmd: ./start.sh", `start_cmd: "`+c.start+`"`, 1))
	}
	applyTopology(t, d.API, 2, fmt.Sprintf("biz: 2\nname: 模板\nclouds: [{id: 0, name: default area}]\nsets:\n"+
		"  - {id: 5, name: s, env: 3, modules: [{id: 21, name: m, instances: [\n      %s]}]}\n", strings.Join(places, ",\n      ")))
	id, job := runJob(t, d.API, kit+"job/create_job/", ft.J{"job_object": "process", "job_action": "start",
		"scope": ft.J{"bk_set_env": "3"}})
	if len(job.Tasks) != len(commands) {
		t.Fatalf("%+v", job)
	}

	for _, task := range job.Tasks {
		c, fx := commands[task.Process-1], daemons[task.Process-1]
		if task.Code != c.code {
			t.Errorf("%s: err_code %d, want %d", c.start, task.Code, c.code)
		}
		if calls := strings.Join(fx.Calls(), " "); calls != c.call || (fx.PID() > 0) != (c.call != "") {
			t.Errorf("%s: it was called as %q", c.start, calls)
		}
	}
	var list struct{ List []map[string]any }
	kitCall(t, d.API, fmt.Sprintf("/api/2/job/%d/job_task/", id), ft.J{"page": 1, "pagesize": 10}, &list)
	text := fmt.Sprint(list.List)
	for _, c := range commands {
		if c.says != "" && !strings.Contains(text, c.says) {
			t.Errorf("no task says %q: %s", c.says, text)
		}
	}
}
