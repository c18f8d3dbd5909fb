package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

const probeTimeout = 10 * time.Second

// measuring is what one pass needs; the regular ones use it again and again.
type measuring struct {
	all     []*actor
	running []*actor // those that are measured
	procs   []Proc   // aligned with running
}

// release keeps the room and lets go of what is in it.
func (m *measuring) release() {
	clear(m.all)
	clear(m.running)
	m.all, m.running, m.procs = m.all[:0], m.running[:0], m.procs[:0]
}

// pass is the regular look at the machine: usage of all that runs in one sample, a look at what runs unwatched, and
// a search for what does not run as far as we know but may have been started by somebody else.
func (s *Supervisor) pass(ctx context.Context) {
	if !s.sampling.CompareAndSwap(false, true) { // the machine is slow: one pass at a time
		return
	}

	defer s.sampling.Store(false)
	m := &s.regular
	defer m.release()
	m.all = s.list(m.all)
	s.sample(m, true)
	s.watchPools(m.all)

	for _, a := range m.all {
		if ctx.Err() != nil {
			return
		}
		s.guard(&a.key, func() { s.check(a) })
	}
}

// check compares what is believed of a process with the machine and has its actor look when they differ. While the
// actor works, it looks itself.
func (s *Supervisor) check(a *actor) {
	v, busy := a.idleView()
	if busy || !v.known || v.spec == nil {
		return
	}
	// the clock was set: its timer knows nothing of that
	if now := s.now(); !v.next.IsZero() && (!now.Before(v.next) || now.Before(v.madeAt)) {
		a.post(event{kind: eventWake})
	}

	if !v.proc.IsZero() {
		if !v.watched && !s.host.Alive(v.proc) {
			a.post(event{kind: eventLook})
		}
		return
	}

	f, err := s.host.Find(a.key, v.spec)
	switch {
	case err != nil:
		s.log.Debug("cannot look for a stopped process", "ns", a.key.Namespace, "proc", a.key.Name, "error", err)
	case !f.Proc.IsZero():
		a.post(event{kind: eventLook})
	}
}

func (a *actor) idleView() (v view, busy bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.view, a.busy
}

// sample measures the running ones among the actors' processes in one pass. Only regular samples count for limits:
// what a process needs to come up is no part of what it may use.
func (s *Supervisor) sample(m *measuring, regular bool) {
	for _, a := range m.all {
		if p := a.present(); !p.IsZero() {
			m.running = append(m.running, a)
			m.procs = append(m.procs, p)
		}
	}

	if len(m.procs) == 0 {
		return
	}

	for i, u := range s.host.Sample(m.procs) {
		a := m.running[i]
		tell, over := a.used(m.procs[i], u, regular)
		if tell {
			a.post(event{kind: eventUsage})
		}
		if over != nil {
			a.post(event{kind: eventLimit, breach: over})
		}
	}
}

// used notes the usage of a process, if it is still the actor's. It says whether that is worth a message, and what
// there is to say about limits.
func (a *actor) used(p Proc, u Usage, regular bool) (tell bool, over *breach) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v := &a.view
	if v.proc != p {
		return false, nil
	}

	v.usage, v.sampled = u, true
	if regular && v.known && v.spec != nil {
		next, b, due := v.strikes.after(u, v.spec.Resource)
		v.strikes = next
		if due {
			b.proc = p
			over = new(breach)
			*over = b
		}
	}

	return noticeable(v.shown, u), over
}

// sampleSoon has a process that has just begun measured before its turn, together with all others of this moment.
func (s *Supervisor) sampleSoon(a *actor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh = append(s.fresh, a)
	if len(s.fresh) == 1 {
		time.AfterFunc(freshSampleAfter, func() { s.spawn(s.sampleFresh) }) // without effect after Run has ended
	}
}

func (s *Supervisor) sampleFresh(context.Context) {
	s.mu.Lock()
	fresh := s.fresh
	s.fresh = nil
	s.mu.Unlock()
	s.sample(&measuring{all: fresh}, false)
}

// probeVersion asks the running process's version command in the background; the actor hears of it by an event.
func (a *actor) probeVersion() {
	run, spec := a.run, a.spec
	if spec.Control.Version == "" {
		a.version = ""
		return
	}

	a.s.spawn(func(ctx context.Context) {
		select {
		case a.s.probes <- struct{}{}:
			defer func() { <-a.s.probes }()
		case <-ctx.Done():
			return
		}

		if err := a.s.permit(spec); err != nil {
			a.log.Debug("version_cmd is not run", "error", err)
			return
		}

		res, err := a.s.host.Run(ctx, Run{
			Key: a.key, Spec: spec, Action: gozzard.ActionQuery, Command: spec.Control.Version,
			Timeout: min(commandTimeout(spec.Policy), probeTimeout),
		})
		text := ""
		switch {
		case err != nil:
			a.log.Debug("cannot run version_cmd", "error", err)
		case res.ExitCode == 0 && res.Signal == "" && !res.TimedOut:
			text = versionText(res.Output)
		}

		a.post(event{kind: eventVersion, run: run, text: text})
	})
}
