package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

// commandEnd is how a call of Host.Run came back.
type commandEnd struct {
	res      Result
	err      error
	panicked any
}

// command runs the definition's command of an action to its end while events are handled. An Outcome without a code
// means that ctx ended before.
func (a *actor) command(ctx context.Context, l launch) (Result, gozzard.Outcome) {
	action := l.action
	text := a.spec.Command(action)
	if text == "" {
		return Result{}, failed(gozzard.CodeCommandFailed, "%s is empty", commandName(action))
	}

	r := Run{Key: a.key, Spec: a.spec, Op: l.id, Action: action, Command: text, Timeout: commandTimeout(a.spec.Policy)}
	r.Keeps = action != gozzard.ActionStop && action != gozzard.ActionKill

	// while restart_cmd runs the old process may live: it must not be taken for the new one
	if action == gozzard.ActionStart {
		r.Front = frontAfter(a.spec.Policy)
	}

	var hurry chan struct{}

	if r.Front > 0 && l.pullUp {
		hurry = make(chan struct{})
		r.Hurry = hurry
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

	e := a.await(done, r.Front > 0, hurry)
	switch {
	case e.panicked != nil:
		panic(e.panicked)
	case e.err != nil && ctx.Err() != nil:
		return Result{}, gozzard.Outcome{}
	}

	return e.res, judgeCommand(action, e.res, e.err, r.Timeout)
}

// await handles events until the command has ended. A command that stays in front is the process itself: peeking
// has it shown and watched before, and hurry, if there is one, is closed when an operation waits for it.
func (a *actor) await(done <-chan commandEnd, peeking bool, hurry chan<- struct{}) commandEnd {
	defer a.freeSlot()
	a.holding = peeking // until the start is over its command
	began := time.Now()
	timer := time.NewTimer(firstPoll)
	defer timer.Stop()

	if !peeking {
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
			if took := time.Since(began); a.peek(took) {
				timer.Reset(min(took, slowPoll))
			}
		case e := <-done:
			return e
		}
	}
}

// peek looks for the process while its start command still runs; true: look again.
func (a *actor) peek(took time.Duration) bool {
	if !a.running() {
		a.lookAgain()
	}
	if a.running() || took >= slotHold {
		a.freeSlot()
	}
	return !a.running()
}

func (a *actor) lookAgain() {
	if _, err := a.look(); err != nil {
		a.log.Warn("cannot look for the process", "error", err)
	}
}
