package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	maxPullUps = 64              // start commands of pull-ups that run at the same time, say after a reboot
	slotHold   = 2 * time.Second // a start command that takes longer no longer counts among them

	// While many pull-ups wait for their turn, those that are started are looked at later: to start what is down comes first.
	manyPullUps = 16
	lookLater   = 100 * time.Millisecond
	lookLatest  = time.Second
)

// crowded reports whether many pull-ups are about to begin.
func (s *Supervisor) crowded() bool { return len(s.pulls) >= manyPullUps }

// pullUpWanted decides whether the process must be started without a request.
func (a *actor) pullUpWanted() (bool, string) {
	return pullUpWanted(pullUpInput{hosted: a.rec.Hosted && a.managed, running: a.running(), spec: a.spec,
		completed: a.completed, downs: a.downs})
}

// pullUpPlanned reports whether a pull-up is planned.
func (a *actor) pullUpPlanned() bool {
	wanted, _ := a.pullUpWanted()
	return wanted && !a.pullAt.IsZero()
}

// planPullUp plans the next pull-up of a supervised process that could not be started, or that went down after it
// had been up for the given time.
func (a *actor) planPullUp(up time.Duration, why string) {
	if wanted, reason := a.pullUpWanted(); !wanted {
		if reason != "" {
			a.message = reason
		}
		return
	}

	a.downs = downsAfter(a.downs, up, a.spec.Policy)
	a.noteDowns()
	if wanted, reason := a.pullUpWanted(); !wanted {
		a.pullAt, a.message = time.Time{}, clipText(reason+because(why))
		a.log.Warn("process ended too often and is not started again", "downs", a.downs, "reason", why)
		a.announce(gozzard.Event{Kind: gozzard.EventRestartCancelled, Message: a.message})
		return
	}
	delay := pullUpDelay(a.spec.Policy, a.downs, a.s.rand())
	a.pullAt = time.Now().Add(delay)
	if delay > 0 {
		a.message = clipText(crashLoop(a.downs, delay, why))
	}

	if a.downs == gozzard.CrashLoopExits {
		a.announce(gozzard.Event{Kind: gozzard.EventCrashLoop, Message: crashLoop(a.downs, delay, why)})
	}

	a.log.Info("process is down and will be started again", "downs", a.downs, "in", delay, "reason", why)
}

// resumePause continues the pause before the next start that the agent before had planned. ended is the end of the process
// that was on record: one that ended while no agent ran is started at once.
func (a *actor) resumePause(ended gozzard.Ending) {
	wanted, _ := a.pullUpWanted()
	if !wanted || a.downs == 0 || ended.IsZero() || ended != a.past.Exit || !a.pullAt.IsZero() {
		return
	}

	// The clock of the host may have been set meanwhile.
	delay := pullUpDelay(a.spec.Policy, a.downs, a.s.rand())
	left := min(delay-a.s.now().Sub(time.UnixMilli(ended.At)), delay)
	if left <= 0 {
		return
	}
	a.pullAt = time.Now().Add(left)
	a.message = clipText(crashLoop(a.downs, left, ""))
	a.log.Info("process is down and will be started again", "downs", a.downs, "in", left, "reason", "as planned before")
}

// steadyAt is when the present run ends the count of exits in a row. It returns false if there is nothing to end. The next
// exit would end the count as well, but an agent that dies before must not continue it.
func (a *actor) steadyAt() (time.Time, bool) {
	if a.past.Downs == 0 || !a.running() || a.spec == nil {
		return time.Time{}, false
	}
	return a.upSince.Add(steadyTime(a.spec.Policy) + time.Millisecond), true
}

func (a *actor) steadyDue() bool {
	at, counts := a.steadyAt()
	return counts && !time.Now().Before(at)
}

// endCount ends the count of exits in a row.
func (a *actor) endCount() {
	a.downs = 0
	a.noteDowns()
}

// pullUpDue reports whether the process must be started now without a request.
func (a *actor) pullUpDue() bool {
	wanted, reason := a.pullUpWanted()
	if !wanted {
		a.pullAt = time.Time{}
		if reason != "" && a.message == "" {
			a.message = reason
			a.publish(false)
		}
		return false
	}

	if a.pullAt.IsZero() {
		a.pullAt = time.Now()
	}
	return !time.Now().Before(a.pullAt)
}

// pullUp starts a supervised process that is down.
func (a *actor) pullUp(ctx context.Context) {
	if a.mustWait() || a.orderDelays() {
		return
	}
	if !a.acquireSlot(ctx) {
		return // an operation comes first; the pull-up is still due
	}
	defer a.releaseSlot()

	a.pullAt = time.Time{}
	out := a.execute(func() gozzard.Outcome {
		// A rejected start is retried like any start that fails, because the policy may change.
		if err := a.s.permit(a.key, a.spec); err != nil {
			return failed(gozzard.CodeRefused, "%v", err)
		}
		return a.start(ctx, launch{action: gozzard.ActionStart, pullUp: true})
	})
	a.finishRestart(out, "not running")
}

// acquireSlot waits until one more pull-up may begin. Usually it does not wait. It returns false if an operation
// arrived or ctx ended.
func (a *actor) acquireSlot(ctx context.Context) bool {
	for {
		select {
		case a.s.pulls <- struct{}{}:
			a.slot = true
			return true
		case <-a.wake:
			a.drain()
			if a.opWaiting() {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

// releaseSlot allows the next pull-up to begin.
func (a *actor) releaseSlot() {
	if a.slot {
		a.slot = false
		<-a.s.pulls
	}
}
