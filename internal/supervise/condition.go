package supervise

import (
	"time"

	"github.com/gozzard/gozzard"
)

// conditionInput is everything that the state of a process, as people see it, depends on.
type conditionInput struct {
	kind   gozzard.ShownKind
	hosted bool
	wanted gozzard.RunState

	readable bool // the definition can be read; without it the process cannot be recognised
	looked   bool // the agent has looked for the process
	neverRan bool // no run of it is known: the agent has registered it and not started it yet
	running  bool // its process is there
	unclear  bool // it cannot be said which process it is

	launching bool // a start is in progress: its command runs, its check is not over, or it waits for others
	unhealthy bool // the health check fails

	awaitsStart bool // the agent will start it without a request
	startLater  bool // not at once
	downs       int  // quick ends and failed starts in a row
	awaitsRun   bool // a planned run will start it

	startFailed bool           // the newest start has failed
	completed   bool           // the newest run ended by itself and well, and the definition wants no restart after that
	end         gozzard.Ending // of the newest run of a process that is expected to end
}

// condition decides in which state a process is. It never guesses: if the agent has not found out whether the process
// runs, the state is unknown.
func condition(in conditionInput) gozzard.Condition {
	// What runs.
	switch {
	case in.running && in.launching:
		return gozzard.ConditionStarting
	case in.running && in.unhealthy:
		return gozzard.ConditionUnhealthy
	case in.running:
		return gozzard.ConditionRunning
	case in.launching:
		return gozzard.ConditionStarting
	case in.readable && !in.looked && !in.unclear && in.neverRan && in.awaitsRun:
		return gozzard.ConditionScheduled // there is nothing to look for before its first run
	case !in.readable || !in.looked || in.unclear:
		return gozzard.ConditionUnknown
	}

	// What will be started without a request.
	switch {
	case in.awaitsStart && !in.startLater:
		return gozzard.ConditionStarting
	case in.awaitsStart && in.downs >= gozzard.CrashLoopExits:
		return gozzard.ConditionCrashLoop
	case in.awaitsStart:
		return gozzard.ConditionBackingOff
	case in.awaitsRun && (in.startFailed || endedBadly(in.end)):
		return gozzard.ConditionFailed
	case in.awaitsRun:
		return gozzard.ConditionScheduled
	}

	// What stays down.
	switch {
	case in.startFailed:
		return gozzard.ConditionFailed
	case in.hosted && (in.kind == gozzard.ShownPeriodic || in.kind == gozzard.ShownResident && !in.completed):
		return gozzard.ConditionFailed // it should run, or have a plan, and cannot be started
	case in.wanted != gozzard.StateRunning:
		return gozzard.ConditionStopped
	case in.completed || in.kind == gozzard.ShownOneShot && in.end.Well():
		return gozzard.ConditionCompleted
	case in.kind == gozzard.ShownOneShot && endedBadly(in.end):
		return gozzard.ConditionFailed
	}
	return gozzard.ConditionStopped
}

// endedBadly reports whether a run is known not to have exited with 0.
func endedBadly(e gozzard.Ending) bool { return e.OOM || e.Known && !e.Well() }

// condition gathers what the decision depends on.
func (a *actor) condition() gozzard.Condition {
	wanted, _ := a.pullUpWanted()
	in := conditionInput{
		hosted: a.rec.Hosted && a.managed, wanted: a.rec.Wanted,
		readable: a.spec != nil, looked: a.looked, running: a.running() || !a.presumed.IsZero(), unclear: a.unclear != "",
		launching:   a.starting || a.launching || a.waiting && wanted || a.running() && !a.settleAt.IsZero(),
		unhealthy:   a.health.unhealthy,
		awaitsStart: wanted, startLater: a.pullAt.After(time.Now()), downs: a.downs,
		awaitsRun:   a.awaitsPlannedRun() && !a.planUnreadable(),
		neverRan:    a.rec.LastStart == 0 && a.past.Run.StartedAt == 0 && !a.past.Failed,
		startFailed: a.past.Failed, completed: a.completed, end: a.past.Run.End,
	}
	if a.spec != nil {
		in.kind = a.spec.Policy.Shown()
	}
	return condition(in)
}

// planUnreadable reports whether the rule of the process was read and makes no sense. A rule that was not read yet is
// read before anything else happens.
func (a *actor) planUnreadable() bool {
	p := a.spec.Policy
	return a.plan != nil && a.plan.schedule == nil && a.plan.rule == p.CrontabRule && a.plan.zone == p.TimeZone
}

// nextAt is when the process is started next, 0 if nothing is planned or the time is not known.
func (a *actor) nextAt(c gozzard.Condition) int64 {
	switch {
	case c == gozzard.ConditionBackingOff || c == gozzard.ConditionCrashLoop:
		if len(a.orphans) > 0 && a.spec.Policy.Orphans == gozzard.OrphansWait {
			return 0 // when they have ended
		}
		return a.pullAt.UnixMilli()
	case a.rec.Hosted && a.plan != nil && !a.plan.next.IsZero():
		return a.plan.next.UnixMilli()
	}
	return 0
}

// healthNow is the result of the health check, and what is to be said about it.
func (a *actor) healthNow() (gozzard.Health, string) {
	switch h := &a.health; {
	case !a.running():
	case h.unhealthy:
		return gozzard.HealthFailing, h.text
	case h.overdue:
		return gozzard.HealthNone, h.text
	case h.text == healthy:
		return gozzard.HealthPassing, ""
	}
	return gozzard.HealthNone, ""
}
