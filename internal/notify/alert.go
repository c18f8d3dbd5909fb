package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

// The kinds of alerts. They are stored, and receivers see them.
const (
	kindCrashLoop     = "crash_loop"
	kindHostLost      = "host_lost"
	kindLimit         = "limit_exceeded"
	kindTaskFailed    = "task_failed"
	kindHealth        = "health_failing"
	kindStartFailed   = "start_failed"
	kindRunFailed     = "run_failed"
	kindEnded         = "process_ended"
	kindRestartFailed = "restart_failed"
	kindGaveUp        = "gave_up"
	kindOrphaned      = "orphaned"
	kindPolicy        = "policy_changed"
	kindForeign       = "foreign_address"
	kindLeftOut       = "topology_left_out"

	kindTest = "test" // of a test message only
)

// Kinds are the kinds of alerts. A subscription without kinds gets the first ones, up to process_ended.
func Kinds() []string {
	return []string{kindCrashLoop, kindHostLost, kindLimit, kindTaskFailed, kindHealth, kindStartFailed, kindRunFailed,
		kindEnded, kindRestartFailed, kindGaveUp, kindOrphaned, kindPolicy, kindForeign, kindLeftOut}
}

// usualKinds is how many of Kinds a subscription gets that names none.
const usualKinds = 8

// effect is what an event means for alerts.
type effect struct {
	begins string   // the kind of the alert that fires; "": none
	moment bool     // it has no end
	ends   []string // the kinds of alerts of the same process or host that end
}

// effectOf decides what an event means. What an operation of the record caused is no surprise: only a start that failed is
// an alert then.
func effectOf(e *record.Event) effect {
	planned := e.Task != ""
	up := []string{kindEnded, kindStartFailed, kindRestartFailed, kindGaveUp}
	switch e.Kind {
	case gozzard.EventCrashLoop:
		return effect{begins: kindCrashLoop}
	case gozzard.EventHostLost:
		return effect{begins: kindHostLost}
	case gozzard.EventHostBack:
		return effect{ends: []string{kindHostLost}}
	case gozzard.EventLimitExceeded, gozzard.EventGroupLimitExceeded:
		return effect{begins: kindLimit}
	case gozzard.EventTaskFailed:
		return effect{begins: kindTaskFailed, moment: true}
	case gozzard.EventHealth:
		if strings.HasPrefix(e.Message, "unhealthy") {
			return effect{begins: kindHealth}
		}
		return effect{ends: []string{kindHealth}}
	case gozzard.EventStartFailed:
		return effect{begins: kindStartFailed}
	case gozzard.EventRestartFailed:
		return effect{begins: kindRestartFailed}
	case gozzard.EventRestartCancelled:
		if !planned && strings.HasPrefix(e.Message, "gave up") {
			return effect{begins: kindGaveUp}
		}
	case gozzard.EventExited:
		if !planned {
			return effect{begins: kindEnded}
		}
	case gozzard.EventRan:
		switch {
		case !endedBadly(e):
			return effect{ends: []string{kindRunFailed}}
		case !planned:
			return effect{begins: kindRunFailed}
		}
	case gozzard.EventStarted, gozzard.EventRestarted:
		return effect{ends: up}
	case gozzard.EventOrphaned:
		return effect{begins: kindOrphaned, moment: true}
	case gozzard.EventPolicyChanged:
		return effect{begins: kindPolicy, moment: true}
	case gozzard.EventForeignAddress:
		return effect{begins: kindForeign, moment: true}
	case gozzard.EventLeftOut:
		return effect{begins: kindLeftOut, moment: true}
	}
	return effect{}
}

// endedBadly reports whether a run is known not to have ended with the exit code 0.
func endedBadly(e *record.Event) bool {
	code, known := e.ExitCode()
	return e.Signal != "" || known && code != 0
}

// fingerprint names an alert: what it is about, and its kind. Two moments of the same kind are one alert until it is sent.
func fingerprint(kind string, e *record.Event) string {
	task := ""
	if kind == kindTaskFailed {
		task = string(e.Task)
	}
	h := sha256.New()
	for _, s := range []string{kind, string(e.Agent), e.Key.Namespace, e.Key.Name, task} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// The waits before the state of a process ends its alerts.
const (
	settleTime = 10 * time.Second // the status may arrive after the event
	steadyTime = time.Minute      // a run that lasted this long is not part of a crash loop
)

// hasEnded decides whether the present state of a process ends an alert about it, and why.
func hasEnded(a *record.Alert, row fleet.Row, known bool, now time.Time) (why string, ended bool) {
	if !known {
		return "the process is not registered any more", true
	}
	if row.Stale || now.Sub(a.Changed) < settleTime {
		return "", false
	}

	st := &row.Status
	runs := row.Condition == gozzard.ConditionRunning || row.Condition == gozzard.ConditionUnhealthy
	idle := slices.Contains([]gozzard.Condition{gozzard.ConditionStopped, gozzard.ConditionCompleted,
		gozzard.ConditionScheduled}, row.Condition) && st.Wanted != gozzard.StateRunning
	switch {
	case idle || row.Condition == gozzard.ConditionCompleted || row.Condition == gozzard.ConditionUnregistered:
		return "nothing wants the process to run", true
	case a.Kind == kindCrashLoop || a.Kind == kindGaveUp:
		return "the process runs steadily", runs && now.Sub(time.Unix(st.StartedAt, 0)) >= steadyTime
	case a.Kind == kindRunFailed:
		return "the newest run ended well", row.Condition == gozzard.ConditionScheduled
	case a.Kind == kindHealth:
		return "the health check passes", runs && st.Health != gozzard.HealthFailing
	case a.Kind == kindLimit:
		return "the process is within its limits", runs && !strings.Contains(st.Message, "over its limit")
	}
	return "the process runs", runs
}
