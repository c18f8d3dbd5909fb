package supervise

import (
	"context"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
)

const (
	firstPoll = 10 * time.Millisecond
	slowPoll  = time.Second

	fileTick = 10 * time.Millisecond // the clock of a file system may be behind by this much

	justLooked = 100 * time.Millisecond // a look that is not older need not be repeated
)

// launch is a command of the process that must be run.
type launch struct {
	id     gozzard.OpID
	action gozzard.Action // the command: start, stop, kill, restart or reload
	pullUp bool           // no caller waits for a verdict
}

// launched is a start or restart in progress.
type launched struct {
	launch
	began time.Time
	run   uint64 // actor.run when it began; as long as it has not changed, no process was seen
	res   Result
	front bool // a process was seen while the command ran, and was gone when the command had ended
}

// start starts the process if it is not running.
func (a *actor) start(ctx context.Context, l launch) gozzard.Outcome {
	if out, rejected := a.beforeStart(l); rejected {
		return out
	}
	a.launching = true
	if !l.pullUp && len(a.spec.After) > 0 {
		a.publish(false)
		if out, ready := a.awaitOrder(ctx); !ready {
			return out
		}
		if out, rejected := a.beforeStart(l); rejected { // it may have come up meanwhile
			return out
		}
	}
	return a.bringUp(ctx, l)
}

// beforeStart looks at the process. It rejects a start if the process is running, or if it cannot be said which one it
// is.
func (a *actor) beforeStart(l launch) (out gozzard.Outcome, rejected bool) {
	if a.running() || !l.pullUp || time.Since(a.lookedAt) > justLooked {
		if _, err := a.look(); err != nil {
			return failed(gozzard.CodeCommandFailed, "%v", err), true
		}
	}
	switch {
	case a.running():
		return alreadyRunning(a.key, a.spec), true
	case a.unclear != "":
		return unclear(a.unclear), true
	}
	return gozzard.Outcome{}, false
}

// restart runs restart_cmd, even if the process is not running. Without a restart_cmd it stops and starts the
// process.
func (a *actor) restart(ctx context.Context, id gozzard.OpID) gozzard.Outcome {
	// Reject what cannot succeed before anything is stopped.
	if a.spec.Control.Restart == "" && a.spec.Control.Start == "" {
		return failed(gozzard.CodeCommandFailed, "the definition has no start command and no restart command: "+
			"give it command (start_cmd) or restart_command (restart_cmd)")
	}
	if _, err := a.look(); err != nil {
		return failed(gozzard.CodeCommandFailed, "%v", err)
	}
	if a.unclear != "" {
		return unclear(a.unclear)
	}
	if out, ready := a.awaitOrder(ctx); !ready {
		return out
	}

	a.launching = !a.running()

	// Use the definition's own command.
	if a.spec.Control.Restart != "" {
		return a.bringUp(ctx, launch{id: id, action: gozzard.ActionRestart})
	}

	// Stop.
	forced := false
	if a.running() {
		out := a.bringDown(ctx, id, gozzard.ActionStop)
		if out.Code != gozzard.CodeOK {
			return out
		}
		forced = out.Forced
	}

	// Start.
	a.launching = true
	out := a.bringUp(ctx, launch{id: id, action: gozzard.ActionStart})
	out.Forced = forced
	return out
}

// bringUp runs the command of a start or restart and checks that the process is running afterwards.
func (a *actor) bringUp(ctx context.Context, l launch) gozzard.Outcome {
	if err := a.makeRoom(l.action); err != nil {
		return failed(gozzard.CodeCommandFailed, "cannot clear what an earlier run of %s left behind: %v", a.key, err)
	}

	a.beginLaunch()
	startedAt := a.s.now().Unix()
	out := a.launch(ctx, l)
	a.starting, a.launching = false, false
	out.Message += a.afterLaunch(l, out.Code)
	a.noteLaunch(out.Code)

	if out.Code == gozzard.CodeOK {
		a.rec.LastStart = startedAt
	}
	return out
}

// makeRoom kills what an earlier run or an abandoned command has left in the group of the process. It would run beside
// the new process, or even become a second copy of it.
func (a *actor) makeRoom(action gozzard.Action) error {
	if a.running() || a.spec.Command(action) == "" {
		return nil
	}
	return a.clear(nil)
}

// beginLaunch notes that a start is in progress. It is on record: if the agent dies meanwhile, the next one must not
// take the process that this start brings up for something that an earlier process left behind.
func (a *actor) beginLaunch() {
	a.starting, a.began, a.settleAt = true, time.Now(), time.Time{}
	if h := a.held; !h.IsZero() {
		h.Settled, h.Replaced, h.Done = false, true, false
		a.setHeld(h)
	}
	a.noteRun()
	a.publish(false)
}

// afterLaunch puts the started process on record. What a start that failed has started is ended, and the text says so: a
// process that was reported as not running must not come up later.
func (a *actor) afterLaunch(l launch, code gozzard.Code) (text string) {
	switch {
	case a.running():
		if a.settleAt.IsZero() {
			a.settle()
		}
		if code != "" && code != gozzard.CodeOK {
			return fmt.Sprintf("; the process runs all the same: pid %d", a.proc.PID)
		}
	case code == "" || code == gozzard.CodeOK: // ctx has ended, or the process has ended as it may
	case l.pullUp && a.opWaiting(): // the operation decides about it
	default:
		return a.endStarted()
	}
	return ""
}

// launch runs the command of a start or restart and waits for the result of the check.
func (a *actor) launch(ctx context.Context, l launch) gozzard.Outcome {
	// Run the command. The limits are set before, so that they hold from the first moment.
	a.applyKernelLimits()
	a.lastExit, a.ended, a.completed = "", nil, false
	a.noteOutput()
	t := launched{launch: l, began: time.Now(), run: a.run}
	var out gozzard.Outcome
	t.res, out = a.command(ctx, l)

	// Report what happened while it ran.
	t.front = a.goneWithCommand(t)
	if t.front && a.ended != nil && !a.ended.Known {
		a.setExit(t.res)
	}
	a.sendDelayedEvents()

	// Check the result. Even if the command failed, the status must be true.
	if out.Code == gozzard.CodeOK {
		return a.checkAlive(ctx, t)
	}
	if out.Code != "" {
		a.awaitStarted(ctx)
		if a.run == t.run && !a.running() && !t.res.TimedOut && (t.res.ExitCode != 0 || t.res.Signal != "") {
			a.noteEnd(Proc{}, Exit{Known: true, Code: t.res.ExitCode, Signal: t.res.Signal})
		}
		if mayEnd(a.spec.Policy) && a.ended == nil && !a.running() { // the command was the whole run
			a.announce(gozzard.Event{
				Kind: gozzard.EventRan, Code: t.res.ExitCode, Known: t.res.Signal == "" && t.res.ExitCode >= 0,
				Signal:  t.res.Signal,
				Message: out.Message,
			})
		}
	}
	return out
}

// awaitStarted gives what a failed command has started a moment to be recognised, so that it does not depend on chance
// whether it counts as the process.
func (a *actor) awaitStarted(ctx context.Context) {
	for end := time.Now().Add(checkGrace); ctx.Err() == nil; a.pause(ctx, gonePoll) {
		a.lookAgain()
		if a.running() || !time.Now().Before(end) {
			return
		}
		if members, err := a.s.host.Members(a.query()); err != nil || len(members) == 0 {
			return
		}
	}
}

// endStarted ends what a failed start has started, and says so.
func (a *actor) endStarted() string {
	a.unclear, a.notes.identity = "", ""
	members, err := a.s.host.Members(a.query())
	if err == nil && len(members) == 0 {
		return ""
	}
	if err == nil {
		err = a.clear(members)
	}
	if err != nil {
		a.log.Warn("cannot end what a failed start has started", "err", err)
		a.clearAt = time.Now().Add(recheck)
		return "; what it started could not be ended: " + err.Error()
	}
	return "; what it started was ended: " + pidList(members)
}

// settleDue reports whether the process has been up as long as the check of its start takes, after the check itself was
// ended early.
func (a *actor) settleDue() bool { return !a.settleAt.IsZero() && !time.Now().Before(a.settleAt) }

// settleNow ends what is left of a check that was ended early.
func (a *actor) settleNow() {
	a.settleAt = time.Time{}
	if a.running() {
		a.settle()
	}
	a.publish(false)
}

// clearDue reports whether it is time to try again to end what a failed start has started.
func (a *actor) clearDue() bool { return !a.clearAt.IsZero() && !time.Now().Before(a.clearAt) }

// clearAgain tries again to end what a failed start has started, unless it is the process by now.
func (a *actor) clearAgain() {
	a.clearAt = time.Time{}
	if !a.running() && a.spec != nil {
		a.endStarted()
	}
}

// checkAlive waits until the start check is over, because a process that ends before has not started. It returns the
// verdict. A process that is found meanwhile is watched and shown at once. A pull-up ends its check early when an
// operation is waiting, but not before the daemon had a moment to write its pid file: a command of the operation that
// does not find the pid would start a second copy. What runs then may still be a launcher: it is settled when the check
// would have been over.
func (a *actor) checkAlive(ctx context.Context, t launched) gozzard.Outcome {
	// Compute when the check is over, and until when the process may still appear.
	check := window(a.spec.Policy.StartCheckSecs)
	commandEnded := time.Now()
	end := commandEnded.Add(check)
	settled, looked := end, false // until then what runs may be a launcher
	if t.res.Front {              // it has been up since the command began, or since the command started it
		if !a.running() || a.proc != t.res.Main { // else the host has just looked
			a.lookAgain()
		}
		looked = a.running()
		end = t.began.Add(check)
		if late := a.upSince.Sub(t.began); a.running() && late > justLooked {
			end = end.Add(late)
		}
		settled = t.began.Add(max(check, mainAfter))
	}
	latest := commandEnded.Add(max(check, checkGrace))
	yieldAt := commandEnded.Add(checkGrace)
	if t.res.Front && a.running() { // it may be a launcher that has the name of the daemon for a moment
		yieldAt = a.upSince.Add(checkGrace)
	}

	for poll := firstPoll; ctx.Err() == nil; poll = min(2*poll, slowPoll) {
		// Read the clock once: on a slow machine a second reading could contradict the first.
		now := time.Now()
		waiting := t.pullUp && a.opWaiting()
		yielding := waiting && !now.Before(yieldAt)
		over := yielding || !now.Before(end)

		// Look at the process.
		var f Found
		var err error
		if (over || !a.running()) && !(looked && a.running()) {
			f, err = a.look()
		}
		looked = false

		// Give what the command started time to get its name.
		until := latest
		graceOver := now.Sub(commandEnded) >= checkGrace
		if graceOver && a.mayGetName(now.Sub(commandEnded)) {
			graceOver, until = false, commandEnded.Add(max(check, nameGrace))
		}
		if out, ended := a.completedRun(t, graceOver || a.cannotAppear(t, f)); ended {
			return out
		}

		// Decide, or wait.
		switch {
		case over && a.running():
			if settled.Before(end) {
				settled = end
			}
			if now.Before(settled) {
				a.settleAt = settled
			}
			return ok()
		case !a.running() && (yielding || a.cannotAppear(t, f) || !now.Before(until)):
			return notAlive(procName(a.key, a.spec), a.absenceReason(f, err), t.res.Output)
		case over:
			a.pause(ctx, min(poll, time.Until(until)))
		case a.running() && waiting:
			a.pause(ctx, min(time.Until(end), time.Until(yieldAt)))
		case a.running():
			a.pause(ctx, time.Until(end))
		default:
			a.pause(ctx, min(poll, time.Until(end)))
		}
	}

	return gozzard.Outcome{}
}

// mayGetName reports whether something that a start command left running when it ended may still get the name of the
// process.
func (a *actor) mayGetName(sinceCommand time.Duration) bool {
	if a.running() || sinceCommand >= nameGrace {
		return false
	}
	members, err := a.s.host.Members(a.query())
	return err == nil && len(members) > 0
}

// cannotAppear reports whether the process cannot appear any more after its command has ended. Nothing that the
// command started is alive, and the process was such a thing or cannot be found in any other way. Some commands make
// other programs start the process, say as a container. Such a process is known by its pid file only, so it may
// still appear unless its pid file was written after the command began. A live process that the file names may still
// execute the program, so it is waited for.
func (a *actor) cannotAppear(t launched, f Found) bool {
	if !f.Empty || a.running() {
		return false
	}
	return a.spec.Identity.PIDPath == "" || a.byCgroup && !a.upSince.Before(t.began) ||
		f.Verdict != identity.Foreign && f.PIDFileAt.After(t.began.Add(-fileTick))
}

// goneWithCommand reports whether a process that was seen while its start command ran is gone now. What was seen may
// have been a script that starts the process, or the process itself, which has ended with its command.
func (a *actor) goneWithCommand(t launched) bool {
	if t.action != gozzard.ActionStart || t.res.Front || a.run == t.run {
		return false
	}
	if !a.running() {
		return true
	}

	f, err := a.s.host.Find(a.query())
	switch {
	case err != nil:
		a.log.Warn("cannot look for the process", "err", err)
	case f.Proc.IsZero() && a.stopWatch == nil:
		a.markDown(Exit{})
		return true
	case f.Proc.IsZero(): // its watch will report how it ended
		return true
	case f.Proc != a.proc:
		a.adopt(f, Exit{})
	}

	return false
}

// setExit records the exit of the command as the exit of the process that ran in its foreground. It is used if
// nothing better is known.
func (a *actor) setExit(res Result) {
	e := Exit{Known: true, Code: res.ExitCode, Signal: res.Signal}
	a.ended, a.lastExit = &e, exitText(e)
	a.noteEnd(Proc{}, e)
	a.complete(e)
	for i := range a.delayed {
		if h := &a.delayed[i]; h.Kind != gozzard.EventStarted {
			h.Code, h.Known, h.Signal, h.Message = e.Code, e.Signal == "", e.Signal, "the process "+a.lastExit
		}
	}
}

// completedRun returns the verdict about a process that may end, as soon as it has ended and its exit is known. If
// the process was gone before its command, or final says that none can appear any more, the command was the whole
// run. The command succeeded then: a failure has its verdict earlier.
func (a *actor) completedRun(t launched, final bool) (out gozzard.Outcome, ended bool) {
	if a.running() || !mayEnd(a.spec.Policy) {
		return out, false
	}

	out = ok()
	switch {
	case a.ended != nil && a.ended.Known && (a.ended.Code != 0 || a.ended.Signal != ""):
		return notAlive(procName(a.key, a.spec), "the process "+a.lastExit, t.res.Output), true
	case a.ended != nil && a.ended.Known:
		out.Message = "the process " + a.lastExit
	case t.front && a.ended != nil:
		out.Message = commandDone
	case a.run == t.run && final:
		a.ended = &Exit{Known: true}
		a.noteEnd(Proc{}, *a.ended)
		a.complete(*a.ended)
		a.announce(gozzard.Event{Kind: gozzard.EventRan, Known: true, Message: commandDone})
		out.Message = commandDone
	default:
		return gozzard.Outcome{}, false
	}

	return out, true
}

// absenceReason returns why the process is not running.
func (a *actor) absenceReason(f Found, err error) string {
	reason := f.Reason
	if err != nil {
		reason = err.Error()
	}
	switch {
	case a.lastExit == "":
		return reason
	case reason == "":
		return "the process " + a.lastExit
	}
	return "the process " + a.lastExit + "; " + reason
}
