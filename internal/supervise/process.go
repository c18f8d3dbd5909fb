package supervise

import (
	"fmt"
	"maps"
	"time"

	"github.com/gozzard/gozzard"
)

// state is what an actor knows of its process.
type state struct {
	known bool   // managed: rec is in the journal
	rec   Record // as it is kept
	spec  *gozzard.Spec

	run       uint64 // raised whenever another process is taken for it, so that late events are recognised
	proc      Proc   // zero when it does not run
	procStart time.Time
	byCgroup  bool      // how the newest one was found
	upSince   time.Time // monotonic
	oomKills  int       // of its group when it came up
	lookedAt  time.Time // when it was last seen not to run
	since     time.Time // when it came to run, or was first seen not to
	restarts  int       // that nobody asked for, since the agent began
	stopWatch func()    // nil: not watched
	version   string
	message   string
	lastExit  string // how the newest run ended
	ended     *Exit  // the same for programs; nil while no run has ended since the last start
	notes     notes
	restoring bool // the look after the agent came up
	stopping  bool // the process is being ended on purpose

	downs  int       // exits and failed starts in a row
	pullAt time.Time // when the next pull-up is due; zero: none is waiting

	breach   *breach // a limit that must be seen to
	alerted  bool    // notes.limit is about now
	curbs    int     // how often a limit was enforced since somebody last cared
	enforced bool    // the kernel was asked to hold the process to its limits
	health   health
	plan     *plan // of a periodic process
}

// notes are what the status message says beside what happened last; each stands until it is not true any more.
type notes struct{ limit, kernel, health, plan string }

// view is what others may see of a process.
type view struct {
	known   bool
	status  gozzard.Status // but for ReportedAt and usage
	spec    *gozzard.Spec
	proc    Proc
	watched bool
	usage   Usage
	sampled bool
	shown   Usage // as Changed told it last
	strikes strikes
	health  string
	next    time.Time // of a periodic process
	madeAt  time.Time

	since    time.Time
	restarts int
}

// restore sets the state that the journal has. A definition that cannot be read is kept as it is: it may be one of
// a newer version.
func (a *actor) restore(rec Record) {
	a.known, a.rec = true, rec
	a.rec.Labels = maps.Clone(rec.Labels)
	spec, err := gozzard.DecodeSpec(rec.Spec)
	if err != nil {
		a.log.Error("cannot read the kept definition", "error", err)
		a.message = "its definition cannot be read"
	} else {
		a.spec = spec
	}
	a.show()
}

func (a *actor) running() bool { return !a.proc.IsZero() }

// look finds out whether the process runs and makes the state say so.
func (a *actor) look() (Found, error) {
	if a.spec == nil {
		return Found{Reason: "its definition cannot be read"}, nil
	}

	f, err := a.s.host.Find(a.key, a.spec)
	if err == nil && f.Proc.IsZero() {
		a.lookedAt = time.Now()
	}

	switch {
	case err != nil:
		return Found{}, fmt.Errorf("cannot look for %s: %w", a.key, err)
	case f.Proc == a.proc:
		if a.since.IsZero() {
			a.since = a.s.now()
		}
	case f.Proc.IsZero():
		a.down(Exit{})
	default:
		a.adopt(f, Exit{})
	}

	return f, nil
}

// exited handles the end of the watched process. Another one may have taken its place: a daemon that replaced
// itself, or somebody's restart.
func (a *actor) exited(e Exit) {
	gone := a.proc
	f, err := a.s.host.Find(a.key, a.spec)
	a.lookedAt = time.Now()
	switch {
	case err != nil:
		a.log.Warn("cannot look for the process after its exit", "error", err)
		a.down(e)
	case f.Proc.IsZero() || f.Proc == gone: // a watch that says gone is right
		a.down(e)
	default:
		a.adopt(f, e)
	}
}

// adopt takes a found process for the one to look after; before tells how the one ended whose place it takes, if
// there was one.
func (a *actor) adopt(f Found, before Exit) {
	a.unwatch()

	if a.running() {
		a.announceExit(a.proc, before)
	}

	a.run++
	a.ended = nil
	a.renewHealth()
	a.proc, a.procStart, a.byCgroup, a.upSince = f.Proc, f.StartedAt, f.ByCgroup, time.Now()
	if a.since = f.StartedAt; a.since.IsZero() {
		a.since = a.s.now()
	}
	if !a.operating {
		a.message = ""
	}

	a.announceStart()
	a.oomKills = a.s.host.OOMKills(a.key)
	run := a.run
	stop, err := a.s.host.Watch(f.Proc, func(e Exit) { a.post(event{kind: eventExited, run: run, exit: e}) })
	switch {
	case err == nil:
		a.stopWatch = stop
	case a.s.host.Alive(f.Proc): // the regular pass has an eye on it instead
		a.log.Warn("cannot watch the process, looking at intervals", "pid", f.Proc.PID, "error", err)
	default:
		a.down(Exit{})
		return
	}

	a.holdByKernel()
	a.probeVersion()
	a.publish(false)
	a.s.sampleSoon(a)
}

// down notes that the process does not run any more. What goes down during an operation is that operation's business.
func (a *actor) down(e Exit) {
	if !a.running() {
		return
	}

	up := time.Since(a.upSince)
	a.unwatch()

	if !e.Known || e.Signal == "SIGKILL" {
		e.OOM = e.OOM || a.s.host.OOMKills(a.key) > a.oomKills
	}

	a.announceExit(a.proc, e)
	a.run++
	a.ended = &e
	a.renewHealth()

	if a.alerted {
		a.alerted, a.notes.limit = false, ""
	}

	a.proc, a.procStart, a.since = Proc{}, time.Time{}, a.s.now()
	a.lastExit = exitText(e)
	if a.operating {
		return
	}

	a.message = "the process " + a.lastExit
	a.countDown(up, a.lastExit)
}

// countDown plans the next pull-up of a hosted process that went down after a run of the given length, or could not
// be started.
func (a *actor) countDown(up time.Duration, why string) {
	if wanted, reason := a.pullUpWanted(); !wanted {
		if reason != "" {
			a.message = reason
		}
		return
	}

	a.downs = downsAfter(a.downs, up, a.spec.Policy)
	delay := pullUpDelay(a.spec.Policy, a.downs, a.s.rand())
	a.pullAt = time.Now().Add(delay)

	if delay > 0 {
		a.message = gozzard.Clip(crashLoop(a.downs, delay, why), maxStatusBytes)
	}

	a.log.Info("process is down, pulling it up", "downs", a.downs, "in", delay, "why", why)
}

func (a *actor) pullUpWanted() (bool, string) {
	return pullUpWanted(standing{hosted: a.rec.Hosted && a.known, running: a.running(), spec: a.spec})
}

func (a *actor) unwatch() {
	if a.stopWatch != nil {
		a.stopWatch()
		a.stopWatch = nil
	}
}

// publish lets others see the state and tells of a visible change. Processes that are not managed yet are not told of.
func (a *actor) publish(always bool) {
	before, now := a.show()
	a.tell(before, now, always)
}

// tell tells of a change between two views.
func (a *actor) tell(before, now view, always bool) {
	if now.known && (always || !before.known || !sameStatus(before.status, now.status)) {
		a.s.changed(now.report(a.s.now()))
	}
}

// show renews the view.
func (a *actor) show() (before, now view) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before = a.view
	v := view{known: a.known, spec: a.spec, proc: a.proc, watched: a.stopWatch != nil, status: a.status(),
		health: a.health.text, since: a.since, restarts: a.restarts}

	if a.plan != nil {
		v.next, v.madeAt = a.plan.next, a.plan.madeAt
	}
	if v.proc == before.proc {
		v.usage, v.sampled, v.strikes = before.usage, before.sampled, before.strikes
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

// present is the process that runs as far as others may know.
func (a *actor) present() Proc {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.view.proc
}

func (a *actor) statusNow(now time.Time) (gozzard.Status, bool) {
	v := a.snapshot()
	return v.report(now), v.known
}

// status puts the state into the words of the fleet.
func (a *actor) status() gozzard.Status {
	st := gozzard.Status{
		Key: a.key, Labels: a.rec.Labels, Wanted: a.rec.Wanted, State: gozzard.StateStopped, Hosted: a.rec.Hosted,
		PID:     -1,
		Version: a.version, Message: statusText(a.message, a.notes), RegisteredAt: a.rec.RegisteredAt,
		StartedAt: a.rec.LastStart,
	}

	if a.running() {
		st.State, st.PID = gozzard.StateRunning, int32(a.proc.PID)
		if !a.procStart.IsZero() { // of one that was started by somebody else, or before the agent
			st.StartedAt = max(st.StartedAt, a.procStart.Unix())
		}
	}

	return st
}

func (v view) report(now time.Time) gozzard.Status {
	st := v.status
	st.ReportedAt = now.Unix()
	st.CPU, st.Mem, st.FD, st.Disk, st.Net = v.usage.CPU, v.usage.Mem, v.usage.FD, v.usage.Disk, v.usage.Net
	return st
}

func sameStatus(x, y gozzard.Status) bool {
	return x.Wanted == y.Wanted && x.State == y.State && x.Hosted == y.Hosted && x.PID == y.PID &&
		x.Version == y.Version && x.Message == y.Message &&
		x.RegisteredAt == y.RegisteredAt && x.StartedAt == y.StartedAt && maps.Equal(x.Labels, y.Labels)
}
