package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

// The limited resources, in the order in which they are named when several are passed at once.
const (
	limitCPU = iota
	limitMem
	limitFD
	limitDisk
	limitNet
	limitCount
)

// strikes count, for each limit, in how many samples in a row it was passed.
type strikes [limitCount]int

// breach is a limit that was passed often enough for something to be done.
type breach struct {
	proc  Proc
	text  string // which limit, what was measured, how often
	pool  bool   // of the namespace's pool, not of the process's own
	first bool   // the first time since the process was last within its limits
	over  bool   // false: it is within all its limits again
}

// samplesOf is how many samples in a row must be over a limit.
func samplesOf(r gozzard.Resource) int {
	if r.Samples <= 0 {
		return gozzard.DefaultLimitSamples
	}
	return r.Samples
}

// limitsOf puts limits and usage beside each other.
func limitsOf(u Usage, r gozzard.Resource) (used, limit [limitCount]float64) {
	used = [limitCount]float64{float64(u.CPU), float64(u.Mem), float64(u.FD), float64(u.Disk), float64(u.Net)}
	limit = [limitCount]float64{r.CPU, r.Mem, float64(r.FD), float64(r.Disk), float64(r.Net)}
	return used, limit
}

// after counts one more sample. It tells when a limit has been passed so many times in a row that something must be
// done, again after as many more, and when all is well again after that. A single spike leads to nothing.
func (s strikes) after(u Usage, r gozzard.Resource) (next strikes, b breach, tell bool) {
	need := samplesOf(r)
	used, limit := limitsOf(u, r)
	was, is := false, false
	for i := range next {
		was = was || s[i] >= need
		if limit[i] <= 0 || !(used[i] > limit[i]) {
			continue
		}
		next[i] = s[i] + 1
		is = is || next[i] >= need
		if next[i]%need == 0 && !tell {
			tell = true
			b = breach{text: overText(i, used[i], limit[i], next[i]), over: true, first: next[i] == need}
		}
	}

	if was && !is && !tell {
		return next, breach{}, true
	}

	return next, b, tell
}

// limitAct is what is done to a process over a limit. Dealing with it belongs to hosting: one that is not hosted is
// told of and left alone.
func limitAct(act gozzard.LimitAct, hosted bool) gozzard.LimitAct {
	switch {
	case !hosted || act == gozzard.ActAlert:
		return gozzard.ActAlert
	case act == gozzard.ActStop || act == gozzard.ActRestart:
		return act
	}
	return gozzard.ActKill
}

// overLimit takes in what the samples have shown; what must be done waits for its turn.
func (a *actor) overLimit(b breach) {
	if b.proc != a.proc || !a.running() {
		return
	}
	if !b.over {
		if a.alerted {
			a.alerted, a.notes.limit = false, ""
			a.publish(false)
		}
		return
	}
	a.breach = &b
}

// curbDue reports whether a limit must be seen to.
func (a *actor) curbDue() bool {
	if a.breach != nil && (a.breach.proc != a.proc || a.spec == nil || !a.known) {
		a.breach = nil
	}
	return a.breach != nil
}

// curb deals with a process over a limit. The hosting flag stays: a hosted process comes back by a pull-up, and its
// end counts like any other.
func (a *actor) curb(ctx context.Context) {
	b := *a.breach
	a.breach = nil
	act := limitAct(a.spec.Resource.Act, a.rec.Hosted)
	if act != gozzard.ActAlert {
		if err := a.s.permit(a.spec); err != nil {
			act, b.text = gozzard.ActAlert, b.text+"; nothing is done about it: "+err.Error()
		}
	}

	kind := gozzard.EventLimitExceeded

	if b.pool {
		kind = gozzard.EventGroupLimitExceeded
	}

	if act == gozzard.ActAlert {
		if b.first || b.pool {
			a.alerted, a.notes.limit = true, b.text
			a.announce(gozzard.Event{Kind: kind, PID: a.proc.PID, Message: b.text})
			a.publish(false)
		}
		return
	}

	pid, up := a.proc.PID, time.Since(a.upSince)
	out := a.attempt(func() gozzard.Outcome { return a.actOnLimit(ctx, act) })
	if out.Code == "" {
		return
	}

	a.curbs++
	text := curbText(b.text, act, out, a.curbs)
	a.notes.limit, a.message = text, ""
	a.announce(gozzard.Event{Kind: kind, PID: pid, Message: text})

	if !a.running() {
		a.countDown(up, "it was over a limit")
	}

	a.publish(false)
}

// actOnLimit does what the definition wants for a process over a limit. When its own command does not end it, it is
// killed: a limit is kept.
func (a *actor) actOnLimit(ctx context.Context, act gozzard.LimitAct) gozzard.Outcome {
	if act == gozzard.ActRestart {
		return a.restart(ctx, gozzard.OpID{})
	}

	action := gozzard.ActionKill

	if act == gozzard.ActStop {
		action = gozzard.ActionStop
	}

	out := a.bringDown(ctx, gozzard.OpID{}, action)
	if out.Code == "" || out.Code == gozzard.CodeOK {
		return out
	}

	a.log.Warn("cannot end a process over its limit by its command, killing it", "action", action, "message",
		out.Message)

	if err := a.force(); err != nil {
		return failed(gozzard.CodeCommandFailed, "cannot kill pid %d: %v", a.proc.PID, err)
	}

	switch {
	case a.waitGone(ctx, killPatience):
		out = a.cleared()
		out.Forced = true
		return out
	case ctx.Err() != nil:
		return gozzard.Outcome{}
	}

	return stillAlive(procName(a.key, a.spec), a.proc.PID, "")
}

// holdByKernel has the kernel hold the process to its limits where the definition asks for it, or let go of it
// where it no longer does. A host that cannot is told of and nothing fails by it.
func (a *actor) holdByKernel() {
	r := a.spec.Resource
	if !r.Enforce && !a.enforced {
		return
	}
	mode, err := a.s.host.Limit(a.key, r)
	a.enforced = r.Enforce
	a.notes.kernel = kernelText(r.Enforce && (r.CPU > 0 || r.Mem > 0), mode, err)
}

// letGoByKernel ends that for a process that is managed no longer.
func (a *actor) letGoByKernel() {
	if !a.enforced {
		return
	}
	if _, err := a.s.host.Limit(a.key, gozzard.Resource{}); err != nil {
		a.log.Warn("cannot take back the kernel's limits", "error", err)
	}
}
