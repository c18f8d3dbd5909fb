//go:build linux

package identity_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// master makes a daemon whose main process has workers that outlive it. kin are workers of the same name, as forked
// ones have it.
func (w *world) master(name string, workers int, kin bool) *proc {
	w.t.Helper()
	p := w.daemon(name, "gzmaster")
	p.copyOf("/bin/sh", "gzmaster")
	p.copyOf("/bin/sleep", "gzworker")
	if err := syscall.Mkfifo(filepath.Join(p.Dir, "hold"), 0o666); err != nil {
		w.t.Fatal(err)
	}

	worker := "./gzworker 1000000"
	if kin {
		worker = "./gzmaster worker.sh"
	}
	for name, text := range map[string]string{
		"worker.sh": "read x <>hold\n", // nothing writes into it, so this worker waits without a child
		"master.sh": fmt.Sprintf("i=0\nwhile [ $i -lt %d ]; do %s & i=$((i+1)); done\nwait\n", workers, worker),
	} {
		if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}

	p.Script("start.sh", "echo start >> calls\nsetsid ./gzmaster master.sh </dev/null >/dev/null 2>&1 &\n"+
		"echo $! > daemon.pid")
	w.agent.Chown(w.t, filepath.Join(p.Dir, "hold"))
	isMaster := func(pid int) bool { return strings.Contains(arguments(pid), "master.sh") }
	p.isMain = func(pid int) bool { return isMaster(pid) && !isMaster(parent(pid)) } // no worker before its exec
	return p.without("restart", "kill")
}

// arguments are those of a live process, separated by NUL.
func arguments(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(b)
}

// workers lists the live workers of both kinds.
func (p *proc) workers() []int {
	p.w.t.Helper()
	return slices.DeleteFunc(p.live(), func(pid int) bool {
		return ft.CommOf(pid) != "gzworker" && !strings.Contains(arguments(pid), "worker.sh")
	})
}

// events lists the events of a kind, as texts.
func (p *proc) events(kind string) (out []string) {
	p.w.t.Helper()
	page, err := p.w.own.Events(p.w.t.Context(), client.EventQuery{Names: []string{p.name}, Kinds: []string{kind},
		Hosts: []string{p.w.ip()}}, 100)
	if err != nil {
		p.w.t.Fatal(err)
	}
	for _, e := range page.Events {
		out = append(out, e.Message)
	}
	return out
}

// P23: the workers of a process outlive it. A kill without kill_cmd and a stop by a stop_cmd that ends only the main
// process leave nothing behind.
func TestP23StopAndKillEndTheGroup(t *testing.T) {
	each(t, func(w *world) {
		ops := map[*proc]int{}
		for _, kin := range []bool{false, true} {
			ops[w.master(fmt.Sprint("kill-", kin), 50, kin)] = opKill
			ops[w.master(fmt.Sprint("stop-", kin), 50, kin)] = opStop
		}
		w.startAll(slices.Collect(maps.Keys(ops))...)
		for p := range ops {
			p.await("not all workers run", func() bool { return len(p.workers()) == 50 })
		}

		for p, op := range ops {
			e := p.op(op)
			if left := p.live(); e.Code != 0 || len(left) > 0 {
				w.t.Errorf("%s: %+v, %d processes left", p.name, e, len(left))
			}
			p.await("the status does not say stopped", func() bool { return p.status().Status == 2 })
			if op == opStop && p.Count("stop") != 1 {
				w.t.Errorf("%s: calls %v", p.name, p.Calls())
			}
		}
	})
}

// P24: the main process dies while its workers live, with the agent up and with the agent down. It is said, and the
// process comes back as one copy.
func TestP24MasterDiesWorkersLive(t *testing.T) { masterDies(t, false) }

// P24: the workers have the name of the main process. None of them is taken for it.
func TestP24WorkersOfTheSameName(t *testing.T) { masterDies(t, true) }

func masterDies(t *testing.T, kin bool) {
	each(t, func(w *world) {
		up, down := w.master("up", 3, kin), w.master("down", 3, kin)
		w.startAll(up, down)
		for _, p := range []*proc{up, down} {
			p.await("not all workers run", func() bool { return len(p.workers()) == 3 })
		}
		old := map[*proc]int{up: up.main(), down: down.main()}
		workers := map[*proc][]int{up: up.workers(), down: down.workers()}

		w.kill(old[up])
		up.await("its death is not seen", func() bool { return up.status().PID != old[up] })
		w.agent.Kill(syscall.SIGKILL)
		w.kill(old[down])
		w.again()

		for p, pid := range old {
			p.await("no event says that workers are left", func() bool { return len(p.events("orphaned")) > 0 })
			p.await("it does not come back as one copy", func() bool {
				m := p.mains()
				if len(m) > 1 {
					w.t.Fatalf("%s: %d copies", p.name, len(m))
				}
				return len(m) == 1 && m[0] != pid && len(p.workers()) == 3
			})
			for _, pid := range p.workers() {
				if slices.Contains(workers[p], pid) {
					w.t.Errorf("%s: an old worker is alive: %v of %v", p.name, p.workers(), workers[p])
				}
			}
			p.awaitRuns("after it came back", p.main())
			p.must(opStop, 0)
			if left := p.live(); len(left) > 0 {
				w.t.Errorf("%s: left after the stop: %v", p.name, named(left))
			}
		}
	})
}

// P24: the definition says orphans: wait. The process does not come back while a worker lives, and the status says why.
func TestP24OrphansWait(t *testing.T) {
	each(t, func(w *world) {
		up, down := w.master("up", 2, true), w.master("down", 2, false)
		for _, p := range []*proc{up, down} {
			p.part("monitor_policy")["orphans"], p.native = "wait", true
			w.startAll(p)
			p.await("not all workers run", func() bool { return len(p.workers()) == 2 })
		}
		old := map[*proc][]int{up: up.workers(), down: down.workers()}

		w.kill(up.main())
		up.await("the status does not say stopped", func() bool { st := up.status(); return st.Status == 2 && st.PID == -1 })
		w.agent.Kill(syscall.SIGKILL)
		w.kill(down.main())
		w.again()

		// It waits and says why.
		for _, p := range []*proc{up, down} {
			p.await("the status does not say stopped", func() bool { st := p.status(); return st.Status == 2 && st.PID == -1 })
			p.await("the message does not say why", func() bool { return p.status().Message != "" })
			p.await("no event says that workers are left", func() bool { return len(p.events("orphaned")) > 0 })
		}
		w.holds("while workers live", 3*time.Second, func() (string, bool) {
			return fmt.Sprint(named(up.live()), named(down.live())),
				fmt.Sprint(up.live()) == fmt.Sprint(old[up]) && fmt.Sprint(down.live()) == fmt.Sprint(old[down])
		})

		// The last worker ends.
		for p, pids := range old {
			for _, pid := range pids {
				w.kill(pid)
			}
			p.await("it does not come back", func() bool { return len(p.mains()) == 1 && len(p.workers()) == 2 })
			p.awaitRuns("after the last worker ended", p.main())
		}
	})
}
