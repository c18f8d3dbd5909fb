//go:build linux

package soak_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// program is a daemon of the distribution. Its commands record themselves by goosectl.
type program struct {
	name, user string // as the definition has them
	pidFile    string
	config     string // text of the file conf; DIR and PORT are replaced
	port       int
	start      string
	stop       string // "" for none
	reload     string // "" for none
	prepare    func(testing.TB, *daemon)
}

func (p program) kind() kind {
	return kind{name: "real", stop: p.stop != "", reload: p.reload != ""}
}

// files are the configuration and the scripts.
func (p program) files(dir string) map[string]string {
	if p.name == "" {
		return nil
	}
	place := strings.NewReplacer("DIR", dir, "PORT", fmt.Sprint(p.port))
	files := map[string]string{"conf": place.Replace(p.config)}
	for action, text := range map[string]string{"start": p.start + " || exit 1\nexec ../goosectl up", "stop": p.stop,
		"reload": p.reload} {
		files[action+".sh"] = "#!/bin/sh\n../goosectl note " + action + " || exit 1\n" + place.Replace(text) + "\n"
	}
	return files
}

const nginxConfig = `pid DIR/goose.pid;
error_log DIR/error.log;
worker_processes 2;
events { worker_connections 16; }
http {
  access_log off;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi;
  uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  server { listen 127.0.0.1:PORT; }
}
`

const haproxyConfig = `global
  maxconn 16
defaults
  mode tcp
  timeout connect 1s
  timeout client 1s
  timeout server 1s
listen goose
  bind 127.0.0.1:PORT
`

// programs are the daemons of the distribution that are installed.
func (s *soak) programs() (list []program) {
	add := func(path string, p program) {
		if _, err := os.Stat(path); err == nil {
			p.port = ft.FreePort(s.t)
			list = append(list, p)
		}
	}
	nginx := program{name: "nginx", pidFile: "goose.pid", config: nginxConfig, start: "/usr/sbin/nginx -c DIR/conf",
		stop: "exec ../goosectl signal TERM", reload: "exec ../goosectl signal HUP"}
	add("/usr/sbin/nginx", nginx)
	nginx.stop = ""
	nginx.reload = "exec ../goosectl upgrade"
	add("/usr/sbin/nginx", nginx)
	add("/usr/bin/redis-server", program{name: "redis-server", pidFile: "goose.pid",
		config: "bind 127.0.0.1\nport PORT\ndaemonize yes\npidfile DIR/goose.pid\ndir DIR\nlogfile DIR/log\nsave \"\"\n",
		start:  "/usr/bin/redis-server DIR/conf", stop: "exec ../goosectl signal TERM"})
	add("/usr/sbin/haproxy", program{name: "haproxy", pidFile: "goose.pid", config: haproxyConfig,
		start: "/usr/sbin/haproxy -D -f DIR/conf -p DIR/goose.pid",
		reload: "../goosectl signal 0 || exit 1\n" +
			"/usr/sbin/haproxy -D -f DIR/conf -p DIR/goose.pid -sf $(cat goose.pid) && exec ../goosectl up"})
	add("/usr/bin/memcached", program{name: "memcached", pidFile: "goose.pid",
		start: "/usr/bin/memcached -d -u root -m 8 -t 1 -l 127.0.0.1 -p PORT -P DIR/goose.pid"})
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl"); len(found) > 0 {
		bin := filepath.Dir(found[len(found)-1])
		account := "postgres" // it refuses to run as root
		if *ordinary {
			account = s.user
		}
		add(found[len(found)-1], program{name: "postgres", user: account, pidFile: "data/postmaster.pid",
			start: bin + "/pg_ctl -D DIR/data -l DIR/log -w -t 15 -o '-p PORT -k DIR -c listen_addresses=127.0.0.1' start",
			stop:  bin + "/pg_ctl -D DIR/data -m fast -w -t 15 stop", reload: "exec ../goosectl signal HUP",
			prepare: func(t testing.TB, d *daemon) { makeCluster(t, d, bin) }})
	}
	return list
}

// makeCluster makes the data folder of PostgreSQL.
func makeCluster(t testing.TB, d *daemon, bin string) {
	t.Helper()
	cmd := exec.Command(bin+"/initdb", "-N", "-A", "trust", "-D", filepath.Join(d.dir, "data"))
	cmd.Dir = d.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: ft.Credential(t, d.program.user)}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
}
