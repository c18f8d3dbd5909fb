package supervise

import (
	"math"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// The decisions of supervision are pure functions: they have no effect and read no clock. A decision that people see
// comes with its reason.

const (
	backoffBase   = time.Second
	backoffCap    = 300 * time.Second
	backoffJitter = 0.2
	steadyAfter   = 60 * time.Second // a run that lasted this long is not part of a crash loop

	// quickPullUps is how many pull-ups in a row may follow each other without a pause. A process decides by itself how
	// often it ends, and every pull-up costs the whole host, so no definition can ask for more.
	quickPullUps = 3

	// checkGrace is the shortest time after which a check fails, even if the definition asks for less. A command
	// that puts a daemon into the background ends before the daemon can be recognised, and a signal needs a moment
	// to arrive. It delays failures only.
	checkGrace = 500 * time.Millisecond

	// nameGrace is how long what a start command left running may have another name than the definition says. Between
	// fork and exec a process has the name of its parent, and on a busy host that is no short moment.
	nameGrace = 3 * time.Second

	// execFront is how long a program must run that was executed in place of its command, if there is no start check. A
	// program that cannot run at all, say for a wrong flag, ends within this time.
	execFront = 50 * time.Millisecond

	maxWindow = 24 * time.Hour // the limit for numbers in a definition
)

// window turns the seconds of a definition into a duration that cannot overflow.
func window(secs int) time.Duration {
	if secs <= 0 {
		return 0
	}
	if secs > int(maxWindow/time.Second) {
		return maxWindow
	}
	return time.Duration(secs) * time.Second
}

// commandTimeout is how long a command of the process may take. With 0 no command could ever run, so the shortest
// time is one second.
func commandTimeout(p gozzard.Policy) time.Duration { return max(window(p.OpTimeout), time.Second) }

// frontAfter is how long a start command must run before it may count as the process itself: until the start check
// is over, but not until the command's time-out. Without a start check a command that executes the program in its place is
// the process as soon as the program runs. Any other command gets a second: it may be a launcher that has the name of the
// daemon, and that may still fail.
func frontAfter(p gozzard.Policy, command string) time.Duration {
	if p.StartCheckSecs <= 0 && !mayEnd(p) && strings.HasPrefix(command, "exec ") {
		return execFront
	}
	return min(max(window(p.StartCheckSecs), time.Second), commandTimeout(p)*9/10)
}

// pullUpInput is everything that the decision about a pull-up depends on.
type pullUpInput struct {
	hosted  bool
	running bool
	spec    *gozzard.Spec // nil if it cannot be read
	// completed says that the newest run has ended by itself, as it should; downs counts exits and failed starts in a row.
	completed bool
	downs     int
}

// pullUpWanted decides whether the process must be started without a request. It gives a reason if the process is
// supervised and cannot be started.
func pullUpWanted(in pullUpInput) (wanted bool, reason string) {
	switch {
	case in.running || !in.hosted:
		return false, ""
	case in.spec == nil:
		return false, "supervised, but its definition cannot be read"
	case in.spec.Policy.Restart == gozzard.RestartOnFailure && in.completed:
		return false, "" // it ended, as it may
	case mayEnd(in.spec.Policy) && in.spec.Policy.Restart != gozzard.RestartOnFailure:
		return false, "" // it ended, as it should
	case in.spec.Policy.RestartMax > 0 && in.downs > in.spec.Policy.RestartMax:
		return false, gaveUp(in.spec.Policy.RestartMax)
	case in.spec.Control.Start == "":
		return false, "supervised, but the definition has no start command: it cannot be started"
	}
	return true, ""
}

// downsAfter counts how often in a row the process went down. A run that stayed up for a while begins a new count.
func downsAfter(downs int, up time.Duration, p gozzard.Policy) int {
	if up > steadyTime(p) {
		return 1
	}
	return downs + 1
}

// steadyTime is how long a run may last and still be part of a crash loop.
func steadyTime(p gozzard.Policy) time.Duration { return max(steadyAfter, 3*window(p.StartCheckSecs)) }

// pullUpDelay is how long to wait before the next pull-up, after the process went down for the downs-th time in a
// row. The first of StartRetries attempts comes at once and the others come StartInterval apart, but not less than a
// second from the fourth on. After that the time doubles (1 s·2ⁿ, not below StartInterval, ±20 %) up to five minutes.
// random is in [0, 1).
func pullUpDelay(p gozzard.Policy, downs int, random float64) time.Duration {
	interval := min(window(p.StartInterval), backoffCap)
	switch {
	case downs <= 0 || downs == 1 && p.StartRetries > 0:
		return 0
	case downs <= min(p.StartRetries, quickPullUps):
		return interval
	case downs <= p.StartRetries:
		return max(interval, backoffBase)
	}

	d := backoffCap
	if n := downs - 1; n < 20 { // a larger shift would overflow
		d = min(backoffBase<<n, backoffCap)
	}

	jittered := time.Duration(float64(d) * (1 - backoffJitter + 2*backoffJitter*random))
	return min(max(jittered, interval), backoffCap)
}

// flags are the wanted state of a process: whether it is supervised, and whether it should run.
type flags struct {
	hosted bool
	wanted gozzard.RunState
}

// flagsAfter returns the flags after an operation has ended with a code. Only a success changes them. A start that
// adopts what runs has succeeded when the process was running.
func flagsAfter(f flags, a gozzard.Action, code gozzard.Code, adopt bool) flags {
	if code != gozzard.CodeOK && !(adopt && a == gozzard.ActionStart && code == gozzard.CodeAlreadyRunning) {
		return f
	}
	switch a {
	case gozzard.ActionStart, gozzard.ActionRestart, gozzard.ActionHost:
		return flags{true, gozzard.StateRunning}
	case gozzard.ActionStop, gozzard.ActionKill:
		return flags{false, gozzard.StateStopped}
	case gozzard.ActionUnhost:
		return flags{false, f.wanted}
	}
	return f
}

func startsProcess(a gozzard.Action) bool {
	return a == gozzard.ActionStart || a == gozzard.ActionRestart
}

// startsAnew reports whether an operation resets the count and the delay of a crash loop. To supervise a process
// that is supervised already does not reset them, because some callers repeat that all the time.
func startsAnew(a gozzard.Action, wasHosted bool) bool {
	switch a {
	case gozzard.ActionStart, gozzard.ActionRestart, gozzard.ActionStop, gozzard.ActionKill:
		return true
	case gozzard.ActionHost:
		return !wasHosted
	}
	return false
}

// keepsMessage reports whether the status message stays as it is after a successful operation.
func keepsMessage(a gozzard.Action) bool {
	switch a {
	case gozzard.ActionRegister, gozzard.ActionUpdate, gozzard.ActionReload, gozzard.ActionHost:
		return true
	}
	return false
}

// noticeable reports whether a change of usage must be reported at once. Smaller changes wait for the next report.
func noticeable(shown, now Usage) bool {
	fd := math.Abs(float64(now.FD) - float64(shown.FD))
	return math.Abs(float64(now.CPU-shown.CPU)) >= 1 ||
		math.Abs(float64(now.Mem-shown.Mem)) >= 0.5 ||
		fd >= max(10, 0.1*float64(shown.FD)) ||
		(now.FD == 0) != (shown.FD == 0)
}
