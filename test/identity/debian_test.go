//go:build linux

package identity_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// needsPrograms finds the programs of Debian packages. In CI they must be there.
func needsPrograms(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if path(name) != "" {
			continue
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("no %s on this machine: .ci/deps installs it", name)
		}
		t.Skipf("no %s on this machine: .ci/deps installs it", name)
	}
}

// path finds a program also where ordinary accounts do not look, "" if it is not there.
func path(name string) string {
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	for _, pattern := range []string{"/usr/sbin/", "/usr/bin/", "/usr/lib/postgresql/*/bin/"} {
		if found, _ := filepath.Glob(pattern + name); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	return ""
}

// real makes a definition of a program of Debian. account is the one that runs it, files are its configuration, and
// commands its commands without "_cmd". In all of them @dir, @port and @pid stand for the folder, a free port and the
// pid file; a word after @ that is none of these is a program.
func (w *world) real(name, program, account string, files, commands map[string]string) *proc {
	w.t.Helper()
	p := w.daemon(name, program).without("start", "stop", "restart", "reload", "kill", "version")
	port := strconv.Itoa(ft.FreePort(w.t))
	words := []string{"@dir", p.Dir, "@port", port, "@pid", p.PIDFile()}
	for _, name := range []string{"nginx", "redis-server", "redis-cli", "haproxy", "memcached", "pg_ctl"} {
		words = append(words, "@"+name, path(name))
	}
	fill := strings.NewReplacer(words...)

	for name, text := range files {
		if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(fill.Replace(text)), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	for name, text := range commands {
		p.part("control")[name+"_cmd"] = fill.Replace(text)
	}

	p.part("identity")["user"] = account
	p.part("monitor_policy")["stop_check_secs"] = 10 // memcached looks at its clock once a second before it ends
	p.isMain = func(pid int) bool { return !slices.Contains(p.live(), parent(pid)) }
	if os.Geteuid() == 0 {
		ft.Chown(w.t, p.Dir, account)
	}

	return p
}

// parent is the parent of a live process.
func parent(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(f[1])
	return ppid
}

func (w *world) nginx(name string) *proc {
	w.t.Helper()
	return w.real(name, "nginx", w.account, map[string]string{"nginx.conf": `daemon on;
worker_processes 2;
pid @pid;
error_log @dir/error.log;
events { worker_connections 64; }
http {
	access_log off;
	client_body_temp_path @dir/body;
	proxy_temp_path @dir/proxy;
	fastcgi_temp_path @dir/fastcgi;
	uwsgi_temp_path @dir/uwsgi;
	scgi_temp_path @dir/scgi;
	server { listen 127.0.0.1:@port; return 200 "here\n"; }
}
`}, map[string]string{"start": "@nginx -c @dir/nginx.conf", "stop": "@nginx -c @dir/nginx.conf -s quit",
		"reload": "@nginx -c @dir/nginx.conf -s reload"})
}

func (w *world) redis(name string) *proc {
	w.t.Helper()
	return w.real(name, "redis-server", w.account, map[string]string{"redis.conf": `daemonize yes
bind 127.0.0.1
port @port
pidfile @pid
dir @dir
logfile redis.log
save ""
`}, map[string]string{"start": "@redis-server @dir/redis.conf", "stop": "@redis-cli -p @port shutdown nosave",
		"reload": "@redis-cli -p @port config set maxmemory 100mb"})
}

func (w *world) haproxy(name string) *proc {
	w.t.Helper()
	return w.real(name, "haproxy", w.account, map[string]string{"haproxy.cfg": `global
	maxconn 64
	nbthread 1
defaults
	mode http
	timeout connect 1s
	timeout client 1s
	timeout server 1s
frontend here
	bind 127.0.0.1:@port
	http-request return status 200
`}, map[string]string{"start": "@haproxy -D -f @dir/haproxy.cfg -p @pid", "stop": "kill $(cat @pid)",
		"reload": "@haproxy -D -f @dir/haproxy.cfg -p @pid -sf $(cat @pid)"})
}

func (w *world) memcached(name string) *proc {
	w.t.Helper()
	as := ""
	if w.account == "root" {
		as = " -u root"
	}
	return w.real(name, "memcached", w.account, nil, map[string]string{
		"start": "@memcached -d -m 16 -U 0 -l 127.0.0.1 -p @port -P @pid" + as, "stop": "kill $(cat @pid)"})
}

// postgres has an account of its own, because PostgreSQL does not run as root.
func (w *world) postgres(name string) *proc {
	w.t.Helper()
	account := w.account
	if account == "root" {
		account = ordinary
	}
	p := w.real(name, "postgres", account, nil, map[string]string{
		"start": `@pg_ctl -w -D @dir/data -l @dir/log -o "-p @port -c listen_addresses=127.0.0.1 ` +
			`-c unix_socket_directories='' -c fsync=off -c shared_buffers=2MB" start`,
		"stop": "@pg_ctl -w -m fast -D @dir/data stop", "reload": "@pg_ctl -D @dir/data reload"})

	data := filepath.Join(p.Dir, "data")
	if out, err := w.as(account, "cp", "-R", "--", cluster(w.t), data).CombinedOutput(); err != nil {
		w.t.Fatalf("cp: %v\n%s", err, out)
	}
	if err := os.Chmod(data, 0o700); err != nil {
		w.t.Fatal(err)
	}
	p.part("identity")["pid_path"] = filepath.Join(data, "postmaster.pid")
	return p
}

// as is a command that runs as an account.
func (w *world) as(account string, args ...string) *exec.Cmd {
	w.t.Helper()
	return as(w.t, account, args...)
}

func as(t *testing.T, account string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = ft.Credential(t, account)
	}
	return cmd
}

// databases is an empty database cluster that is made once and copied.
var databases struct {
	sync.Mutex
	dir string
}

// cluster makes the database cluster that all tests copy.
func cluster(t *testing.T) string {
	t.Helper()
	databases.Lock()
	defer databases.Unlock()
	if databases.dir != "" {
		return filepath.Join(databases.dir, "data")
	}

	dir, err := os.MkdirTemp("", "gozzard-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	ft.RemoveAtEnd(dir)
	if os.Geteuid() == 0 {
		ft.Chown(t, dir, ordinary)
	}
	cmd := as(t, ordinary, path("initdb"), "-D", filepath.Join(dir, "data"), "-A", "trust", "-U", "gozzard", "--no-sync")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}

	databases.dir = dir
	return filepath.Join(dir, "data")
}

// pidOf reads the pid file of the definition.
func (p *proc) pidOf() int {
	p.w.t.Helper()
	b, err := os.ReadFile(p.part("identity")["pid_path"].(string))
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || ft.CommOf(pid) == "" {
		return -1
	}
	return pid
}
