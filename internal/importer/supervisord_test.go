package importer_test

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/importer"
)

// disk is a World of files.
func disk(files map[string]string) importer.World {
	return importer.World{
		Hostname: "host1.example",
		Env: func(name string) (string, bool) {
			v, ok := map[string]string{"REGION": "eu"}[name]
			return v, ok
		},
		Read: func(name string) ([]byte, error) {
			text, ok := files[name]
			if !ok {
				return nil, errors.New("no such file")
			}
			return []byte(text), nil
		},
		Glob: func(pattern string) (found []string) {
			for name := range files {
				if ok, err := path.Match(pattern, name); ok && err == nil {
					found = append(found, name)
				}
			}
			return found
		},
	}
}

// notes are the lines of a report, short.
func notes(r *importer.Result, levels ...importer.Level) (list []string) {
	for _, n := range r.Notes {
		for _, l := range levels {
			if n.Level == l {
				list = append(list, string(n.Level)+" "+n.Process+" "+n.Key)
			}
		}
	}
	return list
}

const supervisordMain = `; the main file
[supervisord]
environment=ZONE="a b",PLAIN=x
[include]
files = conf.d/*.conf
[group:shop]
programs=web,worker
[eventlistener:memmon]
command=memmon -a 200MB
`

const supervisordWeb = `[program:web]
command=/opt/web/bin/web --listen "127.0.0.1:80 80" --region %(ENV_REGION)s --share 50%%
directory=/opt/web
user=www-data
environment=MODE=production,
    SECRET='s=1,2',HERE=%(here)s
autorestart=true
stopsignal=QUIT
stopwaitsecs=30
startsecs=10
stdout_logfile=/var/log/web.log
stdout_logfile_maxbytes=20MB
stdout_logfile_backups=3 ; three of them
umask=027

[program:worker]
command=/opt/web/bin/worker --number %(process_num)d --host %(host_node_name)s
process_name=%(program_name)s_%(process_num)02d
numprocs=2
numprocs_start=1
user=www-data
exitcodes=0,2
autorestart=unexpected
priority=10
`

func TestSupervisord(t *testing.T) {
	w := disk(map[string]string{"/etc/supervisor/conf.d/web.conf": supervisordWeb})
	r, err := importer.Supervisord([]importer.File{{Name: "/etc/supervisor/supervisord.conf", Text: []byte(supervisordMain)}}, w)
	if err != nil {
		t.Fatal(err)
	}

	const want = `# [program:web] of /etc/supervisor/conf.d/web.conf
namespace: shop
name: web
command: [/opt/web/bin/web, --listen, "127.0.0.1:80 80", --region, eu, --share, 50%]
folder: /opt/web
user: www-data
env: {HERE: /etc/supervisor/conf.d, MODE: production, PLAIN: x, SECRET: "s=1,2", ZONE: "a b"}
umask: "027"
stop_signal: QUIT
stop_timeout: 30s
start_check: 10s
logs: {size: 20M, keep: 3}
---
# [program:worker] of /etc/supervisor/conf.d/web.conf
namespace: shop
name: worker_01
command: [/opt/web/bin/worker, --number, "1", --host, host1.example]
user: www-data
env: {PLAIN: x, ZONE: "a b"}
start_check: 1s
restart: on-failure
---
# [program:worker] of /etc/supervisor/conf.d/web.conf
namespace: shop
name: worker_02
command: [/opt/web/bin/worker, --number, "2", --host, host1.example]
user: www-data
env: {PLAIN: x, ZONE: "a b"}
start_check: 1s
restart: on-failure
`
	if diff := cmp.Diff(want, string(importer.WriteYAML(r.Processes))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"security web SECRET", "check worker_01 exitcodes", "check worker_02 exitcodes", "left out memmon [eventlistener:memmon]"},
		notes(r, importer.LeftOut, importer.Security, importer.Check)); diff != "" {
		t.Error(diff)
	}
	if got := r.Processes[1].Source; got != "shop:worker_01" {
		t.Errorf("source %q", got)
	}
}

// TestSupervisordLeftOut: what would run in another way is left out, with its line.
func TestSupervisordLeftOut(t *testing.T) {
	for _, c := range []struct{ text, key string }{
		{"user=1000", "user"},
		{"directory=work", "directory"},
		{"environment=A=%(ENV_NOT_SET)s", "environment"},
		{"stopsignal=ABRT", "stopsignal"},
		{"umask=999", ""},
	} {
		r, err := importer.Supervisord([]importer.File{{Name: "/s.conf", Text: []byte("[program:a]\ncommand=/bin/a\n" + c.text)}}, disk(nil))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := notes(r, importer.LeftOut); len(r.Processes) != 0 || !cmp.Equal(got, []string{"left out a " + c.key}) {
			t.Errorf("%s: %d processes, %q", c.text, len(r.Processes), got)
		}
	}
}

// TestSupervisordUnreadable: a configuration that cannot be read gives the line and the reason, and no definition.
func TestSupervisordUnreadable(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"x=1", "/s.conf:1: there is no [section]"},
		{"[program:a", "/s.conf:1: the name of a section"},
		{"[program:a]\nnonsense", "/s.conf:2: this is no section"},
		{"[program:a]\nuser=x", "/s.conf:1: [program:a] has no command"},
		{"[program:a]\ncommand=a 'b", "/s.conf:2: command has a quote"},
		{"[program:a]\ncommand=a %(nothing)s", "there is no expansion %(nothing)"},
		{"[program:a]\ncommand=date +%Y", "is no expansion"},
		{"[program:a]\ncommand=a\nnumprocs=2", "must have %(process_num)"},
		{"[program:a]\ncommand=a\nnumprocs=1000000000\nprocess_name=%(process_num)d", "from 1 to 1000"},
		{"[program:a]\ncommand=a\nstartsecs=soon", "/s.conf:3: startsecs must be"},
		{"[program:a]\ncommand=a\nenvironment=A", "/s.conf:3: environment: "},
		{"[group:g]\nprograms=b", "which does not exist"},
		{"\xff\xfe", "not a text in UTF-8"},
	} {
		r, err := importer.Supervisord([]importer.File{{Name: "/s.conf", Text: []byte(c.text)}}, disk(nil))
		if err == nil || !strings.Contains(err.Error(), c.want) || r != nil {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}
