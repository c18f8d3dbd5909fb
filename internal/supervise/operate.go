package supervise

import (
	"bytes"
	"context"
	"runtime/debug"
	"time"

	"github.com/gozzard/gozzard"
)

// operate carries out one operation from Begin to Done.
func (a *actor) operate(ctx context.Context, op Op) {
	// Begin, unless the caller does not want it any more.
	if op.Begin != nil {
		if err := op.Begin(); err != nil {
			a.log.Debug("operation was not begun", "op", op.ID, "action", op.Action, "err", err)
			return
		}
	}

	if op.Action == gozzard.ActionUnregister {
		a.unregister(op)
		return
	}

	// Take the definition that comes with the operation.
	if op.Ref.Task != 0 {
		a.cause = gozzard.Cause{Op: op.ID, Ref: op.Ref}
		defer func() { a.cause = gozzard.Cause{} }()
	}
	was := before{rec: a.rec, managed: a.managed, pullUpPlanned: a.pullUpPlanned()}
	if rejection, rejected := a.applyDefinition(op); rejected {
		rejection.Hosted = was.rec.Hosted && was.managed
		if was.managed {
			a.announceStartFailure(op.Action, rejection)
		}
		op.Done(rejection, nil, false)
		return
	}

	// Do what the action says. If ctx ends meanwhile there is no verdict: only the journal says that it was begun.
	out := a.execute(func() gozzard.Outcome { return a.perform(ctx, op) })
	if out.Code != "" {
		a.finish(op, out, was)
	}
}

// before is what an operation found.
type before struct {
	rec           Record
	managed       bool
	pullUpPlanned bool
}

// finish draws the conclusions from the outcome of an operation and answers it.
func (a *actor) finish(op Op, out gozzard.Outcome, was before) {
	a.announceStartFailure(op.Action, out)

	// Bring the record up to date.
	after := flagsAfter(flags{a.rec.Hosted, a.rec.Wanted}, op.Action, out.Code, op.Adopt)
	a.rec.Hosted, a.rec.Wanted = after.hosted, after.wanted
	out.Hosted = a.rec.Hosted
	out = explainRunning(out, was.managed && was.rec.Hosted)
	var rec *Record
	if !was.managed || !a.rec.equal(was.rec) {
		r := a.rec
		rec = &r
	}

	// Bring supervision up to date.
	a.managed = true
	if !was.managed {
		a.s.host.Managed(a.key, true)
	}
	redefined := was.managed && !bytes.Equal(was.rec.Spec, a.rec.Spec)
	if redefined || startsAnew(op.Action, was.managed && was.rec.Hosted) {
		restarts := a.past.Restarts
		a.resetCounts()
		if was.managed && was.rec.Hosted && out.Code == gozzard.CodeAlreadyRunning { // nothing was started
			a.keepRestarts(restarts)
		}
	}
	if op.Action == gozzard.ActionHost && !(was.managed && was.rec.Hosted) {
		a.completed = false // a caller that asks for supervision wants it to run
	}
	if was.pullUpPlanned && !a.rec.Hosted {
		a.announceCancel(op.Action)
	}
	if redefined && a.running() {
		a.applyKernelLimits()
	}
	a.conclude(op.Action, out)
	a.runDue() // plans the next run, so that the status beside the verdict has it

	// Answer. The view is renewed first, so that a caller that has the verdict finds a status that agrees with it.
	seen, now := a.updateView()
	op.Done(out, rec, false)
	if redefined && a.running() {
		a.probeVersion()
	}
	a.publishChange(seen, now, false)
}

// resetCounts resets the counts of crashes, of actions on limits and of restarts because of bad health.
func (a *actor) resetCounts() {
	a.downs, a.pullAt = 0, time.Time{}
	a.limitActions, a.notes.limit, a.alerted = 0, "", false
	a.health.restarts, a.health.restartAt = 0, time.Time{}
	a.setPast(Past{Exit: a.past.Exit, Of: a.past.Of, Run: a.past.Run, Failed: a.past.Failed})
}

// keepRestarts brings back the count of restarts: an operation that found the process running has started nothing.
func (a *actor) keepRestarts(n uint32) {
	p := a.past
	p.Restarts = n
	a.setPast(p)
}

// applyDefinition makes the operation's definition and labels the present ones, or rejects the operation.
func (a *actor) applyDefinition(op Op) (rejection gozzard.Outcome, rejected bool) {
	if len(op.Spec) == 0 {
		switch {
		case !a.managed:
			return noDefinition(a.key), true
		case a.spec == nil && op.Action != gozzard.ActionUnhost:
			return failed(gozzard.CodeRefused,
				"the definition of %s in the journal cannot be read: register it again", a.key), true
		}
	} else {
		spec, err := gozzard.DecodeSpec(op.Spec)
		if err != nil {
			return failed(gozzard.CodeRefused, "cannot read the definition of %s: %v", a.key, err), true
		}
		if err := a.s.order.set(a.key, spec.After); err != nil {
			return failed(gozzard.CodeRefused, "cannot take the definition of %s: %v", a.key, err), true
		}
		switch {
		case !a.managed:
			a.rec, a.spec = op.firstRecord(spec, a.s.now()), spec
		case a.spec != nil && keepsDefinition(op.Action, op.Spec, a.rec.Spec):
			a.rec.Spec, a.spec = op.Spec, withAccount(spec, a.spec.Identity.User)
		default:
			a.rec.Spec, a.rec.Account, a.rec.Unnamed, a.spec = op.Spec, "", false, spec
		}
	}
	a.keepAccount(op)

	if len(op.Labels) > 0 {
		a.rec.Labels = op.Labels
	}

	return gozzard.Outcome{}, false
}

// keepAccount gives a definition that names no account the one that it means on this host.
func (a *actor) keepAccount(op Op) {
	if a.spec == nil || a.spec.Identity.User != "" || op.Account == nil {
		return
	}
	a.rec.Account, a.rec.Unnamed = op.Account(), true
	a.spec = withAccount(a.spec, a.rec.Account)
}

// withAccount is a definition with an account, if it names none itself.
func withAccount(spec *gozzard.Spec, account string) *gozzard.Spec {
	if spec.Identity.User != "" || account == "" {
		return spec
	}
	named := *spec
	named.Identity.User = account
	return &named
}

// perform does what the action says. An Outcome without a code means that ctx ended before there was a verdict.
func (a *actor) perform(ctx context.Context, op Op) gozzard.Outcome {
	switch op.Action {
	case gozzard.ActionStart:
		return a.start(ctx, launch{id: op.ID, action: gozzard.ActionStart})
	case gozzard.ActionStop, gozzard.ActionKill:
		if op.Action == gozzard.ActionStop {
			a.awaitLater(ctx)
		}
		return a.stop(ctx, op.ID, op.Action)
	case gozzard.ActionRestart:
		return a.restart(ctx, op.ID)
	case gozzard.ActionReload:
		_, out := a.command(ctx, launch{id: op.ID, action: gozzard.ActionReload})
		a.noteOutput() // what the command printed says nothing about a later end of the process
		return out
	case gozzard.ActionHost, gozzard.ActionUnhost:
		return ok() // only the flag changes; a pull-up follows without more
	case gozzard.ActionRegister, gozzard.ActionUpdate:
		if _, err := a.look(); err != nil { // that does not prevent the registration; the regular pass looks again
			a.message = clipText(err.Error())
		}
		return ok()
	}
	return failed(gozzard.CodeUnknownAction, "unknown action %s", op.Action)
}

// conclude sets the status message after an operation, and plans a pull-up after a failed start.
func (a *actor) conclude(action gozzard.Action, out gozzard.Outcome) {
	switch out.Code {
	case gozzard.CodeOK:
		if startsAnew(action, false) {
			a.noteFailed(false)
		}
		if !keepsMessage(action) || action == gozzard.ActionReload && a.message == a.reloadFault {
			a.message = ""
		}
		if startsProcess(action) && a.ended != nil && mayEnd(a.spec.Policy) {
			a.message = clipText(out.Message)
		}
	case gozzard.CodeNotRunning: // it is as an operation wants it: a start that failed before needs nobody any more
		a.noteFailed(false)
		a.message = ""
	case gozzard.CodeCommandFailed, gozzard.CodeCheckFailed:
		a.message = clipText(out.Message)
		if action == gozzard.ActionReload {
			a.reloadFault = a.message
		}
		if !a.running() && startsProcess(action) {
			a.noteFailed(true)
			a.planPullUp(0, out.Message)
		}
	}
}

// unregister stops managing the process. The process keeps running.
func (a *actor) unregister(op Op) {
	if op.Ref.Task != 0 {
		a.cause = gozzard.Cause{Op: op.ID, Ref: op.Ref}
		defer func() { a.cause = gozzard.Cause{} }()
	}
	wasManaged := a.managed
	op.Done(ok(), nil, true)

	if a.pullUpPlanned() {
		a.announceCancel(op.Action)
	}

	a.removeKernelLimits()
	a.unwatch()
	a.disarm()
	a.s.release(a.held.Proc, a.key)
	a.s.order.restore(a.key, nil)
	a.state = state{run: a.run + 1, held: a.held, health: health{probe: a.health.probe}}
	a.updateView()

	if wasManaged {
		a.s.host.Managed(a.key, false)
		a.s.removed(a.key)
	}
}

// execute runs an operation or pull-up. If it panics, it has failed.
func (a *actor) execute(f func() gozzard.Outcome) (out gozzard.Outcome) {
	a.operating = true
	defer func() {
		a.operating, a.stopping, a.starting, a.launching, a.lateEnd = false, false, false, false, nil
		a.sendDelayedEvents()
		if v := recover(); v != nil {
			a.log.Error("operation failed with a panic", "panic", v, "stack", string(debug.Stack()))
			out = failed(gozzard.CodeCommandFailed, internalError)
		}
	}()
	return f()
}
