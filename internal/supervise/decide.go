package supervise

import (
	"math"
	"time"

	"github.com/gozzard/gozzard"
)

// The decisions of supervision. Nothing here has an effect or looks at a clock; what is decided comes with its
// reason where people see it.

const (
	backoffBase   = time.Second
	backoffCap    = 300 * time.Second
	backoffJitter = 0.2
	steadyAfter   = 60 * time.Second // a run that lasted this long was no part of a crash loop

	// A command that puts its daemon into the background ends before the daemon can be recognised, and a signal
	// needs a moment to arrive: no check fails earlier than this, however short the definition's window is. It
	// delays failures only.
	checkGrace = 500 * time.Millisecond

	maxWindow = 24 * time.Hour // of hostile numbers in a definition
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

// commandTimeout is how long a command of the process may take. A literal 0 would be a command that never gets to
// run, so it means the least there is: one second.
func commandTimeout(p gozzard.Policy) time.Duration { return max(window(p.OpTimeout), time.Second) }

// frontAfter is when a start command that still runs may be taken for the process itself: when the check is over,
// but before its time is.
func frontAfter(p gozzard.Policy) time.Duration {
	return min(max(window(p.StartCheckSecs), time.Second), commandTimeout(p)*9/10)
}

// standing is what the decision about a pull-up is made from.
type standing struct {
	hosted  bool
	running bool
	spec    *gozzard.Spec // nil when there is none that can be read
}

// pullUpWanted decides whether supervision must start the process by itself. The reason is given when somebody who
// hosts it would expect a start.
func pullUpWanted(s standing) (wanted bool, reason string) {
	switch {
	case s.running || !s.hosted:
		return false, ""
	case s.spec == nil:
		return false, "hosted, but its definition cannot be read"
	case mayEnd(s.spec.Policy):
		return false, "" // it ended by itself, as it should
	case s.spec.Control.Start == "":
		return false, "hosted, but start_cmd is empty: it cannot be started"
	}
	return true, ""
}

// downsAfter counts how often in a row the process went down: a run that stayed up for a while begins a new count.
func downsAfter(downs int, up time.Duration, p gozzard.Policy) int {
	if up > max(steadyAfter, 3*window(p.StartCheckSecs)) {
		return 1
	}
	return downs + 1
}

// pullUpDelay is how long the next pull-up waits after the process went down for the downs-th time in a row: the
// first of StartRetries attempts comes at once, the others StartInterval apart, then the time doubles (1 s·2ⁿ, not
// below StartInterval, ±20 %) up to five minutes. random is in [0, 1).
func pullUpDelay(p gozzard.Policy, downs int, random float64) time.Duration {
	interval := min(window(p.StartInterval), backoffCap)
	switch {
	case downs <= 0 || downs == 1 && p.StartRetries > 0:
		return 0
	case downs <= p.StartRetries:
		return interval
	}

	d := backoffCap

	if n := downs - 1; n < 20 { // beyond, the shift only overflows
		d = min(backoffBase<<n, backoffCap)
	}

	jittered := time.Duration(float64(d) * (1 - backoffJitter + 2*backoffJitter*random))
	return min(max(jittered, interval), backoffCap)
}

// flags are the two desired facts of a process.
type flags struct {
	hosted bool
	wanted gozzard.RunState
}

// flagsAfter gives the flags after an operation ended with a code: they flip on success only.
func flagsAfter(f flags, a gozzard.Action, code gozzard.Code) flags {
	if code != gozzard.CodeOK {
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

// startsAnew reports whether an operation ends a crash loop in the sense that its count and its waiting begin
// again: somebody cares. Hosting what is hosted is not that: some callers repeat it all the time.
func startsAnew(a gozzard.Action, wasHosted bool) bool {
	switch a {
	case gozzard.ActionStart, gozzard.ActionRestart, gozzard.ActionStop, gozzard.ActionKill:
		return true
	case gozzard.ActionHost:
		return !wasHosted
	}
	return false
}

// keepsMessage reports whether a successful operation says nothing about what the status message tells.
func keepsMessage(a gozzard.Action) bool {
	switch a {
	case gozzard.ActionRegister, gozzard.ActionUpdate, gozzard.ActionReload, gozzard.ActionHost:
		return true
	}
	return false
}

// noticeable reports whether a change of usage is worth a message of its own; smaller ones travel with the next report.
func noticeable(shown, now Usage) bool {
	fd := math.Abs(float64(now.FD) - float64(shown.FD))
	return math.Abs(float64(now.CPU-shown.CPU)) >= 1 ||
		math.Abs(float64(now.Mem-shown.Mem)) >= 0.5 ||
		fd >= max(10, 0.1*float64(shown.FD)) ||
		(now.FD == 0) != (shown.FD == 0)
}
