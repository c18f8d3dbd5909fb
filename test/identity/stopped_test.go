//go:build linux

package identity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// P25: a start fails because no process has the name of the definition. What it started is ended.
func TestP25FailedStartLeavesNothing(t *testing.T) {
	each(t, func(w *world) {
		p := w.daemon("typo", "gzreal")
		p.spec = p.with("identity", "proc_name", "gztypo")
		e := p.must(opStart, 836)
		if left := p.live(); len(left) > 0 || p.Count("start") != 1 {
			w.t.Errorf("%+v: left after the start: %v, calls %v", e, named(left), p.Calls())
		}

		front := w.daemon("front", "gzreal").without("stop", "kill")
		front.part("identity")["pid_path"] = ""
		front.native = true
		front.part("control")["start_cmd"] = "setsid ./gzreal 1000000 </dev/null >/dev/null 2>&1 & sleep 0.1"
		front.spec = front.with("identity", "proc_name", "gztypo")
		front.registered(front.spec)
		e = front.must(opStart, 836)
		if left := front.live(); len(left) > 0 {
			w.t.Errorf("%+v: left after the start: %v", e, named(left))
		}
	})
}

// P27: what was stopped stays stopped: the agent is killed, the server goes away, the host boots again. What is
// supervised comes back each time.
func TestP27StoppedStaysStopped(t *testing.T) {
	t.Parallel()
	reportAtEnd(t)
	for _, e := range environments(t) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ft.StartServer(t, ""), e, 1) // a server of its own, because it is killed
			stopped, killed, kept := w.daemon("stopped", "gzstay"), w.daemon("killed", "gzstay"), w.daemon("kept", "gzstay")
			w.startAll(stopped, killed, kept)
			stopped.must(opStop, 0)
			killed.must(opKill, 0)

			check := func(when string) {
				t.Helper()
				kept.await(when+": what is supervised does not run", func() bool { return len(kept.mains()) == 1 })
				w.holds(when, 1500*time.Millisecond, func() (string, bool) {
					left := append(stopped.live(), killed.live()...)
					return fmt.Sprint(named(left)), len(left) == 0
				})
			}

			// The agent is killed.
			w.restart(syscall.SIGKILL)
			check("after the agent was killed")

			// The agent starts without its server.
			w.s.Kill(syscall.SIGKILL)
			w.agent.Kill(syscall.SIGKILL)
			w.kill(kept.main())
			sessions := w.agent.Sessions()
			w.agent.Again()
			check("without a server")
			w.s.Again()
			w.s.AwaitReady()
			ft.Until(t, time.Minute, w.agent.Output, func() bool { return w.agent.Sessions() > sessions })
			check("with the server back")
			stopped.must(opStop, 829)

			// The host boots again. Only root can show the agent another boot id.
			if os.Geteuid() == 0 {
				w.reboot(kept)
				check("after a reboot")
				stopped.must(opStop, 829)
			}
		})
	}
}

// reboot ends the agent and its process, and starts the agent with another boot id.
func (w *world) reboot(kept *proc) {
	w.t.Helper()
	boot := filepath.Join(w.t.TempDir(), "boot_id")
	if err := os.WriteFile(boot, []byte("11111111-2222-3333-4444-555555555555\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.agent.Kill(syscall.SIGKILL)
	ft.KillIn(w.t, kept.Dir)
	w.agent.Through(w.wrap(w.t, boot)...)
	w.again()
}
