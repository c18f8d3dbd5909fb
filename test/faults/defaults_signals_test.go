//go:build linux

package faults_test

import (
	"os"
	"path/filepath"
	"regexp"
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
	// A start that takes long gets a guard, which is a program of its own and must obey the same rule.
	d.Script("start.sh", "echo start >> calls\nsleep 0.5\nsetsid ./gzsignal 1000000 </dev/null >/dev/null 2>&1 &\n"+
		"echo $! > "+d.PIDFile())
	endFirst(t, agent)
	calls := filepath.Join(t.TempDir(), "calls")
	agent.Kill(syscall.SIGKILL)
	agent.Through("strace", "-D", "-f", "-qq", "--seccomp-bpf", "-o", calls, "-e",
		"trace=kill,tkill,tgkill,rt_sigqueueinfo,pidfd_send_signal,clone,clone3", "-e", "signal=none")
	s.AgainOnline(t, agent)
	bare := d.Spec(nil) // the agent itself sends the signals, not a command
	for _, name := range []string{"stop_cmd", "kill_cmd"} {
		delete(bare["control"].(ft.J), name)
	}

	for _, op := range []int{0, 1, 0, 9} {
		must(t, operate(t, s.API, d, op, bare), 0)
	}

	agent.Kill(syscall.SIGKILL)
	var trace string
	through := func(name string) bool {
		return regexp.MustCompile(`(?m)^[0-9]+ +pidfd_send_signal\([0-9]+, ` + name +
			`, .*( = 0|<unfinished \.\.\.>)$`).MatchString(trace)
	}
	// The tracer writes with a delay, and a line in parts.
	ft.Until(t, time.Minute, func() string { return "no SIGTERM or no SIGKILL through a pidfd:\n" + trace }, func() bool {
		b, _ := os.ReadFile(calls)
		trace = string(b)
		return through("SIGTERM") && through("SIGKILL")
	})

	for _, words := range byNumber(trace) {
		t.Error(words)
	}

	withoutPidfd(t, s, agent, d)
}

var (
	tracedCall  = regexp.MustCompile(`^([0-9]+) +([a-z_0-9]+)\(([0-9-]*)`)
	tracedRest  = regexp.MustCompile(`^([0-9]+) +<\.\.\. ([a-z_0-9]+) resumed>`)
	tracedChild = regexp.MustCompile(` = ([0-9]+)\s*$`)
)

// byNumber lists the signals of a trace that were sent by number to another process, and the lines that it does not
// understand. The runtime of Go sends signals to threads of its own process, which reach no other one.
func byNumber(trace string) (faults []string) {
	processes := processesOf(trace)
	for line := range strings.Lines(trace) {
		call := tracedCall.FindStringSubmatch(line)
		switch {
		case tracedRest.MatchString(line): // the call was judged when it began
		case call == nil:
			faults = append(faults, "not understood: "+line)
		case call[2] == "clone", call[2] == "clone3", call[2] == "pidfd_send_signal":
		case call[2] != "tgkill" && call[2] != "kill" || call[3] != processes(call[1]):
			faults = append(faults, "a signal by number: "+line)
		}
	}
	return faults
}

// processesOf finds out from a trace which process a thread belongs to. A thread that no call has made is the first one
// of its process.
func processesOf(trace string) func(thread string) string {
	parents := map[string]string{} // of threads, not of processes
	begun := map[string]bool{}     // a caller makes a thread
	for line := range strings.Lines(trace) {
		call := tracedCall.FindStringSubmatch(line)
		if call == nil {
			call = tracedRest.FindStringSubmatch(line)
		}
		if call == nil || call[2] != "clone" && call[2] != "clone3" {
			continue
		}
		begun[call[1]] = begun[call[1]] || strings.Contains(line, "CLONE_THREAD")
		if strings.Contains(line, "<unfinished ...>") {
			continue
		}
		if child := tracedChild.FindStringSubmatch(line); child != nil && begun[call[1]] {
			parents[child[1]] = call[1]
		}
		delete(begun, call[1])
	}

	return func(thread string) string {
		for parents[thread] != "" {
			thread = parents[thread]
		}
		return thread
	}
}

// TestSignalsByNumber: a trace shows a signal that another process could get.
func TestSignalsByNumber(t *testing.T) {
	const threads = "10 clone(child_stack=0xc0, flags=CLONE_VM|CLONE_THREAD|CLONE_SYSVSEM, tls=0xc0) = 11\n" +
		"11 clone(child_stack=0xc0, flags=CLONE_VM|CLONE_THREAD <unfinished ...>\n" +
		"10 clone3({flags=CLONE_VFORK|CLONE_VM, exit_signal=SIGCHLD}, 88 <unfinished ...>\n" +
		"11 <... clone resumed>, tls=0xc0) = 12\n10 <... clone3 resumed>) = 20\n" +
		"20 clone3({flags=CLONE_VM|CLONE_THREAD}, 88) = 21\n"
	for line, good := range map[string]bool{
		"12 tgkill(10, 11, SIGURG) = 0":                     true,
		"21 tgkill(20, 20, SIGURG <unfinished ...>":         true,
		"10 <... tgkill resumed>) = 0":                      true,
		"12 pidfd_send_signal(9, SIGTERM, NULL, 0) = 0":     true,
		"21 tgkill(10, 11, SIGURG) = 0":                     false,
		"10 tgkill(20, 21, SIGURG) = 0":                     false,
		"10 kill(20, SIGTERM) = 0":                          false,
		"10 kill(-10, SIGTERM) = 0":                         false,
		"10 kill(-1, SIGTERM <unfinished ...>":              false,
		"10 tkill(11, SIGTERM) = 0":                         false,
		"10 rt_sigqueueinfo(20, SIGTERM, {si_signo=1}) = 0": false,
		"10 tgk": false,
	} {
		if faults := byNumber(threads + line + "\n"); (len(faults) == 0) != good || len(faults) > 1 {
			t.Errorf("%s: %q", line, faults)
		}
	}
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
