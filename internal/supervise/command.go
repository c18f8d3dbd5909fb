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
		return Result{}, failed(gozzard.CodeCommandFailed, "%s is empty", commandName(action))
	}

	// Describe the command to run. Only a start command may be the process itself: while restart_cmd runs, the old
	// process may still be alive and could be taken for the new one.
	r := Run{Key: a.key, Spec: a.spec, Op: l.id, Action: action, Command: text, Timeout: commandTimeout(a.spec.Policy)}
	r.Keeps = action != gozzard.ActionStop && action != gozzard.ActionKill
	if action == gozzard.ActionStart {
		r.Front = frontAfter(a.spec.Policy, text)
	}

	var hurry chan struct{}
	if r.Front > 0 && l.pullUp {
		hurry = make(chan struct{})
		r.Hurry = hurry
	}

	// Run it in the background.
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
	e, near := a.await(done, r.Front > 0, hurry)
	switch {
	case e.panicked != nil:
		panic(e.panicked)
	case e.err != nil && ctx.Err() != nil:
		return Result{}, gozzard.Outcome{}
	}

	return e.res, judgeCommand(action, e.res, e.err, r.Timeout, near)
}

// await handles events until the command has ended. A command that stays in the foreground may be the process
// itself. With mayBeProcess, await looks for the process while the command runs, so that it is shown and watched
// early. If hurry is not nil, await closes it as soon as an operation is waiting. near says what came nearest to the
// process when await looked for the last time.
func (a *actor) await(done <-chan commandEnd, mayBeProcess bool, hurry chan<- struct{}) (end commandEnd, near string) {
	defer a.releaseSlot()
	a.delaying = mayBeProcess // bringUp ends it when the command has ended
	began := time.Now()
	timer := time.NewTimer(firstPoll)
	defer timer.Stop()
	if !mayBeProcess {
		timer.Stop()
	}

	for {
		if hurry != nil && a.opWaiting() {
			close(hurry)
			hurry = nil
		}

		select {
		case <-a.wake:
			a.drain()
		case <-timer.C:
			took := time.Since(began)
			f := a.peek(took)
			near = nearText(f.Near, a.spec.Identity.ProcName)
			if !a.running() {
				timer.Reset(min(took, slowPoll))
			}
		case e := <-done:
			return e, near
		}
	}
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
