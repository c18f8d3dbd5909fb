//go:build linux

package identity_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// family makes one definition of each program.
func (w *world) family() []*proc {
	w.t.Helper()
	return []*proc{w.nginx("nginx"), w.redis("redis"), w.haproxy("haproxy"), w.memcached("memcached"),
		w.postgres("postgres")}
}

// alone waits until the process runs as one copy, with its pid in the pid file and in the status.
func (p *proc) alone(when string, not int) int {
	p.w.t.Helper()
	p.await(when+": not one copy with its pid file", func() bool {
		m := p.mains()
		return len(m) == 1 && m[0] == p.pidOf() && m[0] != not
	})
	pid := p.main()
	p.awaitRuns(when, pid)
	return pid
}

// nothingLeft stops the process and checks that nothing of it runs.
func (p *proc) nothingLeft() {
	p.w.t.Helper()
	p.must(opStop, 0)
	if left := p.live(); len(left) > 0 {
		p.w.t.Errorf("%s: left after the stop: %v", p.name, named(left))
	}
}

// P28: nginx, redis, haproxy, memcached and PostgreSQL go through their usual life.
func TestP28DaemonsOfDebian(t *testing.T) {
	needsPrograms(t, "nginx", "redis-server", "haproxy", "memcached", "initdb")
	each(t, func(w *world) {
		ps := w.family()
		w.startAll(ps...)
		pids := map[*proc]int{}
		for _, p := range ps {
			pids[p] = p.alone("after start", 0)
		}

		// Reload. Only haproxy hands over to a new process.
		for _, p := range ps {
			if p.part("control")["reload_cmd"] == nil {
				continue
			}
			old := pids[p]
			p.must(opReload, 0)
			if p.program == "haproxy" {
				pids[p] = p.alone("after the hand-over", old)
			} else if pid := p.alone("after reload", 0); pid != old {
				w.t.Errorf("%s: pid was %d, is %d after reload", p.name, old, pid)
			}
		}

		// The agent finds them again, and a changed name changes nothing.
		w.restart(syscall.SIGKILL)
		for _, p := range ps {
			p.awaitRuns("after the agent was killed", pids[p])
			if e := p.update(p.with("identity", "proc_name", "gzother")); e.Code != 0 {
				w.t.Fatalf("%s: update_proc_info: %+v", p.name, e)
			}
		}
		for _, p := range ps {
			p.untouched("after another proc_name was registered", pids[p], 300*time.Millisecond)
			p.says("runs as " + p.program + ", definition says gzother")
			p.update(p.spec)
		}

		// Each comes back as one copy, also if its workers are left.
		for _, p := range ps {
			w.kill(pids[p])
		}
		for _, p := range ps {
			p.alone("after the main process was killed", pids[p])
		}
		for _, p := range ps {
			p.nothingLeft()
		}
	})
}

// P28: the port of nginx is in use. It tries for its port for two and a half seconds before it ends, which is longer than
// its start check, and has the name of its daemon meanwhile: the start fails all the same, and says why.
func TestP28NginxWithoutItsPort(t *testing.T) {
	needsPrograms(t, "nginx")
	each(t, func(w *world) {
		p := w.nginx("taken")
		p.part("monitor_policy")["start_check_secs"] = 1
		conf, err := os.ReadFile(filepath.Join(p.Dir, "nginx.conf"))
		if err != nil {
			w.t.Fatal(err)
		}
		_, port, _ := strings.Cut(string(conf), "listen ")
		port, _, _ = strings.Cut(port, ";")
		holder, err := net.Listen("tcp", port)
		if err != nil {
			w.t.Fatal(err)
		}

		p.native = true
		p.registered(p.spec)
		e := p.must(opStart, 65535)
		if !strings.Contains(e.Msg, "Address already in use") {
			w.t.Errorf("the start says %q", e.Msg)
		}
		if left := p.live(); len(left) > 0 {
			w.t.Errorf("left after the start: %v", named(left))
		}

		// A start by a person succeeds when the port is free.
		if err := holder.Close(); err != nil {
			w.t.Fatal(err)
		}
		p.must(opStart, 0)
		p.alone("after the port became free", 0)
		p.nothingLeft()
	})
}

// P26: a program in the foreground that never writes its pid file is the process, a moment later than one that writes it.
func TestP26ForegroundThatWritesNoPIDFile(t *testing.T) {
	each(t, func(w *world) {
		for name, command := range map[string]string{
			"never":  "exec ./gzstay 1000000",
			"writes": "echo $$ > daemon.pid; exec ./gzstay 1000000",
		} {
			p := w.daemon(name, "gzstay").without("stop", "restart", "kill", "reload", "version")
			p.part("control")["start_cmd"], p.native = command, true
			p.part("monitor_policy")["start_check_secs"] = 1
			p.registered(p.spec)
			began := time.Now()
			p.must(opStart, 0)
			took := time.Since(began)
			if name == "never" && took < 5*time.Second {
				w.t.Errorf("%s: the start succeeded after %v", name, took)
			}
			pid := p.main()
			p.awaitRuns("after start", pid)
			w.restart(syscall.SIGKILL)
			p.untouched("after the agent was killed", pid, 300*time.Millisecond)
			p.must(opStop, 0)
		}
	})
}

// P28: nginx replaces itself by SIGUSR2 and the old main process quits.
func TestP28NginxUpgrade(t *testing.T) {
	needsPrograms(t, "nginx")
	each(t, func(w *world) {
		p := w.nginx("nginx")
		w.startAll(p)
		old := p.alone("after start", 0)

		// The new main process is a child of the old one.
		if err := syscall.Kill(old, syscall.SIGUSR2); err != nil {
			w.t.Fatal(err)
		}
		p.await("no new main process", func() bool { pid := p.pidOf(); return pid > 0 && pid != old })
		w.holds("while both run", time.Second, func() (string, bool) {
			st := p.status()
			return fmt.Sprintf("%+v", st), st.Status == 1 && (st.PID == old || st.PID == p.pidOf())
		})

		// The old one quits.
		if err := syscall.Kill(old, syscall.SIGQUIT); err != nil {
			w.t.Fatal(err)
		}
		pid := p.alone("after the old one quit", old)
		w.restart(syscall.SIGKILL)
		p.awaitRuns("after the agent was killed", pid)
		p.nothingLeft()
	})
}

// P28: the main process of nginx is killed while the agent is down. Its workers hold the port, have another account than
// root, and have overwritten their environment.
func TestP28NginxDiesAgentDown(t *testing.T) {
	needsPrograms(t, "nginx")
	each(t, func(w *world) {
		p := w.nginx("nginx")
		w.startAll(p)
		old := p.alone("after start", 0)
		w.agent.Kill(syscall.SIGKILL)
		w.kill(old)
		w.again()
		p.await("no event says that workers are left", func() bool { return len(p.events("orphaned")) > 0 })
		p.alone("after the main process was killed", old)
		p.nothingLeft()
	})
}

// P28: a daemon that was started by hand is hosted. The agent adopts it by its pid file, once.
func TestP28Adopted(t *testing.T) {
	needsPrograms(t, "nginx", "redis-server", "haproxy", "memcached", "initdb")
	each(t, func(w *world) {
		ps := w.family()
		pids := map[*proc]int{}
		for _, p := range ps {
			cmd := w.as(p.part("identity")["user"].(string), "sh", "-c", p.part("control")["start_cmd"].(string))
			cmd.Dir = p.Dir
			if out, err := cmd.CombinedOutput(); err != nil {
				w.t.Fatalf("%s: %v\n%s", p.name, err, out)
			}
		}
		for _, p := range ps {
			p.awaitLive("it does not run", func() bool { return len(p.mains()) == 1 && p.pidOf() == p.mains()[0] })
			pids[p] = p.main()
			p.must(opHost, 0)
			p.awaitRuns("after host", pids[p])
			p.await("nothing says how it was found", func() bool {
				return strings.Contains(p.status().Message+strings.Join(p.events("started"), "; "), "pid file")
			})
		}

		// It is on record: the pid file is not needed any more.
		for _, p := range ps {
			file := p.part("identity")["pid_path"].(string)
			if p.program == "postgres" { // it ends itself without its pid file
				continue
			}
			if err := os.Rename(file, file+".away"); err != nil {
				w.t.Fatal(err)
			}
		}
		w.restart(syscall.SIGKILL)
		for _, p := range ps {
			p.untouched("after the agent was killed", pids[p], 300*time.Millisecond)
			file := p.part("identity")["pid_path"].(string)
			if p.program != "postgres" {
				if err := os.Rename(file+".away", file); err != nil {
					w.t.Fatal(err)
				}
			}
		}

		// It is watched, and it is stopped as a whole.
		for _, p := range ps {
			w.kill(pids[p])
		}
		for _, p := range ps {
			p.alone("after the main process was killed", pids[p])
			p.nothingLeft()
		}
	})
}

// awaitLive is await for a process that has no definition yet.
func (p *proc) awaitLive(words string, cond func() bool) {
	p.w.t.Helper()
	ft.Until(p.w.t, 30*time.Second, func() string { return p.name + ": " + words + ": " + fmt.Sprint(named(p.live())) },
		slowly(cond))
}
