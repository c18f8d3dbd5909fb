//go:build linux

package identity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// slow makes the start of the daemon wait for release.
func (p *proc) slow(script, before string) {
	p.w.t.Helper()
	p.Script(script, fmt.Sprintf("echo %s >> calls\n%s\nwhile [ ! -e go ]; do sleep 0.2; done\n"+
		"setsid ./%s 1000000 </dev/null >/dev/null 2>&1 &\necho $! > daemon.pid", strings.TrimSuffix(script, ".sh"), before,
		p.program))
}

// release lets commands of slow go on.
func (p *proc) release() {
	p.w.t.Helper()
	if err := os.WriteFile(filepath.Join(p.Dir, "go"), nil, 0o644); err != nil {
		p.w.t.Fatal(err)
	}
}

// commands lists the live commands of operations. Between two looks at the file their shell has no child.
func (p *proc) commands() (pids []int) {
	p.w.t.Helper()
	for _, name := range []string{"start.sh", "restart.sh", "reload.sh", "sleep"} {
		pids = append(pids, p.called(name)...)
	}
	return pids
}

// P22: the agent is killed while a command runs. The command is ended, its verdict is final, and what is stopped
// afterwards stays stopped.
func TestP22InterruptedCommandEnds(t *testing.T) {
	each(t, func(w *world) {
		start, again := w.daemon("start", "gzslow"), w.daemon("again", "gzslow")
		reload, version := w.daemon("reload", "gzslow"), w.daemon("version", "gzslow")
		for _, p := range []*proc{start, again, reload, version} {
			p.part("monitor_policy")["op_timeout"] = 30
		}
		start.slow("start.sh", "true")
		again.slow("restart.sh", "kill $(cat daemon.pid)")
		reload.Script("reload.sh", "echo reload >> calls\nsleep 500")
		version.Script("version.sh", "echo version >> calls\nsleep 500")

		w.startAll(again, reload, version)
		again.must(opUnhost, 0)
		pids := map[*proc]int{reload: reload.main(), version: version.main()}

		// Kill the agent while all commands run.
		tasks := map[*proc]string{start: start.begin(opStart, start.spec), again: again.begin(opRestart, again.spec),
			reload: reload.begin(opReload, reload.spec)}
		for p, call := range map[*proc]string{start: "start", again: "restart", reload: "reload", version: "version"} {
			p.await("the command does not run", func() bool { return p.Count(call) > 0 })
		}
		again.await("the old process does not end", func() bool { return len(again.mains()) == 0 })
		versions := version.Count("version")
		w.restart(syscall.SIGKILL)

		// Every verdict is final, and no command is alive any more.
		for p, task := range tasks {
			if e := p.end(task); e.Code == 0 {
				w.t.Errorf("%s: the verdict of an interrupted command is success: %+v", p.name, e)
			}
			if left := p.commands(); len(left) > 0 {
				w.t.Errorf("%s: its command is alive after the verdict: %v", p.name, named(left))
			}
		}
		start.must(opStop, 0, 829)
		again.must(opStop, 0, 829)

		// What was stopped stays stopped, what ran still runs.
		start.release()
		again.release()
		w.holds("after the stop", 5*time.Second, func() (string, bool) {
			got := fmt.Sprintf("%v %v", named(start.live()), named(again.live()))
			return got, len(start.live())+len(again.live()) == 0
		})
		for p, pid := range pids {
			p.untouched("after the agent was killed", pid, 0)
		}
		version.await("the old version command is alive", func() bool {
			return len(version.called("sleep")) <= version.Count("version")-versions
		})
	})
}

// P22: the agent is killed while commands run, and does not come back. No command outlives its time limit.
func TestP22NoCommandOutlivesItsLimit(t *testing.T) {
	each(t, func(w *world) {
		start, reload := w.daemon("start", "gzslow"), w.daemon("reload", "gzslow")
		for _, p := range []*proc{start, reload} {
			p.part("monitor_policy")["op_timeout"] = 3
		}
		start.slow("start.sh", "true")
		reload.Script("reload.sh", "echo reload >> calls\nsleep 500")
		w.startAll(reload)
		pid := reload.main()

		// Quick commands have no guard. Once there is one, it knows each command from its beginning.
		guard := "gozzard guard\x00" + w.agent.Flag("--data")
		start.begin(opStart, start.spec)
		start.await("the command does not run", func() bool { return start.Count("start") > 0 })
		start.await("the command has no guard", func() bool { return ft.CountArgs(w.t, guard) == 1 })
		reload.begin(opReload, reload.spec)
		reload.await("the command does not run", func() bool { return reload.Count("reload") > 0 })
		w.agent.Kill(syscall.SIGKILL)

		start.await("its command outlives its limit", func() bool { return len(start.live()) == 0 })
		reload.await("its command outlives its limit", func() bool { return len(reload.live()) == 1 })
		if reload.main() != pid {
			w.t.Errorf("pid was %d: %v", pid, named(reload.live()))
		}
	})
}

// P27: the agent is killed after a kill has ended the process and before its verdict. The process stays down.
func TestP27InterruptedKillIsKept(t *testing.T) {
	each(t, func(w *world) {
		p := w.daemon("a", "gzkill")
		p.Script("kill.sh", "echo kill >> calls\nkill -9 $(cat daemon.pid)\nsleep 500")
		p.must(opStart, 0)
		task := p.begin(opKill, p.spec)
		p.await("the kill command does not end the process", func() bool { return len(p.mains()) == 0 })
		w.restart(syscall.SIGKILL)
		if e := p.end(task); e.Code == 0 {
			w.t.Errorf("the verdict of an interrupted kill is success: %+v", e)
		}

		w.holds("after the interrupted kill", 5*time.Second, func() (string, bool) {
			st := p.status()
			return fmt.Sprintf("status %+v, %v", st, named(p.live())), len(p.live()) == 0 && st.PID == -1
		})
		p.must(opStart, 0)
	})
}
