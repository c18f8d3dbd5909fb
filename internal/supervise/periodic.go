package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/cron"
)

// mayEnd reports whether it is in order that the process ends by itself.
func mayEnd(p gozzard.Policy) bool { return p.Kind == gozzard.KindOneShot || p.Periodic() }

// plan is when a periodic process runs. The times are those of the clock that people see: a timer is only a reason
// to look at it.
type plan struct {
	rule, zone string
	schedule   *cron.Schedule // nil when the rule cannot be read
	next       time.Time
	madeAt     time.Time // by the same clock
}

// runDue reports whether a periodic process must run now, and keeps what the status says about its plan. Runs that
// nobody was there for are not made up.
func (a *actor) runDue() bool {
	if !a.known || !a.rec.Hosted || a.spec == nil || !a.spec.Policy.Periodic() {
		if a.plan != nil {
			a.plan, a.notes.plan = nil, ""
			a.publish(false)
		}
		return false
	}

	p := a.spec.Policy
	if a.plan == nil || a.plan.rule != p.CrontabRule || a.plan.zone != p.TimeZone {
		a.plan = &plan{rule: p.CrontabRule, zone: p.TimeZone}
		var err error
		if a.plan.schedule, err = cron.Parse(p.CrontabRule, p.TimeZone); err != nil {
			a.notes.plan = "hosted, but it never runs: " + err.Error()
			a.publish(false)
		}
	}

	if a.plan.schedule == nil {
		return false
	}

	now := a.s.now()
	if a.plan.next.IsZero() || now.Before(a.plan.madeAt) { // the clock was set back: the old plan may be far away
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

// waitsForRun reports whether the process is down and its rule will start it.
func (a *actor) waitsForRun() bool {
	return a.known && a.rec.Hosted && !a.running() && a.spec != nil && a.spec.Policy.Periodic()
}

// runPlanned does the run that is due.
func (a *actor) runPlanned(ctx context.Context) {
	if !a.takeSlot(ctx) {
		return // an operation comes first; the run is still due
	}

	defer a.freeSlot()
	due := a.plan.next
	a.planNext(a.s.now())

	out := a.attempt(func() gozzard.Outcome {
		if err := a.s.permit(a.spec); err != nil {
			return failed(gozzard.CodeRefused, "the run of %s was left out: %v", clock(due), err)
		}
		if _, err := a.look(); err != nil {
			return failed(gozzard.CodeCommandFailed, "%v", err)
		}

		if a.running() {
			if a.spec.Policy.Overlap != gozzard.OverlapKill {
				return failed(gozzard.CodeAlreadyRunning, "the run of %s was left out: the one before still runs",
					clock(due))
			}
			if out := a.bringDown(ctx, gozzard.OpID{}, gozzard.ActionStop); out.Code != gozzard.CodeOK {
				return out
			}
		}

		return a.bringUp(ctx, launch{action: gozzard.ActionStart, pullUp: true})
	})

	if out.Code == "" {
		return
	}

	a.message = gozzard.Clip(out.Message, maxStatusBytes)
	a.publish(false)
}
