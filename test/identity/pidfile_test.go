//go:build linux

package identity_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// P21: the pid file of a definition names a process of the same program and account that belongs to another
// definition of the same agent.
func TestP21PIDFileOfAnotherDefinition(t *testing.T) {
	each(t, func(w *world) {
		b := w.daemon("b", "gztwin").without("stop", "kill")
		b.must(opStart, 0)
		pid := b.main()
		c := &twins{w: w, b: pid, age: 0}
		c.all()
		b.untouched("after all of this", pid, time.Second)
		if b.Count("start") != 1 {
			w.t.Errorf("b was started anew: %v", b.Calls())
		}
	})
}

// P21: the same with a process that the agent does not manage. The pid file is a day older than that process.
func TestP21PIDFileOlderThanTheProcess(t *testing.T) {
	each(t, func(w *world) {
		c := &twins{w: w, b: w.bystander("gztwin"), age: 24 * time.Hour}
		c.all()
	})
}

// bystander starts a process that the agent does not manage.
func (w *world) bystander(program string) int {
	w.t.Helper()
	dir := filepath.Join(w.agent.Dir, "bystander")
	if err := os.Mkdir(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	ft.CopyProgram(w.t, "/bin/sleep", filepath.Join(dir, program))

	cmd := exec.Command("./"+program, "1000000")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = ft.Credential(w.t, w.account)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	return cmd.Process.Pid
}

// twins are definitions of one program and account. The pid files of all others name the process b.
type twins struct {
	w   *world
	b   int
	age time.Duration // of pid files that are older than b
}

// point makes the pid file name b.
func (c *twins) point(p *proc, age time.Duration) {
	c.w.t.Helper()
	if err := os.WriteFile(p.PIDFile(), fmt.Appendf(nil, "%d\n", c.b), 0o644); err != nil {
		c.w.t.Fatal(err)
	}
	c.w.agent.Chown(c.w.t, p.PIDFile())
	if age > 0 {
		at := time.Now().Add(-age)
		if err := os.Chtimes(p.PIDFile(), at, at); err != nil {
			c.w.t.Fatal(err)
		}
	}
}

// unhurt checks that b is alive and that the status of another definition does not show it.
func (c *twins) unhurt(row string, p *proc) {
	c.w.t.Helper()
	if ft.CommOf(c.b) != "gztwin" {
		c.w.t.Fatalf("%s: b was ended", row)
	}
	if st := p.status(); st.PID == c.b {
		c.w.t.Errorf("%s: the status shows the pid of b: %+v", row, st)
	}
}

// all are the rows of the table.
func (c *twins) all() {
	w := c.w
	w.t.Helper()
	ps := map[string]*proc{}
	for _, name := range []string{"up", "down", "died-down", "died-up", "never", "hosted", "stopped"} {
		ps[name] = w.daemon(name, "gztwin").without("stop", "kill")
	}
	w.startAll(ps["up"], ps["down"], ps["died-down"], ps["died-up"])

	// A's pid file is overwritten while A runs: the stop ends A alone.
	c.point(ps["up"], 0)
	c.stops("pid file overwritten while A runs", ps["up"])

	// The pid file is overwritten while the agent is down; another process dies meanwhile.
	w.agent.Kill(syscall.SIGKILL)
	c.point(ps["down"], 0)
	died := ps["died-down"].main()
	w.kill(died)
	c.point(ps["died-down"], c.age)
	w.again()
	c.comesBack("A died while the agent was down", ps["died-down"], died)
	c.stops("pid file overwritten while the agent was down", ps["down"])

	// A process dies while the agent is up.
	died = ps["died-up"].main()
	c.point(ps["died-up"], c.age)
	w.kill(died)
	c.comesBack("A died while the agent was up", ps["died-up"], died)

	// Definitions that never ran: stop finds nothing, start and host really start.
	for _, name := range []string{"never", "hosted", "stopped"} {
		c.point(ps[name], c.age)
	}
	ps["stopped"].must(opStop, 829)
	c.unhurt("stop of what never ran", ps["stopped"])
	ps["never"].must(opStart, 0)
	c.ownPID("start of what never ran", ps["never"])
	ps["hosted"].must(opHost, 0)
	c.comesBack("host of what never ran", ps["hosted"], 0)
	for _, name := range []string{"never", "hosted", "died-up", "died-down"} {
		c.stops("stop of "+name, ps[name])
	}
}

// stops checks that a stop ends A and nothing else.
func (c *twins) stops(row string, p *proc) {
	c.w.t.Helper()
	if e := p.op(opStop); e.Code != 0 {
		c.w.t.Errorf("%s: stop: %+v", row, e)
	}
	if left := p.live(); len(left) > 0 {
		c.w.t.Errorf("%s: still there after the stop: %v", row, named(left))
	}
	c.unhurt(row, p)
}

// comesBack waits until A runs as a process of its own, and not as the one that died.
func (c *twins) comesBack(row string, p *proc, not int) {
	c.w.t.Helper()
	p.await(row+": it does not come back", func() bool {
		c.unhurt(row, p)
		m := p.mains()
		return len(m) == 1 && m[0] != not
	})
	c.ownPID(row, p)
}

// ownPID checks that A runs as a process of its own, with its pid in the status.
func (c *twins) ownPID(row string, p *proc) {
	c.w.t.Helper()
	p.awaitRuns(row, p.main())
	c.unhurt(row, p)
}

// P21: the start command writes the pid of a process that is older than the start. The start brings up its own process,
// and a stop ends that one alone.
func TestP21StartWritesAnOlderPID(t *testing.T) {
	each(t, func(w *world) {
		older := w.bystander("gztwin")
		time.Sleep(1200 * time.Millisecond) // a younger one could be what the start has brought up
		p := w.daemon("a", "gztwin").without("stop", "kill")
		p.Script("start.sh", fmt.Sprintf("echo start >> calls\nsetsid ./gztwin 1000000 </dev/null >/dev/null 2>&1 &\n"+
			"echo %d > daemon.pid", older))
		p.must(opStart, 0)
		if st := p.status(); st.PID == older || len(p.mains()) != 1 || st.PID != p.mains()[0] {
			w.t.Errorf("status %+v, the other process is %d, own ones %v", st, older, p.mains())
		}

		p.must(opStop, 0)
		if ft.CommOf(older) != "gztwin" || len(p.live()) > 0 {
			w.t.Errorf("after the stop: the other process is %q, own ones %v", ft.CommOf(older), named(p.live()))
		}
	})
}
