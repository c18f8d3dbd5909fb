package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	healthEvery     = 30 * time.Second
	healthTimeout   = 10 * time.Second
	healthThreshold = 3

	maxHealthTimeout = time.Minute // other probes wait for one that hangs
	healthy          = "ok"
)

// health is what the health check has said about the present run.
type health struct {
	at        time.Time // when the next probe is due; zero if none is planned
	probing   bool      // a probe is running
	fails     int       // failed probes in a row
	unhealthy bool      // it failed as often as the definition allows
	text      string    // "ok", what is wrong, or "" before the first probe

	restarts  int       // restarts in a row because of bad health; kept over a restart
	restartAt time.Time // when the next restart is due; zero if none is planned
}

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
	a.health = health{probing: a.health.probing, restarts: a.health.restarts}
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
	if h.probing || time.Now().Before(h.at) {
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
	h.probing = true
	run, spec := a.run, a.spec
	a.s.spawn(func(ctx context.Context) { a.runProbe(ctx, run, spec) })
}

// runProbe runs the health command and posts its result.
func (a *actor) runProbe(ctx context.Context, run uint64, spec *gozzard.Spec) {
	e := event{kind: eventHealth, run: run, text: internalError}
	defer func() { a.post(e) }() // in any case: the next probe waits for this event

	select {
	case a.s.healths <- struct{}{}:
		defer func() { <-a.s.healths }()
	case <-ctx.Done():
		return
	}

	timeout := min(orDefault(spec.Policy.HealthTimeout, healthTimeout), maxHealthTimeout)
	if spec.Control.Health == "" {
		probe, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		e.text = ""
		if err := a.s.host.Probe(probe, &spec.Control); err != nil {
			e.text = gozzard.Clip(err.Error(), maxStatusBytes)
		}
		return
	}
	res, err := a.s.host.Run(ctx, Run{
		Key: a.key, Spec: spec, Action: gozzard.ActionQuery, Command: spec.Control.Health, Timeout: timeout,
	})
	e.text = sickText(res, err, timeout)
}

// handleProbe handles the end of a probe. It ignores a probe of an earlier run, and one that ended during an
// operation. text says what is wrong; it is empty if the process is healthy.
func (a *actor) handleProbe(run uint64, text string) {
	h := &a.health
	h.probing = false
	if run != a.run || !a.running() || a.spec == nil || a.operating {
		return
	}

	// Count the result.
	p := a.spec.Policy
	h.at = time.Now().Add(orDefault(p.HealthInterval, healthEvery))
	was := h.unhealthy
	h.fails, h.unhealthy = healthAfter(h.fails, text != "", p.HealthThreshold)
	switch {
	case h.unhealthy:
		h.text = text
		a.notes.health = "unhealthy: " + text
	case text == "":
		h.text, a.notes.health = healthy, ""
		h.restarts, h.restartAt = 0, time.Time{}
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
