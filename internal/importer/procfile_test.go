package importer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/importer"
)

func TestProcfile(t *testing.T) {
	w := disk(map[string]string{"/srv/app/.env": "PORT=3000\nKEY=1\n"})
	w.User, w.Namespace = "app", "shop"
	const text = `# three of them
web: python3 -m http.server $PORT
worker: MODE="two words" ./bin/worker --fast

clock: cd jobs && ./clock
release: ./migrate
`
	r, err := importer.Procfile([]importer.File{{Name: "/srv/app/Procfile", Text: []byte(text)}}, w)
	if err != nil {
		t.Fatal(err)
	}
	const want = `# web of /srv/app/Procfile
namespace: shop
name: web
command: "exec python3 -m http.server $PORT"
folder: /srv/app
proc_name: python3
user: app
env: {PORT: "3000"}
env_file: /srv/app/.env
---
# worker of /srv/app/Procfile
namespace: shop
name: worker
command: "MODE='two words' exec ./bin/worker --fast"
folder: /srv/app
proc_name: worker
user: app
env: {PORT: "3100"}
env_file: /srv/app/.env
---
# clock of /srv/app/Procfile
namespace: shop
name: clock
command: "exec sh -c 'cd jobs && ./clock'"
folder: /srv/app
proc_name: sh
user: app
env: {PORT: "3200"}
env_file: /srv/app/.env
`
	if diff := cmp.Diff(want, string(importer.WriteYAML(r.Processes))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"left out release release"}, notes(r, importer.LeftOut, importer.Check)); diff != "" {
		t.Error(diff)
	}
	if _, err := importer.Procfile([]importer.File{{Name: "/Procfile", Text: []byte("web: a\nnonsense\n")}}, w); err == nil ||
		!strings.Contains(err.Error(), "/Procfile:2: ") {
		t.Error(err)
	}
}

func TestProcinfo(t *testing.T) {
	const text = `{"proc": [
{"procName": "nginx", "setupPath": "/data/nginx", "pidPath": "/data/nginx/nginx.pid", "contact": "shop", "valuekey": "shop:web_1",
 "startCmd": "./nginx.sh start", "stopCmd": "./nginx.sh stop", "healthCmd": "./check.sh", "type": 1, "cpulmt": 30, "memlmt": 10.5,
 "user": "www", "userPwd": ":::www@@@", "startCheckBeginTime": 9, "opTimeOut": 120, "operateType": 0, "timestamp": 1700000000},
{"procName": "once", "startCmd": "./once", "contact": "shop", "type": 2, "user": "root", "userPwd": ":::root@@@hunter2"},
{"procName": "bad", "setupPath": "relative", "startCmd": "./bad", "contact": "shop", "valuekey": "shop:bad"}
]}`
	r, err := importer.Procinfo([]importer.File{{Name: "/p.json", Text: []byte(text)}}, disk(nil))
	if err != nil {
		t.Fatal(err)
	}
	const want = `# web_1 of /p.json
namespace: shop
name: web_1
command: "./nginx.sh start"
stop: "./nginx.sh stop"
timeout: 2m
folder: /data/nginx
proc_name: nginx
pid_file: /data/nginx/nginx.pid
user: www
start_check: 9s
memory: "10.5%"
cpu: 30%
health: {command: ./check.sh}
---
# once of /p.json
namespace: shop
name: once
command: ./once
proc_name: once
user: root
restart: never
`
	if diff := cmp.Diff(want, string(importer.WriteYAML(r.Processes))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"security once userPwd", "left out bad "}, notes(r, importer.LeftOut, importer.Security)); diff != "" {
		t.Error(diff)
	}
	for _, n := range r.Notes {
		if strings.Contains(n.Value+n.Reason, "hunter2") {
			t.Errorf("the report has the password: %+v", n)
		}
	}

	for text, want := range map[string]string{`{}`: `must have a list "proc"`, `{"proc": [1]}`: "must be a mapping", `{"proc": [{}]}`: "neither valuekey",
		`{"proc": [{"procName": "a", "type": 7}]}`: "type must be", "{\"proc\": [\n{\"procName\": \"a\",\n\"cpulmt\": \"x\"}]}": "/p.json:3: cpulmt"} {
		if _, err := importer.Procinfo([]importer.File{{Name: "/p.json", Text: []byte(text)}}, disk(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
