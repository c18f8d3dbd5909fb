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

	maxHealthTimeout = time.Minute // a probe that hangs keeps others waiting
	healthy          = "ok"
)

// health is what the health command says of the present run.
type health struct {
	at      time.Time // of the next probe; zero: none is planned
	probing bool      // one is under way
	fails   int       // in a row
	sick    bool      // it failed as often as the definition allows
	text    string    // "ok", what is wrong, or "" before the first probe

	cures  int       // restarts in a row because of it; survives them
	cureAt time.Time // when the next restart is due; zero: none
}

func orDefault(secs int, d time.Duration) time.Duration {
	if secs <= 0 {
		return d
	}
	return window(secs)
}

// healthAfter counts one more probe: it takes threshold failures in a row to be sick and one success to be well.
func healthAfter(fails int, failed bool, threshold int) (next int, sick bool) {
	if !failed {
		return 0, false
	}
	if threshold <= 0 {
		threshold = healthThreshold
	}
	fails = min(fails, threshold) + 1
	return fails, fails >= threshold
}

// renewHealth forgets what was said of an earlier run. A probe that is under way is not forgotten: there are never two.
func (a *actor) renewHealth() {
	a.health = health{probing: a.health.probing, cures: a.health.cures}
	a.notes.health = ""
}

// probeHealth plans the next probe of a running process, or begins it when its time has come.
func (a *actor) probeHealth() {
	if !a.known || !a.running() || a.spec == nil || a.spec.Control.Health == "" {
		if !a.health.at.IsZero() {
			a.renewHealth()
			a.publish(false)
		}
		return
	}

	h := &a.health
	if h.at.IsZero() {
		every := orDefault(a.spec.Policy.HealthInterval, healthEvery)
		// what came up together is not probed together
		h.at = time.Now().Add(every/2 + time.Duration(a.s.rand()*float64(every/2)))
	}

	if h.probing || time.Now().Before(h.at) {
		return
	}

	if err := a.s.permit(a.spec); err != nil { // nothing is known, which is not to be unhealthy
		a.renewHealth()
		a.health.at = time.Now().Add(orDefault(a.spec.Policy.HealthInterval, healthEvery))
		a.notes.health = "health_cmd is not run: " + err.Error()
		a.publish(false)
		return
	}

	h.probing = true
	run, spec := a.run, a.spec
	a.s.spawn(func(ctx context.Context) {
		e := event{kind: eventHealth, run: run, text: internalError}
		defer func() { a.post(e) }() // whatever happens: no probe follows before this one has ended

		select {
		case a.s.healths <- struct{}{}:
			defer func() { <-a.s.healths }()
		case <-ctx.Done():
			return
		}

		timeout := min(orDefault(spec.Policy.HealthTimeout, healthTimeout), maxHealthTimeout)
		res, err := a.s.host.Run(ctx, Run{
			Key: a.key, Spec: spec, Action: gozzard.ActionQuery, Command: spec.Control.Health, Timeout: timeout,
		})
		e.text = sickText(res, err, timeout)
	})
}

// probed takes in the end of a probe. What was found out about an earlier run, or in the middle of an operation,
// says nothing about this one.
func (a *actor) probed(run uint64, text string) {
	h := &a.health
	h.probing = false

	if run != a.run || !a.running() || a.spec == nil || a.operating {
		return
	}

	p := a.spec.Policy
	h.at = time.Now().Add(orDefault(p.HealthInterval, healthEvery))
	was := h.sick
	h.fails, h.sick = healthAfter(h.fails, text != "", p.HealthThreshold)
	switch {
	case h.sick:
		h.text = text
		a.notes.health = "unhealthy: " + text
	case text == "":
		h.text, a.notes.health = healthy, ""
		h.cures, h.cureAt = 0, time.Time{}
	}

	if h.sick != was {
		said := "healthy again"
		if h.sick {
			said = a.notes.health
		}
		a.announce(gozzard.Event{Kind: gozzard.EventHealth, PID: a.proc.PID, Message: said})
	}

	if h.sick && p.HealthRestart && a.rec.Hosted && h.cureAt.IsZero() {
		// one restart after the other without a success in between comes as slowly as the pull-ups of a crash loop
		h.cures++
		h.cureAt = time.Now().Add(pullUpDelay(p, h.cures, a.s.rand()))
	}

	a.publish(false)
}

// cureDue reports whether the process must be restarted because it is unhealthy.
func (a *actor) cureDue() bool {
	h := &a.health
	if h.cureAt.IsZero() {
		return false
	}
	if !h.sick || !a.running() || !a.known || !a.rec.Hosted || a.spec == nil || !a.spec.Policy.HealthRestart {
		h.cureAt = time.Time{}
		return false
	}
	return !time.Now().Before(h.cureAt)
}

// cure restarts an unhealthy process.
func (a *actor) cure(ctx context.Context) {
	why := a.notes.health
	a.health.cureAt = time.Time{}
	if err := a.s.permit(a.spec); err != nil { // before anything is stopped that could not be started again
		a.restarted(failed(gozzard.CodeRefused, "%v", err), why)
		return
	}
	out := a.attempt(func() gozzard.Outcome { return a.restart(ctx, gozzard.OpID{}) })
	a.restarted(out, why)
}
