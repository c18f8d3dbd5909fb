//go:build linux

package faults_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// signalsByPidfd: the agent sends signals through pidfds, so that they never reach another process that got the same
// pid. If the kernel has no pidfds, the agent reports that.
func signalsByPidfd(t *testing.T, _ *plainFleet) {
	needs(t, "strace")
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	d := ft.NewDaemon(t, t.TempDir(), "gzsignal")
	endFirst(t, agent)
	calls := filepath.Join(t.TempDir(), "calls")
	agent.Kill(syscall.SIGKILL)
	agent.Through("strace", "-D", "-f", "-qq", "--seccomp-bpf", "-o", calls, "-e",
		"trace=kill,tkill,tgkill,rt_sigqueueinfo,pidfd_send_signal", "-e", "signal=none")
	s.AgainOnline(t, agent)
	bare := d.Spec(nil) // the agent itself sends the signals, not a command
	for _, name := range []string{"stop_cmd", "kill_cmd"} {
		delete(bare["control"].(ft.J), name)
	}

	for _, op := range []int{0, 1, 0, 9} {
		must(t, operate(t, s.API, d, op, bare), 0)
	}

	own := strconv.Itoa(agent.PID())
	agent.Kill(syscall.SIGKILL)
	var trace string
	// The tracer writes with a delay.
	ft.Until(t, time.Minute, func() string { return "no signal was seen:\n" + trace }, func() bool {
		b, _ := os.ReadFile(calls)
		trace = string(b)
		return strings.Contains(trace, "SIGTERM") && strings.Contains(trace, "SIGKILL")
	})

	for line := range strings.Lines(trace) {
		call := regexp.MustCompile(`^[0-9]+ +([a-z_]+)\(([0-9-]+)`).FindStringSubmatch(line)
		switch {
		// The call was counted when it began.
		case regexp.MustCompile(`^[0-9]+ +<\.\.\. [a-z_]+ resumed>`).MatchString(line):
		case call == nil:
			t.Errorf("not understood: %s", line)
		case call[1] != "pidfd_send_signal" && call[2] != own: // a signal to its own threads reaches no other process
			t.Errorf("a signal by number: %s", line)
		}
	}

	for _, name := range []string{"SIGTERM", "SIGKILL"} {
		if !regexp.MustCompile(`(?m)^[0-9]+ +pidfd_send_signal\([0-9]+, ` + name +
			`, .*( = 0|<unfinished \.\.\.>)$`).MatchString(trace) {
			t.Errorf("no %s through a pidfd:\n%s", name, trace)
		}
	}

	withoutPidfd(t, s, agent, d)
}

// withoutPidfd: on an old kernel the agent works and reports that it is degraded.
func withoutPidfd(t *testing.T, s *ft.Server, agent *ft.Program, d *ft.Daemon) {
	t.Helper()
	traced(t, agent, "pidfd_open:error=ENOSYS")
	s.AgainOnline(t, agent)
	missing(t, s, "no pidfd")
	must(t, operate(t, s.API, d, 0, d.Spec(nil)), 0)
	cameBack(t, d)
	must(t, operate(t, s.API, d, 9, d.Spec(nil)), 0)
}
