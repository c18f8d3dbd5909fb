package supervise

import (
	"maps"
	"time"

	"github.com/gozzard/gozzard"
)

// view is what other goroutines may see of a process. The actor replaces it when its state has changed; samples
// change the usage in it.
type view struct {
	managed     bool
	status      gozzard.Status // without ReportedAt and usage
	spec        *gozzard.Spec
	encoded     []byte // the definition as it came; spec has its account, too
	run         uint64
	proc        Proc // zero if the process is not running
	held        Held // what is on record
	starting    bool
	orphans     int
	unclear     bool
	watched     bool
	usage       Usage
	sampled     bool  // usage was measured
	shown       Usage // the usage in the last call of Changed
	limitCounts limitCounts
	health      string
	ready       bool // see actor.ready

	next   time.Time // of a periodic process: the next run
	madeAt time.Time // when next was planned

	since time.Time
}

// publish renews the view and reports a visible change. With always it reports even if nothing has changed. It does
// not report processes that are not managed yet.
func (a *actor) publish(always bool) {
	before, now := a.updateView()
	a.publishChange(before, now, always)
}

// publishChange reports the difference between two views, if it is visible.
func (a *actor) publishChange(before, now view, always bool) {
	if now.managed && (always || !before.managed || !sameStatus(before.status, now.status)) {
		a.s.changed(now.report(a.s.now()))
	}
}

// updateView makes a new view from the state.
func (a *actor) updateView() (before, now view) {
	a.mu.Lock()
	defer a.mu.Unlock()

	before = a.view
	v := view{
		managed: a.managed, status: a.status(), spec: a.spec, encoded: a.rec.Spec,
		run: a.run, proc: a.proc, watched: a.stopWatch != nil, held: a.held, starting: a.starting,
		orphans: len(a.orphans), unclear: a.unclear != "",
		health: a.health.text, ready: a.ready(), since: a.since,
	}
	if a.plan != nil {
		v.next, v.madeAt = a.plan.next, a.plan.madeAt
	}
	if v.proc == before.proc {
		v.usage, v.sampled, v.limitCounts = before.usage, before.sampled, before.limitCounts
	}

	v.shown = v.usage
	a.view = v
	return before, v
}

func (a *actor) snapshot() view {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.view
}

// currentProc returns the process in the view, which is zero if the process is not running.
func (a *actor) currentProc() Proc {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.view.proc
}

func (a *actor) statusNow(now time.Time) (gozzard.Status, bool) {
	v := a.snapshot()
	return v.report(now), v.managed
}

// status describes the state as the rest of the fleet knows it.
func (a *actor) status() gozzard.Status {
	st := gozzard.Status{
		Key: a.key, Labels: a.rec.Labels,
		Wanted: a.rec.Wanted, State: gozzard.StateStopped, Hosted: a.rec.Hosted,
		PID: -1, Version: a.version, Message: statusText(a.message, a.notes),
		RegisteredAt: a.rec.RegisteredAt, StartedAt: a.rec.LastStart,
	}

	if !a.running() && !a.presumed.IsZero() {
		st.State, st.PID = gozzard.StateRunning, int32(a.presumed.PID)
	}
	if a.running() {
		st.State, st.PID = gozzard.StateRunning, int32(a.proc.PID)
		if !a.procStart.IsZero() { // something else may have started the process, or an earlier run of the agent
			st.StartedAt = max(st.StartedAt, a.procStart.Unix())
		}
	}

	st.Condition, st.Kind = a.condition(), a.shownKind()
	st.Restarts, st.Exit, st.NextAt = a.past.Restarts, a.past.Exit, a.nextAt(st.Condition)
	if a.tracksRuns() {
		st.LastRun = a.past.Run
	}
	st.Health, st.HealthMessage = a.healthNow()
	return st
}

// shownKind is the kind of the process, none if its definition cannot be read.
func (a *actor) shownKind() gozzard.ShownKind {
	if a.spec == nil {
		return gozzard.ShownNone
	}
	return a.spec.Policy.Shown()
}

// report adds the time and the usage to the status.
func (v view) report(now time.Time) gozzard.Status {
	st := v.status
	st.ReportedAt = now.Unix()
	st.CPU, st.Mem, st.FD, st.Disk, st.Net = v.usage.CPU, v.usage.Mem, v.usage.FD, v.usage.Disk, v.usage.Net
	st.MemBytes = v.usage.MemKB << 10
	return st
}

func sameStatus(x, y gozzard.Status) bool {
	return x.Wanted == y.Wanted && x.State == y.State && x.Hosted == y.Hosted && x.PID == y.PID &&
		x.Version == y.Version && x.Message == y.Message &&
		x.RegisteredAt == y.RegisteredAt && x.StartedAt == y.StartedAt && maps.Equal(x.Labels, y.Labels) &&
		x.Condition == y.Condition && x.Kind == y.Kind && x.Restarts == y.Restarts && x.Exit == y.Exit &&
		x.NextAt == y.NextAt && x.LastRun == y.LastRun && x.Health == y.Health && x.HealthMessage == y.HealthMessage
}
