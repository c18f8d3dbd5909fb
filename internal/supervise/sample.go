package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
)

const probeTimeout = 10 * time.Second

// sampleBuffers are the slices that one pass needs. The regular passes reuse them.
type sampleBuffers struct {
	all     []*actor
	running []*actor // the actors that are measured
	procs   []Proc   // the process of each element of running

	measured []Measurement
}

// Measurement is what a regular pass measured of one process.
type Measurement struct {
	Key      gozzard.Key
	Proc     Proc   // zero if nothing was measured
	Usage    Usage  // of Proc
	Restarts uint32 // as in gozzard.Status
}

// reset empties the slices and keeps their memory.
func (m *sampleBuffers) reset() {
	clear(m.all)
	clear(m.running)
	clear(m.measured)
	m.measured = m.measured[:0]
	m.all, m.running, m.procs = m.all[:0], m.running[:0], m.procs[:0]
}

// pass is the regular look at the machine. It measures the usage of all running processes in one sample, checks those
// that are not watched, and looks for stopped processes that something else may have started.
func (s *Supervisor) pass(ctx context.Context) {
	// On a slow machine a pass may still be running.
	if !s.sampling.CompareAndSwap(false, true) {
		return
	}
	defer s.sampling.Store(false)

	// Measure.
	m := &s.regular
	defer m.reset()
	m.all = s.list(m.all)
	s.sample(m, true)
	s.watchPools(m.all)
	s.reportMeasured(m)

	// Check.
	for _, a := range m.all {
		if ctx.Err() != nil {
			return
		}
		s.guard(&a.key, func() { s.check(a) })
	}
}

// reportMeasured hands over what was measured. The usage of a process that has ended meanwhile is left out.
func (s *Supervisor) reportMeasured(m *sampleBuffers) {
	if s.measured == nil {
		return
	}
	for _, a := range m.all {
		v := a.snapshot()
		if !v.managed {
			continue
		}
		x := Measurement{Key: a.key, Restarts: v.status.Restarts}
		if v.sampled && v.usage.Procs > 0 {
			x.Proc, x.Usage = v.proc, v.usage
		}
		m.measured = append(m.measured, x)
	}
	s.measured(m.measured)
}

// check compares the view of a process with the machine, and makes its actor look if they differ. It skips an actor
// that is busy, because that one looks anyway.
func (s *Supervisor) check(a *actor) {
	v, busy := a.idleView()
	if busy || !v.managed || v.spec == nil {
		return
	}

	// Wake the actor if its planned run is due: the clock may have been set, which its timer does not notice.
	if now := s.now(); !v.next.IsZero() && (!now.Before(v.next) || now.Before(v.madeAt)) {
		a.post(event{kind: eventWake})
	}

	// Check a process that should be running.
	if !v.proc.IsZero() {
		if !v.watched && !s.host.Alive(v.proc) {
			a.post(event{kind: eventLook})
		}
		return
	}

	// Look for a process that should not be running.
	f, err := s.host.Find(Query{Key: a.key, Spec: v.spec, Held: v.held, Taken: s.takenBut(a.key)})
	switch {
	case err != nil:
		s.log.Debug("cannot look for a stopped process", "ns", a.key.Namespace, "proc", a.key.Name, "err", err)
	case !f.Proc.IsZero() || len(f.Orphans) != v.orphans || (f.Verdict == identity.Ambiguous) != v.unclear:
		a.post(event{kind: eventLook})
	}
}

func (a *actor) idleView() (v view, busy bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.view, a.busy
}

// sample measures the running processes of the actors in one pass. Only regular samples count for limits: what a
// process needs to start does not.
func (s *Supervisor) sample(m *sampleBuffers, regular bool) {
	for _, a := range m.all {
		if p := a.currentProc(); !p.IsZero() {
			m.running = append(m.running, a)
			m.procs = append(m.procs, p)
		}
	}

	if len(m.procs) == 0 {
		return
	}

	for i, u := range s.host.Sample(m.procs) {
		a := m.running[i]
		report, over := a.recordUsage(m.procs[i], u, regular)
		if report {
			a.post(event{kind: eventUsage})
		}
		if over != nil {
			a.post(event{kind: eventLimit, breach: over})
		}
	}
}

// recordUsage records the usage of a process, if the actor still has that process. report says that the change is
// noticeable; over is what must be done about limits.
func (a *actor) recordUsage(p Proc, u Usage, regular bool) (report bool, over *breach) {
	a.mu.Lock()
	defer a.mu.Unlock()

	v := &a.view
	if v.proc != p {
		return false, nil
	}

	v.usage, v.sampled = u, true
	if regular && v.managed && v.spec != nil {
		next, b, due := v.limitCounts.after(u, v.spec.Resource)
		v.limitCounts = next
		if due {
			b.proc = p
			if b.over {
				a.exceeded.Add(1)
			}
			over = new(breach)
			*over = b
		}
	}
	return noticeable(v.shown, u), over
}

// sampleSoon measures a process that has just started before the next regular pass, together with all others that
// start at the same moment. While many start, it measures every few seconds: each pass looks at the whole machine.
func (s *Supervisor) sampleSoon(a *actor) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.fresh = append(s.fresh, a)
	if len(s.fresh) == 1 {
		wait := max(freshSampleAfter, freshSampleEvery-time.Since(s.freshAt))
		time.AfterFunc(wait, func() { s.spawn(s.sampleFresh) }) // has no effect after Run has ended
	}
}

func (s *Supervisor) sampleFresh(context.Context) {
	s.mu.Lock()
	fresh := s.fresh
	s.fresh, s.freshAt = nil, time.Now()
	s.mu.Unlock()

	s.sample(&sampleBuffers{all: fresh}, false)
}

// probeVersion runs the version command of the running process in the background. Its end is an event.
func (a *actor) probeVersion() {
	run, spec := a.run, a.spec
	if spec.Control.Version == "" {
		a.version = ""
		return
	}
	a.s.spawn(func(ctx context.Context) { a.runVersion(ctx, run, spec) })
}

// runVersion runs the version command and posts its result.
func (a *actor) runVersion(ctx context.Context, run uint64, spec *gozzard.Spec) {
	// Wait for a slot.
	select {
	case a.s.probes <- struct{}{}:
		defer func() { <-a.s.probes }()
	case <-ctx.Done():
		return
	}

	// Skip what the policy forbids.
	if err := a.s.permit(a.key, spec); err != nil {
		a.log.Debug("policy forbids version_cmd", "err", err)
		return
	}

	// Run the command.
	res, err := a.s.host.Run(ctx, Run{
		Key: a.key, Spec: spec, Action: gozzard.ActionQuery, Command: spec.Control.Version,
		Timeout: min(commandTimeout(spec.Policy), probeTimeout),
	})
	text := ""
	switch {
	case err != nil:
		a.log.Debug("cannot run version_cmd", "err", err)
	case res.ExitCode == 0 && res.Signal == "" && !res.TimedOut:
		text = versionText(res.Output)
	}

	a.post(event{kind: eventVersion, run: run, text: text})
}
