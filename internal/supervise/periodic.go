package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/cron"
)

// mayEnd reports whether the process is expected to end, so that its end is no failure.
func mayEnd(p gozzard.Policy) bool { return p.MayEnd() }

// plan says when a periodic process runs. The times are wall-clock times. A timer only makes the actor look at them.
type plan struct {
	rule, zone string
	schedule   *cron.Schedule // nil if the rule cannot be read
	next       time.Time      // the next run
	madeAt     time.Time      // when next was planned
}

// runDue reports whether a periodic process must run now, and updates what the status says about its plan. Runs that
// were missed while the agent did not run are not repeated.
func (a *actor) runDue() bool {
	// Forget the plan of a process that has none any more.
	if !a.managed || !a.rec.Hosted || a.spec == nil || !a.spec.Policy.Periodic() {
		if a.plan != nil {
			a.plan, a.notes.plan = nil, ""
			a.publish(false)
		}
		return false
	}

	// Read the rule if it is new.
	p := a.spec.Policy
	if a.plan == nil || a.plan.rule != p.CrontabRule || a.plan.zone != p.TimeZone {
		a.plan = &plan{rule: p.CrontabRule, zone: p.TimeZone}
		var err error
		if a.plan.schedule, err = cron.Parse(p.CrontabRule, p.TimeZone); err != nil {
			a.notes.plan = "supervised, but it never runs: " + err.Error()
			a.publish(false)
		}
	}
	if a.plan.schedule == nil {
		return false
	}

	// Plan again if the clock was set back, because the planned time may be far away.
	now := a.s.now()
	if a.plan.next.IsZero() || now.Before(a.plan.madeAt) {
		a.planNext(now)
	}
	return !now.Before(a.plan.next)
}

// planNext plans the first run after now.
func (a *actor) planNext(now time.Time) {
	a.plan.next, a.plan.madeAt = a.plan.schedule.Next(now), now
	a.notes.plan = nextRunText(a.plan.next)
	a.publish(false)
}

// awaitsPlannedRun reports whether the process is down and its rule will start it.
func (a *actor) awaitsPlannedRun() bool {
	return a.managed && a.rec.Hosted && !a.running() && a.spec != nil && a.spec.Policy.Periodic()
}

// startPlannedRun starts the run that is due.
func (a *actor) startPlannedRun(ctx context.Context) {
	if !a.acquireSlot(ctx) {
		return // an operation comes first; the run is still due
	}
	defer a.releaseSlot()

	due := a.plan.next
	a.planNext(a.s.now())
	out := a.execute(func() gozzard.Outcome { return a.runOnce(ctx, due) })
	if out.Code == "" {
		return
	}

	a.message = clipText(out.Message)
	if !a.running() {
		a.noteFailed(out.Code != gozzard.CodeOK)
	}
	a.publish(false)
}

// runOnce carries out the run that was due at the given time.
func (a *actor) runOnce(ctx context.Context, due time.Time) gozzard.Outcome {
	// Skip the run if the policy forbids it.
	if err := a.s.permit(a.key, a.spec); err != nil {
		return failed(gozzard.CodeRefused, "the run of %s was skipped: %v", clock(due), err)
	}

	if name, why, _ := a.missing(); name != "" {
		return failed(gozzard.CodeCheckFailed, "the run of %s was skipped: it comes after %s, %s", clock(due), name, why)
	}

	// End the previous run, or skip this one.
	if _, err := a.look(); err != nil {
		return failed(gozzard.CodeCommandFailed, "%v", err)
	}
	if a.running() {
		if a.spec.Policy.Overlap != gozzard.OverlapKill {
			return failed(gozzard.CodeAlreadyRunning,
				"the run of %s was skipped: the previous run is still running", clock(due))
		}
		if out := a.bringDown(ctx, gozzard.OpID{}, gozzard.ActionStop); out.Code != gozzard.CodeOK {
			return out
		}
	}

	return a.bringUp(ctx, launch{action: gozzard.ActionStart, pullUp: true})
}
