package supervise

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	healthEvery     = 30 * time.Second
	healthTimeout   = 10 * time.Second
	healthThreshold = 3

	maxHealthTimeout = time.Minute     // other probes wait for one that hangs
	healthMargin     = 5 * time.Second // added to the interval before a probe that has not begun is overdue
	overdueLogEvery  = time.Minute
	healthy          = "ok"
)

// health is what the health check has said about the present run.
type health struct {
	at        time.Time // when the next probe is due; zero if none is planned
	probe     *probe    // the probe that waits or runs; nil if there is none
	fails     int       // failed probes in a row
	unhealthy bool      // it failed as often as the definition allows
	text      string    // "ok", what is wrong, or "" before the first probe
	knownAt   time.Time // when the last probe of this run ended; zero if none did
	overdue   bool      // a probe has waited too long for its turn, and none has ended since

	restarts  int       // restarts in a row because of bad health; kept over a restart
	restartAt time.Time // when the next restart is due; zero if none is planned
}

// probe is one health command that waits for its turn or runs.
type probe struct{ begun atomic.Bool }

// orDefault turns the seconds of a definition into a duration, or returns the default if there are none.
func orDefault(secs int, d time.Duration) time.Duration {
	if secs <= 0 {
		return d
	}
	return window(secs)
}

// healthAfter counts one more probe. A process is unhealthy after threshold failures in a row, and healthy after one
// success.
func healthAfter(fails int, failed bool, threshold int) (next int, unhealthy bool) {
	if !failed {
		return 0, false
	}
	if threshold <= 0 {
		threshold = healthThreshold
	}
	fails = min(fails, threshold) + 1
	return fails, fails >= threshold
}

// resetHealth forgets the health of an earlier run. It remembers that a probe is running, because there must never be
// two.
func (a *actor) resetHealth() {
	a.health = health{probe: a.health.probe, restarts: a.health.restarts}
	a.notes.health = ""
}

// probeHealth plans the next probe of a running process, or begins it when it is due.
func (a *actor) probeHealth() {
	// Forget the health of a process that needs no probe.
	if !a.managed || !a.running() || a.spec == nil || !a.spec.Control.Probed() {
		if !a.health.at.IsZero() {
			a.resetHealth()
			a.publish(false)
		}
		return
	}

	// Plan the first probe of a run at a random time, so that processes that started together are not probed
	// together.
	h := &a.health
	if h.at.IsZero() {
		every := orDefault(a.spec.Policy.HealthInterval, healthEvery)
		h.at = time.Now().Add(every/2 + time.Duration(a.s.rand()*float64(every/2)))
	}
	if h.probe != nil {
		a.noteOverdue()
		return
	}
	if time.Now().Before(h.at) {
		return
	}

	// Skip a probe that the policy forbids. Unknown health does not mean unhealthy.
	if err := a.s.permit(a.key, a.spec); err != nil {
		a.resetHealth()
		a.health.at = time.Now().Add(orDefault(a.spec.Policy.HealthInterval, healthEvery))
		a.notes.health = "its health is not checked: " + err.Error()
		a.publish(false)
		return
	}

	// Probe in the background.
	p, o := &probe{}, owner{namespace: a.key.Namespace, account: a.spec.Account()}
	h.probe = p
	a.s.spawn(func(ctx context.Context) { a.runProbe(ctx, p, o) })
}

// runProbe waits for a turn, runs the health command and posts its result.
func (a *actor) runProbe(ctx context.Context, p *probe, o owner) {
	e := event{kind: eventHealth, text: internalError, skipped: true}
	defer func() { a.post(e) }() // in any case: the next probe waits for this event

	// Wait for a turn.
	if !a.s.healths.take(ctx, o) {
		return
	}
	defer a.s.healths.give(o)
	p.begun.Store(true)

	// Look again: the wait can be long.
	v := a.snapshot()
	if !v.managed || v.proc.IsZero() || v.spec == nil || !v.spec.Control.Probed() ||
		a.s.permit(a.key, v.spec) != nil {
		return
	}

	// Ask the process, or run the command.
	e.run, e.skipped = v.run, false
	timeout := min(orDefault(v.spec.Policy.HealthTimeout, healthTimeout), maxHealthTimeout)
	if v.spec.Control.Health == "" {
		probe, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		e.text = ""
		if err := a.s.host.Probe(probe, &v.spec.Control); err != nil {
			e.text = clipText(err.Error())
		}
		return
	}
	res, err := a.s.host.Run(ctx, Run{
		Key: a.key, Spec: v.spec, Action: gozzard.ActionQuery, Command: v.spec.Control.Health, Timeout: timeout,
	})
	e.text = sickText(res, err, timeout)
}

// overdueAt returns when the probe that waits is overdue. It returns false if none waits, or if it is overdue already.
func (a *actor) overdueAt() (at time.Time, waits bool) {
	h := &a.health
	if h.probe == nil || h.at.IsZero() || h.overdue || h.probe.begun.Load() || a.spec == nil {
		return time.Time{}, false
	}
	return h.at.Add(orDefault(a.spec.Policy.HealthInterval, healthEvery) + healthMargin), true
}

// noteOverdue shows that the health of the process is not known because its probe has waited too long for its turn.
func (a *actor) noteOverdue() {
	at, waits := a.overdueAt()
	if !waits || time.Now().Before(at) {
		return
	}

	h := &a.health
	since := h.knownAt
	if since.IsZero() {
		since = a.since
	}
	h.overdue = true
	h.text = overdueText(since)
	a.notes.health = "health " + h.text
	a.s.logOverdue(a.key)
	a.publish(false)
}

// logOverdue writes to the log that probes are overdue, at most once in overdueLogEvery.
func (s *Supervisor) logOverdue(key gozzard.Key) {
	now := time.Now()
	s.overdueMu.Lock()
	due := now.Sub(s.overdueLogged) >= overdueLogEvery
	if due {
		s.overdueLogged = now
	}
	s.overdueMu.Unlock()

	if due {
		s.log.Warn("health checks wait longer than their interval, because those of others take all places",
			"ns", key.Namespace, "proc", key.Name)
	}
}

// handleProbe handles the end of a probe. It ignores a probe that did not run, a probe of an earlier run, and one that
// ended during an operation. text says what is wrong; it is empty if the process is healthy.
func (a *actor) handleProbe(run uint64, text string, skipped bool) {
	h := &a.health
	h.probe = nil
	if skipped || run != a.run || !a.running() || a.spec == nil || a.operating {
		return
	}

	// Count the result.
	p := a.spec.Policy
	h.at = time.Now().Add(orDefault(p.HealthInterval, healthEvery))
	was, wasOverdue := h.unhealthy, h.overdue
	h.knownAt, h.overdue = a.s.now(), false
	h.fails, h.unhealthy = healthAfter(h.fails, text != "", p.HealthThreshold)
	switch {
	case h.unhealthy:
		h.text = text
		a.notes.health = "unhealthy: " + text
	case text == "":
		h.text, a.notes.health = healthy, ""
		h.restarts, h.restartAt = 0, time.Time{}
	case wasOverdue:
		h.text, a.notes.health = "", "" // one failure decides nothing
	}

	// Report a change.
	if h.unhealthy != was {
		said := "healthy again"
		if h.unhealthy {
			said = a.notes.health
		}
		a.announce(gozzard.Event{Kind: gozzard.EventHealth, PID: a.proc.PID, Message: said})
	}

	// Plan a restart. Restarts without a success in between wait as long as the pull-ups of a crash loop.
	if h.unhealthy && p.HealthRestart && a.rec.Hosted && h.restartAt.IsZero() {
		h.restarts++
		h.restartAt = time.Now().Add(pullUpDelay(p, h.restarts, a.s.rand()))
	}

	a.publish(false)
}

// healthRestartDue reports whether the process must be restarted because it is unhealthy.
func (a *actor) healthRestartDue() bool {
	h := &a.health
	if h.restartAt.IsZero() {
		return false
	}
	if !h.unhealthy || !a.running() || !a.managed || !a.rec.Hosted || a.spec == nil || !a.spec.Policy.HealthRestart {
		h.restartAt = time.Time{}
		return false
	}
	return !time.Now().Before(h.restartAt)
}

// restartUnhealthy restarts an unhealthy process.
func (a *actor) restartUnhealthy(ctx context.Context) {
	why := a.notes.health
	a.health.restartAt = time.Time{}
	if err := a.s.permit(a.key, a.spec); err != nil { // checked first: a process that may not be started must not be stopped
		a.finishRestart(failed(gozzard.CodeRefused, "%v", err), why)
		return
	}

	out := a.execute(func() gozzard.Outcome { return a.restart(ctx, gozzard.OpID{}) })
	a.finishRestart(out, why)
}
