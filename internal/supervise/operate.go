package supervise

import (
	"bytes"
	"context"
	"runtime/debug"
	"time"

	"github.com/gozzard/gozzard"
)

// operate does one operation from Begin to Done.
func (a *actor) operate(ctx context.Context, op Op) {
	if op.Begin != nil {
		if err := op.Begin(); err != nil {
			a.log.Debug("operation was not begun", "op", op.ID, "action", op.Action, "reason", err)
			return
		}
	}

	if op.Action == gozzard.ActionUnregister {
		a.forget(op)
		return
	}

	before, wasKnown := a.rec, a.known
	waited := a.waits()

	if refusal, refused := a.takeDefinition(op); refused {
		refusal.Hosted = before.Hosted && wasKnown
		op.Done(refusal, nil, false)
		return
	}

	out := a.attempt(func() gozzard.Outcome { return a.perform(ctx, op) })
	if out.Code == "" { // given up: only the journal says that it was begun
		return
	}

	after := flagsAfter(flags{a.rec.Hosted, a.rec.Wanted}, op.Action, out.Code)
	a.rec.Hosted, a.rec.Wanted = after.hosted, after.wanted
	out.Hosted = a.rec.Hosted
	var rec *Record
	if !wasKnown || !a.rec.equal(before) {
		r := a.rec
		rec = &r
	}

	a.known = true
	redefined := wasKnown && !bytes.Equal(before.Spec, a.rec.Spec)
	if redefined || startsAnew(op.Action, wasKnown && before.Hosted) {
		a.downs, a.pullAt = 0, time.Time{}
		a.curbs, a.notes.limit, a.alerted = 0, "", false
		a.health.cures, a.health.cureAt = 0, time.Time{}
	}

	if waited && !a.rec.Hosted {
		a.announceCancel(op.Action)
	}
	if redefined && a.running() {
		a.holdByKernel()
	}

	a.conclude(op.Action, out)
	seen, now := a.show() // whoever learns the verdict must find a status that agrees with it
	op.Done(out, rec, false)

	if redefined && a.running() {
		a.probeVersion()
	}

	a.tell(seen, now, false)
}

// takeDefinition makes the operation's definition and labels the present ones, or refuses the operation.
func (a *actor) takeDefinition(op Op) (refusal gozzard.Outcome, refused bool) {
	if len(op.Spec) == 0 {
		switch {
		case !a.known:
			return noDefinition(a.key), true
		case a.spec == nil && op.Action != gozzard.ActionUnhost:
			return failed(gozzard.CodeRefused, "the kept definition of %s cannot be read: register it again", a.key),
				true
		}
	} else {
		spec, err := gozzard.DecodeSpec(op.Spec)
		if err != nil {
			return failed(gozzard.CodeRefused, "cannot read the definition of %s: %v", a.key, err), true
		}
		if !a.known {
			a.rec = Record{Key: a.key, Wanted: gozzard.StateStopped, RegisteredAt: a.s.now().Unix()}
		}
		a.rec.Spec, a.spec = op.Spec, spec
	}

	if len(op.Labels) > 0 {
		a.rec.Labels = op.Labels
	}

	return gozzard.Outcome{}, false
}

// perform does what the action says. An Outcome without a code means that ctx ended in the middle.
func (a *actor) perform(ctx context.Context, op Op) gozzard.Outcome {
	switch op.Action {
	case gozzard.ActionStart:
		return a.start(ctx, launch{id: op.ID, action: gozzard.ActionStart})
	case gozzard.ActionStop, gozzard.ActionKill:
		return a.stop(ctx, op.ID, op.Action)
	case gozzard.ActionRestart:
		return a.restart(ctx, op.ID)
	case gozzard.ActionReload:
		_, out := a.command(ctx, launch{id: op.ID, action: gozzard.ActionReload})
		return out
	case gozzard.ActionHost, gozzard.ActionUnhost:
		return ok() // the flag is all of it; a pull-up follows by itself
	case gozzard.ActionRegister, gozzard.ActionUpdate:
		if _, err := a.look(); err != nil { // registered all the same; the regular pass looks again
			a.message = gozzard.Clip(err.Error(), maxStatusBytes)
		}
		return ok()
	}
	return failed(gozzard.CodeUnknownAction, "unknown action %s", op.Action)
}

// conclude draws the consequences of an operation for message and pull-up.
func (a *actor) conclude(action gozzard.Action, out gozzard.Outcome) {
	switch out.Code {
	case gozzard.CodeOK:
		if !keepsMessage(action) {
			a.message = ""
		}
		if startsProcess(action) && a.ended != nil && mayEnd(a.spec.Policy) {
			a.message = gozzard.Clip(out.Message, maxStatusBytes)
		}
	case gozzard.CodeCommandFailed, gozzard.CodeCheckFailed:
		a.message = gozzard.Clip(out.Message, maxStatusBytes)
		if !a.running() && startsProcess(action) {
			a.countDown(0, out.Message)
		}
	}
}

// forget ends the management of the process and leaves the process alone.
func (a *actor) forget(op Op) {
	wasKnown := a.known
	op.Done(ok(), nil, true)

	if a.waits() {
		a.announceCancel(op.Action)
	}

	a.letGoByKernel()
	a.unwatch()
	a.disarm()
	a.state = state{run: a.run + 1, health: health{probing: a.health.probing}}
	a.show()

	if wasKnown {
		a.s.removed(a.key)
	}
}

// attempt runs an operation or pull-up; a panic in it is its failure.
func (a *actor) attempt(f func() gozzard.Outcome) (out gozzard.Outcome) {
	a.operating = true
	defer func() {
		a.operating, a.stopping = false, false
		a.tellHeld()
		if v := recover(); v != nil {
			a.log.Error("panic in an operation", "panic", v, "stack", string(debug.Stack()))
			out = failed(gozzard.CodeCommandFailed, internalError)
		}
	}()
	return f()
}
