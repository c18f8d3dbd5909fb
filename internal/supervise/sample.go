package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

const probeTimeout = 10 * time.Second

// pass is the regular look at the machine: usage of all that runs in one sample, a look at what runs unwatched, and a search for what does not
// run as far as we know but may have been started by somebody else.
func (s *Supervisor) pass(ctx context.Context) {
	if !s.sampling.CompareAndSwap(false, true) { // the machine is slow: one pass at a time
		return
	}
	defer s.sampling.Store(false)
	all := s.all()
	s.sample(all)
	for _, a := range all {
		if ctx.Err() != nil {
			return
		}
		s.guard(a.key.String(), func() { s.check(a) })
	}
}

// check compares what is believed of a process with the machine and has its actor look when they differ. While the actor works, it looks itself.
func (s *Supervisor) check(a *actor) {
	v, busy := a.idleView()
	if busy || !v.known || v.spec == nil {
		return
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

// sample measures the running ones among the actors' processes in one pass.
func (s *Supervisor) sample(actors []*actor) {
	running := make([]*actor, 0, len(actors))
	procs := make([]Proc, 0, len(actors))
	for _, a := range actors {
		if v := a.snapshot(); !v.proc.IsZero() {
			running = append(running, a)
			procs = append(procs, v.proc)
		}
	}
	if len(procs) == 0 {
		return
	}
	for i, u := range s.host.Sample(procs) {
		if running[i].used(procs[i], u) {
			running[i].post(event{kind: eventUsage})
		}
	}
}

// used notes the usage of a process, if it is still the actor's; true: it is worth a message.
func (a *actor) used(p Proc, u Usage) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.view.proc != p {
		return false
	}
	a.view.usage, a.view.sampled = u, true
	return noticeable(a.view.shown, u)
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
	s.sample(fresh)
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
