//go:build linux

package identity_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// wrapped is a process whose command is a wrapper that executes another program. Its definition has no proc_name.
type wrapped struct {
	*proc
}

// wrapper registers a wrapped process by its native definition, as a person does.
func (w *world) wrapper(name, command string) *wrapped {
	w.t.Helper()
	p := &wrapped{w.daemon(name, "gzinner")}
	p.Script("wrap.sh", "trap 'exit 9' USR1\nexec "+p.Dir+"/gzinner 1000000")
	p.Script("slow.sh", "sleep 0.5\nexec "+p.Dir+"/gzinner 1000000")
	w.agent.Chown(w.t, p.Dir)
	file := filepath.Join(p.Dir, "definition.yaml")
	text := fmt.Sprintf("namespace: %s\nname: %s\nhosts: [{ip: %s}]\nuser: %s\nfolder: %s\ncommand: %s\nstart_check: 2s\ntimeout: 10s\n"+
		"restart: {delay: 0s}\n", namespace, name, w.ip(), p.User, p.Dir, strings.ReplaceAll(command, "DIR", p.Dir))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.command("register", "-f", file)
	return p
}

// command runs the command line. It must succeed.
func (w *world) command(args ...string) string {
	w.t.Helper()
	cmd := exec.Command(ft.Binary(w.t), args...)
	cmd.Env = append(os.Environ(), "GOZZARD_CREDENTIALS="+filepath.Join(w.s.Data, "credentials.json"), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("gozzard %s on %s: %v\n%s", strings.Join(args, " "), w.name, err, out)
	}
	return string(out)
}

// does runs an operation of the command line on the process.
func (p *wrapped) does(verb string) {
	p.w.t.Helper()
	p.w.command(verb, p.name, "-n", namespace, "--host", p.w.ip())
}

// runsWell waits until exactly one copy runs, of which the status has nothing to say.
func (p *wrapped) runsWell(when string) int {
	p.w.t.Helper()
	p.await(when+": there is not one copy", func() bool { return len(p.mains()) == 1 })
	pid := p.main()
	p.awaitRuns(when, pid)
	if m := p.status().Message; strings.Contains(m, "definition says") {
		p.w.t.Errorf("%s, %s: the status is %q, although nobody wrote a name", p.name, when, m)
	}
	return pid
}

// P26: a command in the foreground ends with the execution of another program, and nobody wrote the name of the process.
// What the agent has started is the process, whatever its name has become.
func TestP26WrapperThatExecutesTheProgram(t *testing.T) {
	each(t, func(w *world) {
		var ps []*wrapped
		for name, command := range map[string]string{
			"script":     "[DIR/wrap.sh]",
			"slow":       "[DIR/slow.sh]",
			"line":       "sh -c 'exec DIR/gzinner 1000000'",
			"list":       "[sh, -c, 'true; exec DIR/gzinner 1000000']",
			"after step": "mkdir -p DIR/run && exec DIR/gzinner 1000000",
		} {
			ps = append(ps, w.wrapper(strings.ReplaceAll(name, " ", "-"), command))
		}
		pids := map[*wrapped]int{}
		for _, p := range ps {
			p.does("start")
			pids[p] = p.runsWell("after the start")
		}

		// It outlives its start time-out, and every end of the agent.
		for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGUSR2} {
			w.restart(sig)
			for _, p := range ps {
				p.untouched("after "+sig.String()+" of the agent", pids[p], 300*time.Millisecond)
				if pid := p.runsWell("after " + sig.String() + " of the agent"); pid != pids[p] {
					t.Errorf("%s: pid %d, was %d", p.name, pid, pids[p])
				}
			}
		}

		// It comes back when it is killed, also while the agent is away.
		for _, p := range ps {
			w.kill(pids[p])
			p.await("it does not come back", func() bool { m := p.mains(); return len(m) == 1 && m[0] != pids[p] })
			pids[p] = p.runsWell("after it came back")
		}
		w.agent.Kill(syscall.SIGKILL)
		for _, p := range ps {
			w.kill(pids[p])
		}
		w.again()
		for _, p := range ps {
			p.await("it does not come back", func() bool { m := p.mains(); return len(m) == 1 && m[0] != pids[p] })
			pids[p] = p.runsWell("after it came back")
		}

		// Restart and stop reach it, and leave nothing.
		for _, p := range ps {
			p.does("restart")
			if pid := p.runsWell("after the restart"); pid == pids[p] {
				t.Errorf("%s: the restart left pid %d alone", p.name, pid)
			}
			p.does("stop")
			if left := p.live(); len(left) > 0 {
				t.Errorf("%s: left after the stop: %v", p.name, named(left))
			}
		}
	})
}

// P26: a name that somebody wrote counts: what has another one is not the process, and the start ends it.
func TestP26WrapperOfANameThatIsWritten(t *testing.T) {
	each(t, func(w *world) {
		p := w.daemon("named", "gzinner").without("stop", "restart", "kill", "reload", "version")
		p.part("identity")["pid_path"], p.native = "", true
		p.part("identity")["proc_name"] = "gzouter"
		p.part("control")["start_cmd"] = "exec sh -c 'exec " + p.Dir + "/gzinner 1000000'"
		p.part("monitor_policy")["start_check_secs"], p.part("monitor_policy")["op_timeout"] = 1, 3
		p.registered(p.spec)
		if e := p.must(opStart, 65535, 836); !strings.Contains(e.Msg, `runs as "gzinner", but the definition says proc_name "gzouter"`) {
			t.Errorf("%+v", e)
		}
		if left := p.live(); len(left) > 0 {
			t.Errorf("left after the failed start: %v", named(left))
		}
	})
}
