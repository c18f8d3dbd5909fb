//go:build linux

package identity_test

import (
	"syscall"
	"testing"
	"time"
)

// P26: a program that stays in the foreground and has no pid file is held by what is on record.
func TestP26ForegroundWithoutPIDFile(t *testing.T) {
	each(t, func(w *world) {
		var ps []*proc
		for name, cmd := range map[string]string{"exec": "exec ./gzfront 1000000", "plain": "./gzfront 1000000",
			"wait": "./gzfront 1000000 & wait"} {
			p := w.daemon(name, "gzfront").without("stop", "restart", "kill", "reload", "version")
			p.part("identity")["pid_path"] = ""
			p.part("control")["start_cmd"], p.native = cmd, true
			ps = append(ps, p)
		}
		w.startAll(ps...)
		pids := map[*proc]int{}
		for _, p := range ps {
			pids[p] = p.main()
			p.awaitRuns("after start", pids[p])
			p.must(opStart, 828)
		}

		// The agent finds them again.
		for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGUSR2} {
			w.restart(sig)
			for _, p := range ps {
				p.untouched("after "+sig.String()+" of the agent", pids[p], 300*time.Millisecond)
			}
		}
		for _, p := range ps {
			p.must(opStart, 828)
		}

		// They come back, also as the children of an agent that is gone.
		for _, p := range ps {
			w.kill(pids[p])
		}
		for _, p := range ps {
			p.await("it does not come back", func() bool { m := p.mains(); return len(m) == 1 && m[0] != pids[p] })
			p.awaitRuns("after it came back", p.main())
		}
		w.agent.Kill(syscall.SIGKILL)
		for _, p := range ps {
			pids[p] = p.main()
			w.kill(pids[p])
		}
		w.again()
		for _, p := range ps {
			p.await("it does not come back", func() bool { m := p.mains(); return len(m) == 1 && m[0] != pids[p] })
			p.awaitRuns("after it came back", p.main())
			p.must(opStop, 0)
			if left := p.live(); len(left) > 0 {
				w.t.Errorf("%s: left after the stop: %v", p.name, named(left))
			}
			p.must(opStop, 829)
		}
	})
}

// P26: a start command that takes long and then puts its program into the background by a fork. The parent has the name
// of the process and ends soon. It is not taken for the process, whose life would then count as left behind.
func TestP26SlowStartInBackground(t *testing.T) {
	each(t, func(w *world) {
		p := w.daemon("slow", "gzbirth").without("stop", "restart", "kill", "reload", "version")
		p.copyOf("/bin/sh", "gzbirth")
		p.part("identity")["pid_path"], p.native = "", true
		p.part("monitor_policy")["start_check_secs"] = 2
		p.part("control")["start_cmd"] = "sleep 3; " +
			"./gzbirth -c '{ while :; do sleep 1000; done; } >/dev/null 2>&1 & sleep 1; :'"

		w.startAll(p)
		pid := p.main()
		p.awaitRuns("after start", pid)
		p.untouched("after the start", pid, 7*time.Second) // what is left behind is killed after five seconds
		p.must(opStop, 0)
	})
}

// P26: an operation arrives while a pull-up has only a launcher, which has the name of the process. The launcher is not
// put on record as the main process: the daemon that it leaves is.
func TestP26OperationDuringALauncher(t *testing.T) {
	each(t, func(w *world) {
		p := w.daemon("launch", "gzhatch").without("stop", "restart", "kill", "reload", "version")
		p.copyOf("/bin/sh", "gzhatch")
		p.part("identity")["pid_path"], p.native = "", true
		p.part("monitor_policy")["start_check_secs"] = 60
		p.part("control")["start_cmd"] = "./gzhatch -c '{ while :; do sleep 1000; done; } >/dev/null 2>&1 & " +
			"while [ ! -e go ]; do sleep 0.1; done'"
		p.registered(p.spec)
		p.must(opHost, 0)
		p.await("it is not launched", func() bool { return len(p.mains()) == 2 })
		p.must(opUnhost, 0)

		p.Script("go", "")
		p.await("the launcher does not end", func() bool { return len(p.mains()) == 1 })
		pid := p.main()
		p.awaitRuns("after the launcher", pid)
		p.untouched("after the launcher", pid, time.Second)
		p.must(opStop, 0)
	})
}
