package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

// commandEnd is what a call of Host.Run returned.
type commandEnd struct {
	res      Result
	err      error
	panicked any
}

// command runs the definition's command for an action to its end. It handles events meanwhile. An Outcome without a
// code means that ctx ended before the command did.
func (a *actor) command(ctx context.Context, l launch) (Result, gozzard.Outcome) {
	action := l.action
	text := a.spec.Command(action)
	if text == "" {
		return Result{}, noCommand(action)
	}

	// Describe the command to run. Only a start command may be the process itself: while restart_cmd runs, the old
	// process may still be alive and could be taken for the new one.
	r := Run{Key: a.key, Spec: a.spec, Op: l.id, Action: action, Command: text, Timeout: commandTimeout(a.spec.Policy)}
	r.Keeps = action != gozzard.ActionStop && action != gozzard.ActionKill
	if a.running() {
		r.Main = a.proc.PID
	}
	if action == gozzard.ActionStart {
		r.Front = frontAfter(a.spec.Policy, text)
	}

	var hurry chan struct{}
	if r.Front > 0 && l.pullUp {
		hurry = make(chan struct{})
		r.Hurry = hurry
	}

	// Run it in the background.
	progress := make(chan Progress, 2) // a command is queued once and started once
	if r.Front > 0 {
		r.Progress = func(p Progress) { progress <- p }
	}
	done := make(chan commandEnd, 1)
	go func() {
		var e commandEnd
		defer func() {
			e.panicked = recover()
			done <- e
		}()
		e.res, e.err = a.s.host.Run(ctx, r)
	}()

	// Wait for its end. A panic in the host is a panic of this operation.
	e, near := a.await(waited{done, r.Front > 0, progress, hurry})
	switch {
	case e.panicked != nil:
		panic(e.panicked)
	case e.err != nil && ctx.Err() != nil:
		return Result{}, gozzard.Outcome{}
	}

	return e.res, judgeCommand(action, e.res, e.err, r.Timeout, near)
}

// waited is a running command that await waits for.
type waited struct {
	done         <-chan commandEnd
	mayBeProcess bool // it may stay in the foreground, as the process itself
	progress     <-chan Progress
	hurry        chan<- struct{} // closed as soon as an operation is waiting; nil if nobody needs that
}

// await handles events until the command has ended. It looks for the process while a command runs that may be the
// process itself, so that it is shown and watched early. near says what came nearest to the process when await looked for
// the last time.
func (a *actor) await(w waited) (end commandEnd, near string) {
	defer a.releaseSlot()
	a.delaying = w.mayBeProcess // bringUp ends it when the command has ended
	began, program := time.Now(), false
	timer := time.NewTimer(firstPoll)
	defer timer.Stop()
	if !w.mayBeProcess {
		timer.Stop()
	}

	for {
		if w.hurry != nil && a.opWaiting() {
			close(w.hurry)
			w.hurry = nil
		}

		select {
		case <-a.wake:
			a.drain()
		case p := <-w.progress:
			began = time.Now()
			timer.Reset(a.firstLook(p))
			if program = p == ProgressProgram; program { // what was to be bounded is over
				a.releaseSlot()
			}
		case <-timer.C:
			took := time.Since(began)
			if program && took < lookLatest && w.hurry != nil && a.s.crowded() {
				timer.Reset(lookLater)
				continue
			}
			f := a.peek(took)
			near = nearText(f.Near, a.spec.Identity.ProcName)
			if !a.running() {
				timer.Reset(min(took, slowPoll))
			}
		case e := <-w.done:
			return e, near
		}
	}
}

// firstLook is when to look for the process for the first time. Nothing of a command exists that waits for its turn.
func (a *actor) firstLook(p Progress) time.Duration {
	if p == ProgressQueued {
		return slotHold
	}
	return firstPoll
}

// peek looks for the process while its start command still runs.
func (a *actor) peek(took time.Duration) (f Found) {
	if !a.running() {
		f = a.lookAgain()
	}
	if a.running() || took >= slotHold {
		a.releaseSlot()
	}
	return f
}

// lookAgain looks for the process and only logs an error.
func (a *actor) lookAgain() Found {
	f, err := a.look()
	if err != nil {
		a.log.Warn("cannot look for the process", "err", err)
	}
	return f
}
