//go:build linux

package fleettest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestUpgradeTouchesNoProcess: a new agent takes over by exec or by stop and start, and no process is affected: same
// pids, started once, still supervised and restarted when they die.
func TestUpgradeTouchesNoProcess(t *testing.T) {
	// Start an old version with daemons.
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}

	program, next := filepath.Join(dir, "gozzard"), filepath.Join(dir, "gozzard.next")
	ft.BuildVersion(t, "1.0.0-old", program)
	t.Setenv("GOZZARD_BINARY", program)
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	c := native(t, s.API)
	fleet := startFleet(t, s, 21)
	before := fleet.pids()

	exits := func(name string) []client.Event {
		page, err := c.Events(t.Context(), client.EventQuery{Names: []string{name},
			Kinds: []string{string(gozzard.EventExited)}}, 10)
		if err != nil {
			t.Fatal(err)
		}
		return page.Events
	}

	replace := func(version string) {
		t.Helper()
		if version == "" {
			if err := os.WriteFile(next, []byte("not a program"), 0o755); err != nil {
				t.Fatal(err)
			}
		} else {
			ft.BuildVersion(t, version, next)
		}
		if err := os.Rename(next, program); err != nil {
			t.Fatal(err)
		}
	}

	runs := func(version string) bool {
		page, err := c.Hosts(t.Context(), 0, 10)
		return err == nil && len(page.Hosts) == 1 && page.Hosts[0].Online && page.Hosts[0].Version == version
	}

	same := func(when string) {
		t.Helper()
		if after := fleet.pids(); !slices.Equal(before, after) {
			t.Fatalf("%s: pids were %v, are %v", when, before, after)
		}
		ft.Until(t, time.Minute, func() string { return when + ": not all are known again" },
			func() bool { return fleet.known(before) })
		for _, d := range fleet.daemons {
			if d.Count("start") != 1 || d.Copies() != 1 {
				t.Fatalf("%s: %s was started %d times, %d copies", when, d.Name, d.Count("start"), d.Copies())
			}
		}
	}

	// A broken program file does not replace the agent.
	replace("")
	signalAgent(t, agent, syscall.SIGUSR2)

	ft.Until(t, time.Minute, agent.Output, func() bool {
		return strings.Contains(agent.Output(),
			"hand-over rejected")
	})

	if !runs("1.0.0-old") {
		t.Fatal("a broken program ended the agent")
	}

	// A new program takes over the process by exec.
	replace("2.0.0-new")
	pid := agent.PID()
	signalAgent(t, agent, syscall.SIGUSR2)
	ft.Until(t, 30*time.Second, agent.Output, func() bool { return runs("2.0.0-new") })

	select {
	case <-agent.Done():
		t.Fatal("the agent's process ended")
	default:
	}

	if agent.PID() != pid {
		t.Fatal("another process")
	}

	same("after exec")
	// They are still the agent's children, so the agent still knows how they end.
	ft.KillPID(t, before[20])
	ft.Until(t, time.Minute, func() string { return "no event of it" }, func() bool { return len(exits("p20")) > 0 })

	if e := exits("p20")[0]; e.PID != before[20] || e.Signal != "SIGKILL" {
		t.Errorf("how it ended is not known: %+v", e)
	}

	fleet.daemons, before = fleet.daemons[:20], before[:20]

	// The agent stops and starts again.
	agent.Kill(syscall.SIGTERM)
	opened := strings.Count(agent.Output(), "session is open") // the server does not notice so short an absence
	agent.Again()

	ft.Until(t, 30*time.Second, agent.Output, func() bool {
		return strings.Count(agent.Output(),
			"session is open") > opened && runs("2.0.0-new")
	})

	same("after stop and start")

	// The agent still restarts what dies.
	ft.KillPID(t, before[0])

	ft.Until(t, time.Minute, func() string { return "not brought back" },
		func() bool { p := fleet.daemons[0].PID(); return p > 0 && p != before[0] })

	ft.Until(t, time.Minute, func() string { return "no event of it" }, func() bool { return len(exits("p00")) > 0 })
}

func signalAgent(t *testing.T, p *ft.Program, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.PID(), sig); err != nil {
		t.Fatal(err)
	}
}

// fleet is a set of supervised daemons on host 1.
type fleet struct {
	t       *testing.T
	s       *ft.Server
	daemons []*ft.Daemon
}

func startFleet(t *testing.T, s *ft.Server, n int) *fleet {
	t.Helper()
	f := &fleet{t: t, s: s}
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}

	var reqs []ft.J
	for i := range n {
		d := ft.NewDaemon(t, root, fmt.Sprintf("gztaken%02d", i))
		f.daemons = append(f.daemons, d)
		reqs = append(reqs, ft.J{"meta": ft.J{"namespace": "gse", "name": fmt.Sprintf("p%02d", i)}, "op_type": 0,
			"hosts": []ft.J{ft.Host(1)}, "spec": d.Spec(nil)})
	}

	for name, e := range s.Await(s.Operate("operate_proc_multi", ft.J{"proc_operate_req": reqs})) {
		if e.Code != 0 {
			t.Fatalf("%s: %+v", name, e)
		}
	}

	t.Cleanup(func() { // while the agent still runs: it would restart supervised processes
		for i := range n {
			_, _ = s.Try("unregister_proc_info", ft.J{"meta": ft.J{"namespace": "gse",
				"name": fmt.Sprintf("p%02d", i)}, "hosts": []ft.J{ft.Host(1)}})
		}
	})

	return f
}

func (f *fleet) pids() (pids []int) {
	f.t.Helper()
	for _, d := range f.daemons {
		p := d.PID()
		if p <= 0 {
			f.t.Fatalf("%s does not run", d.Name)
		}
		pids = append(pids, p)
	}
	return pids
}

// known reports whether the server shows every process as supervised with its pid.
func (f *fleet) known(pids []int) bool {
	for i, want := range pids {
		rows := f.s.Status("gse", fmt.Sprintf("p%02d", i), ft.Host(1))
		if len(rows) != 1 || rows[0].PID != want || rows[0].Status != 1 || !rows[0].IsAuto {
			return false
		}
	}
	return true
}
