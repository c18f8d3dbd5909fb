package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

// The limited resources. If several limits are exceeded at once, the message names the first one in this order.
const (
	limitCPU = iota
	limitMem
	limitFD
	limitDisk
	limitNet
	limitCores
	limitBytes
	limitCount
)

// limitCounts has, for each limit, the number of samples in a row that exceeded it.
type limitCounts [limitCount]int

// breach is a limit that was exceeded in enough samples to act on it, or the end of that.
type breach struct {
	proc  Proc
	text  string // which limit, what was measured, in how many samples
	pool  bool   // the limit belongs to the namespace's pool, not to the process
	first bool   // the first time since the process was within its limits
	over  bool   // false if the process is within all its limits again
}

// samplesOf is how many samples in a row must exceed a limit before it is acted on.
func samplesOf(r gozzard.Resource) int {
	if r.Samples <= 0 {
		return gozzard.DefaultLimitSamples
	}
	return r.Samples
}

// limitsOf lists usage and limits in the order of the limited resources.
func limitsOf(u Usage, r gozzard.Resource) (used, limit [limitCount]float64) {
	used = [limitCount]float64{float64(u.CPU), float64(u.Mem), float64(u.FD), float64(u.Disk), float64(u.Net),
		float64(u.Cores), float64(u.MemKB) / 1024}
	limit = [limitCount]float64{r.CPU, r.Mem, float64(r.FD), float64(r.Disk), float64(r.Net), r.CPUs,
		float64(r.MemB) / (1 << 20)}
	return used, limit
}

// after counts one more sample. It returns a breach (report is true) when a limit was exceeded in enough samples in a
// row, again after as many more samples, and when all limits are respected again after that. A single spike has no
// effect.
func (s limitCounts) after(u Usage, r gozzard.Resource) (next limitCounts, b breach, report bool) {
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
		if next[i]%need == 0 && !report {
			report = true
			b = breach{text: overText(i, used[i], limit[i], next[i]), over: true, first: next[i] == need}
		}
	}

	if was && !is && !report {
		return next, breach{}, true
	}
	return next, b, report
}

// limitAct decides what is done to a process over a limit. A process that is not supervised is only reported.
func limitAct(act gozzard.LimitAct, hosted bool) gozzard.LimitAct {
	switch {
	case !hosted || act == gozzard.ActAlert:
		return gozzard.ActAlert
	case act == gozzard.ActStop || act == gozzard.ActRestart:
		return act
	}
	return gozzard.ActKill
}

// handleBreach handles what the samples have shown. It only notes a breach; step calls actOnBreach.
func (a *actor) handleBreach(b breach) {
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

// limitActionDue reports whether the actor must act on a limit.
func (a *actor) limitActionDue() bool {
	if a.breach != nil && (a.breach.proc != a.proc || a.spec == nil || !a.managed) {
		a.breach = nil
	}
	return a.breach != nil
}

// actOnBreach acts on a process over a limit. The process stays supervised: a pull-up starts it again, and its end
// counts like any other.
func (a *actor) actOnBreach(ctx context.Context) {
	b := *a.breach
	a.breach = nil

	// Decide what to do. If the policy forbids it, only report.
	act := limitAct(a.spec.Resource.Act, a.rec.Hosted)
	if act != gozzard.ActAlert {
		if err := a.s.permit(a.key, a.spec); err != nil {
			act, b.text = gozzard.ActAlert, b.text+"; nothing is done about it: "+err.Error()
		}
	}

	kind := gozzard.EventLimitExceeded
	if b.pool {
		kind = gozzard.EventGroupLimitExceeded
	}

	// Only report.
	if act == gozzard.ActAlert {
		if b.first || b.pool {
			a.alerted, a.notes.limit = true, b.text
			a.announce(gozzard.Event{Kind: kind, PID: a.proc.PID, Message: b.text})
			a.publish(false)
		}
		return
	}

	// Stop, kill or restart the process.
	pid, up := a.proc.PID, time.Since(a.upSince)
	out := a.execute(func() gozzard.Outcome { return a.enforce(ctx, act) })
	if out.Code == "" {
		return
	}

	// Report it, and plan the next start.
	a.limitActions++
	text := curbText(b.text, act, out, a.limitActions)
	a.notes.limit, a.message = text, ""
	a.announce(gozzard.Event{Kind: kind, PID: pid, Message: text})
	if !a.running() {
		a.planPullUp(up, "it was over a limit")
	}
	a.publish(false)
}

// enforce does what the definition demands for a process over a limit. If the definition's command does not end the
// process, enforce kills it.
func (a *actor) enforce(ctx context.Context, act gozzard.LimitAct) gozzard.Outcome {
	if act == gozzard.ActRestart {
		return a.restart(ctx, gozzard.OpID{})
	}

	// Use the definition's command first.
	action := gozzard.ActionKill
	if act == gozzard.ActStop {
		action = gozzard.ActionStop
	}
	members, err := a.s.host.Members(a.query())
	if err != nil {
		return failed(gozzard.CodeCommandFailed, "cannot list the processes of %s: %v", a.key, err)
	}
	out := a.bringDown(ctx, gozzard.OpID{}, action)
	if out.Code == "" || out.Code == gozzard.CodeOK {
		return out
	}

	// Kill what it did not end.
	a.log.Warn("a command did not end a process over its limit, killing the process",
		"action", action, "message", out.Message)
	if err := a.force(members); err != nil {
		return failed(gozzard.CodeCommandFailed, "cannot kill pid %d: %v", a.proc.PID, err)
	}

	// Wait until it is gone.
	switch {
	case a.waitGone(ctx, killPatience):
		out = a.clearLeftovers(members)
		out.Forced = true
		return out
	case ctx.Err() != nil:
		return gozzard.Outcome{}
	}

	return stillAlive(procName(a.key, a.spec), a.proc.PID, "")
}

// applyKernelLimits makes the kernel enforce the limits if the definition asks for it, and ends that if the
// definition no longer does. If the host cannot, the status says so and nothing fails.
func (a *actor) applyKernelLimits() {
	r := a.spec.Resource
	if !r.Enforce && !a.enforced {
		return
	}
	mode, err := a.s.host.Limit(a.key, r)
	a.enforced = r.Enforce
	a.notes.kernel = kernelText(r.Enforce && (r.LimitsCPU() || r.LimitsMem()), mode, err)
}

// removeKernelLimits ends the enforcement for a process that is no longer managed.
func (a *actor) removeKernelLimits() {
	if !a.enforced {
		return
	}
	if _, err := a.s.host.Limit(a.key, gozzard.Resource{}); err != nil {
		a.log.Warn("cannot remove the kernel's limits", "err", err)
	}
}
