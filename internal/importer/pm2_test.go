package importer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/importer"
)

const ecosystem = `apps:
  - name: api
    script: ./api.js
    args: --port 8080 --name "two words"
    node_args: [--max-old-space-size=200]
    env: {NODE_ENV: development}
    env_production: {NODE_ENV: production}
    max_memory_restart: 300M
    kill_timeout: 5000
    restart_delay: 1500
    stop_exit_codes: [0]
    watch: true
  - name: jobs
    script: worker.py
    interpreter: /usr/bin/python3
    exec_mode: fork
    instances: 2
    autorestart: false
  - name: many
    script: server.js
    instances: max
  - name: tool
    script: /opt/tool/tool
    interpreter: none
    cwd: /opt/tool
    uid: tool
    cron_restart: 0 3 * * *
    colour: red
`

func TestPM2Ecosystem(t *testing.T) {
	w := disk(nil)
	w.User, w.Profile = "app", "production"
	r, err := importer.PM2([]importer.File{{Name: "/srv/app/ecosystem.yaml", Text: []byte(ecosystem)}}, w)
	if err != nil {
		t.Fatal(err)
	}
	const want = `# app api of /srv/app/ecosystem.yaml
name: api
command: [node, --max-old-space-size=200, /srv/app/api.js, --port, "8080", --name, "two words"]
folder: /srv/app
user: app
env: {NODE_ENV: production}
stop_signal: INT
stop_timeout: 5s
restart: {policy: on-failure, delay: 2s}
memory: 300M
limits: {act: restart}
---
# app jobs of /srv/app/ecosystem.yaml
name: jobs-0
command: [/usr/bin/python3, /srv/app/worker.py]
folder: /srv/app
user: app
env: {NODE_APP_INSTANCE: "0"}
stop_signal: INT
restart: never
---
# app jobs of /srv/app/ecosystem.yaml
name: jobs-1
command: [/usr/bin/python3, /srv/app/worker.py]
folder: /srv/app
user: app
env: {NODE_APP_INSTANCE: "1"}
stop_signal: INT
restart: never
---
# app tool of /srv/app/ecosystem.yaml
name: tool
command: [/opt/tool/tool]
folder: /opt/tool
user: tool
stop_signal: INT
`
	if diff := cmp.Diff(want, string(importer.WriteYAML(r.Processes))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"check api watch", "left out many exec_mode", "check tool cron_restart", "check tool colour"},
		notes(r, importer.LeftOut, importer.Security, importer.Check)); diff != "" {
		t.Error(diff)
	}
}

const jlist = `[{"pid":4711,"name":"api","pm2_env":{"namespace":"shop","pm_exec_path":"/srv/app/api.js","pm_cwd":"/srv/app",
"exec_interpreter":"node","exec_mode":"fork_mode","instances":1,"kill_timeout":1600,"username":"app","args":["--port","80"],
"node_args":[],"autorestart":true,"watch":false,"env":{"PATH":"/usr/bin:/bin","HOME":"/home/app","MODE":"prod","api":"{}","unique_id":"x"},
"MODE":"prod","pm_id":0,"unique_id":"x"},"pm_id":0,"monit":{"memory":1,"cpu":0}}]`

func TestPM2List(t *testing.T) {
	r, err := importer.PM2([]importer.File{{Name: "-", Text: []byte(jlist)}}, disk(nil))
	if err != nil {
		t.Fatal(err)
	}
	const want = `# app api of -
namespace: shop
name: api
command: [node, /srv/app/api.js, --port, "80"]
folder: /srv/app
user: app
env: {MODE: prod}
stop_signal: INT
`
	if diff := cmp.Diff(want, string(importer.WriteYAML(r.Processes))); diff != "" {
		t.Error(diff)
	}
	if p := r.Processes[0]; p.PID != 4711 || p.Source != "0" {
		t.Errorf("pid %d, source %q", p.PID, p.Source)
	}
}

func TestPM2Unreadable(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"/a/ecosystem.config.js", "module.exports = {}", `node -p 'JSON.stringify(require("/a/ecosystem.config.js"))'`},
		{"/a/e.json", `{"apps": [{"name": "x",}`, "/a/e.json:1: "},
		{"/a/e.json", `{"apps": "x"}`, "must be a list of apps"},
		{"/a/e.json", `{"apps": ["x"]}`, "an app must be a mapping"},
		{"/a/e.json", `{"apps": [{"name": "x"}]}`, `the app "x" has no script`},
		{"/a/e.json", `{"apps": [{"script": "x", "instances": 1e9}]}`, "from 1 to 1000"},
		{"/a/e.json", "{\"apps\": [{\"script\": \"x\",\n\"kill_timeout\": \"long\"}]}", "/a/e.json:2: kill_timeout must be"},
		{"/a/e.json", `{"apps": [{"script": "x", "max_memory_restart": "much"}]}`, "must be a size"},
	} {
		r, err := importer.PM2([]importer.File{{Name: c.name, Text: []byte(c.text)}}, disk(nil))
		if err == nil || !strings.Contains(err.Error(), c.want) || r != nil {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}
