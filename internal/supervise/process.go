package supervise

import (
	"fmt"
	"maps"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
)

// state is what an actor knows about its process.
type state struct {
	managed bool          // rec is in the journal
	rec     Record        // as it is in the journal
	spec    *gozzard.Spec // decoded from rec; nil if that failed

	run          uint64    // grows with every process that the actor begins or stops to watch; marks late events
	held         Held      // what is on record about the process, also after it has ended
	proc         Proc      // held.Proc while it is running, else zero
	procStart    time.Time // when proc started, if that is known
	byCgroup     bool      // the newest process was found by its cgroup
	upSince      time.Time // when the newest process was found, with a monotonic reading
	oomKills     int       // Host.OOMKills when the process was found
	lookedAt     time.Time // when a look last found no process
	since        time.Time // when the process started, or when it was first seen not running
	past         Past      // what is on record about earlier runs
	lateEnd      *pastEnd  // the newest end during a start in progress
	looked       bool      // a look for the process has succeeded
	stopWatch    func()    // nil if the process is not watched
	version      string    // what the version command printed
	message      string    // what happened last
	reloadFault  string    // the message of the newest reload that failed; a good one ends it
	lastExit     string    // how the newest run ended, in words
	printed      int64     // where its output begins, see lastLine
	printedKnown bool
	ended        *Exit // how the newest run ended; nil if no run has ended since the last start
	completed    bool  // the newest run ended by itself and well; held.Done has it for the next agent
	notes        notes
	restoring    bool      // the actor looks for the process for the first time after Restore
	presumed     Proc      // what was on record and alive at Restore; it is shown until the first look
	stopping     bool      // the process is being stopped on purpose
	starting     bool      // a start or restart is in progress
	launching    bool      // an operation, a pull-up or a plan starts the process, and may still wait for others
	waiting      bool      // its pull-up waits for others that must run before
	began        time.Time // when it began

	settleAt time.Time // when a process whose check was ended early counts as the main process; zero if it does already
	clearAt  time.Time // when to try again to end what a failed start has started; zero if there is nothing to end
	orphans  []Proc    // what a main process that has ended left behind
	unclear  string    // why it cannot be said which process it is; empty if it can be said

	downs  int       // exits and failed starts in a row
	pullAt time.Time // when the next pull-up is due; zero if none is planned

	breach       *breach // a limit that the actor must still act on
	alerted      bool    // notes.limit describes the present, not the past
	limitActions int     // actions on limits since the last call of resetCounts
	enforced     bool    // the kernel was asked to enforce the limits
	health       health
	plan         *plan // of a periodic process
}

// notes are the parts of the status message that stay until they are no longer true. They follow what happened last.
type notes struct{ identity, limit, kernel, health, plan string }

// restore sets the state that the journal has. A definition that cannot be decoded is kept, because a newer version
// may have written it.
func (a *actor) restore(rec Record) {
	a.managed, a.rec = true, rec
	a.s.host.Managed(a.key, true)
	a.rec.Labels = maps.Clone(rec.Labels)
	spec, err := gozzard.DecodeSpec(rec.Spec)
	if err != nil {
		a.log.Error("cannot read the definition in the journal", "err", err)
		a.message = "its definition cannot be read"
	} else {
		if a.spec = withAccount(spec, rec.Account); !rec.Unnamed {
			a.spec = withAccount(a.spec, a.s.former)
		}
		a.s.order.restore(a.key, spec.After)
	}
	if a.s.host.Alive(a.held.Proc) {
		a.presumed = a.held.Proc
	}
	a.completed, a.downs = a.held.Done, a.downsOnRecord()
	a.updateView()
}

func (a *actor) running() bool { return !a.proc.IsZero() }

// query says whose process is looked for.
func (a *actor) query() Query {
	return Query{Key: a.key, Spec: a.spec, Held: a.held, Starting: a.starting, Began: a.began,
		Taken: a.s.takenBut(a.key)}
}

// look finds out whether the process is running and corrects the state.
func (a *actor) look() (Found, error) {
	if a.spec == nil {
		return Found{Reason: "its definition cannot be read"}, nil
	}

	f, err := a.s.host.Find(a.query())
	a.looked = a.looked || err == nil
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
		a.markDown(Exit{})
	default:
		f = a.adopt(f, Exit{})
	}

	a.noteFinding(f)
	return f, nil
}

// handleExit handles the end of the watched process. Another process may have taken its place: a daemon that
// replaced itself, or a restart that Gozzard did not do. A stop ends the process that it began with, so it looks for
// no other.
func (a *actor) handleExit(e Exit) {
	if a.stopping {
		a.markDown(e)
		return
	}

	// What has run for a while after its command was no part of the command. What was adopted never was.
	gone := a.proc
	if a.starting && !a.delaying && time.Since(a.upSince) >= mainAfter && a.held.How != identity.HowPIDFile {
		a.settle()
	}
	f, err := a.s.host.Find(a.query())
	a.lookedAt = time.Now()

	switch {
	case err != nil:
		a.log.Warn("cannot look for the process after its exit", "err", err)
		a.markDown(e)
		return
	case f.Proc.IsZero() || f.Proc == gone: // the watch is right, whatever Find says
		a.markDown(e)
	default:
		f = a.adopt(f, e)
	}

	a.noteFinding(f)
}

// adopt makes a found process the one that the actor watches. If another process was running before, exit says how
// that one ended. It returns what was found, which changes if another definition was quicker.
func (a *actor) adopt(f Found, exit Exit) Found {
	// Put it on record, unless another definition has done so.
	if other := a.s.claim(f.Proc, a.key); other != "" {
		if a.held.Proc == f.Proc { // the other one adopted it while this definition was not managed
			a.setHeld(Held{})
		}
		a.markDown(exit)
		a.log.Info("the process belongs to another definition", "pid", f.Proc.PID, "other", other)
		return Found{Verdict: identity.Foreign, Reason: fmt.Sprintf("pid %d belongs to another definition", f.Proc.PID)}
	}

	// Leave the process before.
	a.unwatch()
	before := a.proc
	if a.running() && !a.s.host.Alive(before) {
		a.announceExit(before, exit, "")
		before = Proc{}
	}

	// Begin a new run.
	a.run++
	a.ended, a.completed = nil, false
	a.resetHealth()
	a.proc, a.procStart, a.byCgroup, a.upSince = f.Proc, f.StartedAt, f.ByCgroup, a.upSinceOf(f)
	if a.since = f.StartedAt; a.since.IsZero() {
		a.since = a.s.now()
	}
	if !a.operating {
		a.message = ""
	}
	a.record(f)
	a.noteFailed(false)
	a.noteFoundRun()
	a.announceStart(f.How, before)

	// Watch it.
	a.oomKills = a.s.host.OOMKills(a.key)
	run := a.run
	stop, err := a.s.host.Watch(f.Proc, func(e Exit) { a.post(event{kind: eventExited, run: run, exit: e}) })
	switch {
	case err == nil:
		a.stopWatch = stop
	case a.s.host.Alive(f.Proc): // the regular pass checks it instead
		a.log.Warn("cannot watch the process, checking it at intervals", "pid", f.Proc.PID, "err", err)
	default:
		a.markDown(Exit{})
		return f
	}

	// Limit, measure and show it.
	a.applyKernelLimits()
	a.probeVersion()
	a.publish(false)
	a.s.sampleSoon(a)
	return f
}

// upSinceOf is since when a found process counts as up. One that an earlier run of the agent has found is up since its
// start.
func (a *actor) upSinceOf(f Found) time.Time {
	if !a.restoring || f.StartedAt.IsZero() {
		return time.Now()
	}
	return time.Now().Add(-max(0, a.s.now().Sub(f.StartedAt)))
}

// markDown records that the process is not running any more, and plans a pull-up. During an operation it plans
// none: the operation decides what follows.
func (a *actor) markDown(e Exit) {
	if !a.running() {
		return
	}

	// Stop watching, and find out whether the kernel killed it for its memory.
	up := time.Since(a.upSince)
	a.unwatch()
	if !e.Known || e.Signal == "SIGKILL" {
		e.OOM = e.OOM || a.s.host.OOMKills(a.key) > a.oomKills
	}

	// End the run. What a process printed last says why it ended, unless that was wanted.
	output := ""
	if !a.stopping && !endedWell(e) {
		output = a.lastLine()
	}
	a.announceExit(a.proc, e, output)
	a.run++
	a.ended = &e
	a.complete(e)
	a.resetHealth()
	if a.alerted {
		a.alerted, a.notes.limit = false, ""
	}
	a.s.release(a.proc, a.key)
	a.notes.identity = ""
	a.proc, a.procStart, a.since = Proc{}, time.Time{}, a.s.now()
	a.lastExit = exitText(e)

	// Decide what follows.
	if a.operating {
		return
	}
	a.message = "the process " + a.lastExit
	a.planPullUp(up, a.lastExit+lastOutput(output))
}

// complete puts on record that a run has ended by itself and well, if the definition wants no restart after that. A process
// that was stopped has not completed its run.
func (a *actor) complete(e Exit) {
	if a.spec == nil || a.spec.Policy.Restart != gozzard.RestartOnFailure || a.stopping || !endedWell(e) {
		return
	}
	a.completed = true
	if h := a.held; !h.IsZero() {
		h.Done = true
		a.setHeld(h)
	}
}

// endedWell reports whether a process is known to have exited with 0.
func endedWell(e Exit) bool { return e.Known && e.Code == 0 && e.Signal == "" && !e.OOM }

func (a *actor) unwatch() {
	if a.stopWatch != nil {
		a.stopWatch()
		a.stopWatch = nil
	}
}
