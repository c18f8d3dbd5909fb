package supervise

import (
	"time"

	"github.com/gozzard/gozzard"
)

// The agent of the model: it makes actors from a world, lets them do one step, and reads the world from them.

// What an actor keeps as a text is only there or not there.
const someText = "text"

// codes are the verdicts that the model distinguishes.
var modelCodes = [...]gozzard.Code{gozzard.CodeOK, gozzard.CodeAlreadyRunning, gozzard.CodeNotRunning,
	gozzard.CodeCommandFailed}

func codeNumber(c gozzard.Code) uint8 {
	for i, x := range modelCodes {
		if x == c {
			return uint8(i)
		}
	}
	panic("the model has no code " + c)
}

// load makes the actors of a world.
func (m *supervisionModel) load() {
	s := m.s
	clear(s.holders)
	for i := range m.w.live {
		if p := &m.w.live[i]; p.holder != 0 && m.intact(claimOnRecord) {
			s.holders[p.identity()] = modelKeys[p.holder-1]
		}
	}
	clear(s.actors)
	s.fresh = append(s.fresh[:0], nil) // so that no timer is set for a sample
	m.spareAll = false

	for d := range m.defs {
		a := m.actors[d]
		if a == nil {
			a = newActor(s, modelKeys[d])
			m.actors[d] = a
		}
		m.loadActor(a, d)
		s.actors[a.key] = a
	}
}

func (m *supervisionModel) loadActor(a *actor, d int) {
	x := &m.w.defs[d]
	a.state = state{managed: x.managed, rec: x.record(d, x.name), spec: modelSpecs[x.name], run: 1, held: x.held.real()}
	a.operating = x.at != atIdle && x.at != atRestore
	a.starting = x.at == atCommand || x.at == atCheck
	a.delaying = x.at == atCommand
	a.stopping = x.at >= atMembers && x.at <= atLeftovers && m.intact(stopLooksForNoOther)
	a.restoring = x.at == atRestore
	if x.running {
		a.proc, a.stopWatch = a.held.Proc, func() {}
	}
	if x.unclear {
		a.unclear = someText
	}
	if x.orphans {
		for i := range m.w.live {
			if p := &m.w.live[i]; p.orphan && int(p.group) == d+1 {
				a.orphans = append(a.orphans, p.identity())
			}
		}
		if len(a.orphans) == 0 { // they have ended, and the actor has not looked since
			a.orphans = append(a.orphans, Proc{BootID: bootNow, PID: 200})
		}
	}
	if x.planned {
		a.pullAt = time.Now().Add(-time.Second)
	}
	if x.message {
		a.message = someText
	}
	if x.note {
		a.notes.identity = someText
	}
	a.ops, a.events = nil, nil
	a.view.managed = x.managed
}

func (x *defined) record(d int, name uint8) Record {
	r := Record{Key: modelKeys[d], Spec: modelBytes[name], Hosted: x.hosted, Wanted: gozzard.StateStopped}
	if x.wanted {
		r.Wanted = gozzard.StateRunning
	}
	return r
}

// save reads the world from the actors, and checks what they have found.
func (m *supervisionModel) save(before *world) {
	for i := range m.w.live {
		p := &m.w.live[i]
		p.holder = 0
		if k, ok := m.s.holders[p.identity()]; ok && p.is != noProcess {
			p.holder = uint8(number(k))
		}
	}

	for d := range m.defs {
		a, x := m.actors[d], &m.w.defs[d]
		x.managed, x.hosted, x.wanted = a.managed, a.rec.Hosted, a.rec.Wanted == gozzard.StateRunning
		if was := before.defs[d].held; a.held.IsZero() && was.pid != 0 && !m.intact(recordIsGivenUp) {
			a.held = was.real()
		}
		x.held, x.running, x.unclear = recordOf(a.held), a.running(), a.unclear != ""
		x.planned, x.message, x.note = !a.pullAt.IsZero(), a.message != "", a.notes.identity != ""
		x.orphans = len(a.orphans) > 0
		for i := range m.w.live {
			if p := &m.w.live[i]; int(p.group) == d+1 {
				p.orphan = false
			}
		}
		for _, o := range a.orphans {
			if p := m.w.byPID(uint8(o.PID)); p != nil && p.identity() == o {
				p.orphan = true
			}
		}
		if !m.intact(orphansAreKnown) {
			x.orphans = false
		}
		if x.running {
			m.checkFound(&before.defs[d], d)
		}
	}
}

// checkFound compares the process that is shown as running with its true nature.
func (m *supervisionModel) checkFound(before *defined, d int) {
	x := &m.w.defs[d]
	p := m.w.byRecord(x.held)
	if p == nil {
		return // its end has not been noticed
	}

	fresh := !before.running || before.held.start != x.held.start
	if fresh && !m.mayBelong(p, d) {
		m.bad = badShown
	}
	left := p.heir || p.left && x.file.pid == before.held.pid && m.w.byPID(x.file.pid) == nil
	if p.is == aWorker && left && before.held.start != p.start && before.at != atCommand && before.at != atCheck {
		m.bad = badWorker
	}
	for i := range m.w.live {
		q := &m.w.live[i]
		if fresh && q != p && !p.next && int(q.of) == d+1 && q.isCopy() && p.isCopy() &&
			q.name == x.name && (q.group == q.of || x.file.pid == q.pid && q.start > before.held.start) &&
			before.held.start != q.start && before.held.start != p.start {
			m.bad = badAmbiguous
		}
	}

	p.of = uint8(d + 1)
	p.proven = p.proven || x.held.settled
	for i := range m.w.live {
		if q := &m.w.live[i]; q.is == aWorker && q.parent == p.start {
			q.of = p.of
		}
	}
}

// mayBelong reports whether a process is of a definition, or free to be adopted by it.
func (m *supervisionModel) mayBelong(p *live, d int) bool {
	switch of := int(p.of); {
	case p.is == aShell && p.known:
		return false
	case of == 0:
		return p.is == byHand
	default:
		return of == d+1 || !m.w.defs[of-1].managed
	}
}

// isCopy reports whether a process offers the service of a definition.
func (p *live) isCopy() bool { return p.is == byHand || p.is == aMain && !p.next }

// agentSteps lists what an actor may do next.
func (m *supervisionModel) agentSteps(w *world, d int) {
	x := &w.defs[d]
	if !w.up {
		return
	}
	m.noticeExit(w, d)

	switch x.at {
	case atIdle:
		m.idleSteps(w, d)
	case atRestore:
		m.act(w, d, true, "agent looks for it for the first time", func(a *actor, x *defined) {
			a.lookAgain()
			x.at = atIdle
		})
	case atUpdate:
		m.act(w, d, true, "agent looks at the definition's process", func(a *actor, x *defined) {
			a.lookAgain()
			x.verdict(gozzard.CodeOK)
		})
	case atVerdict:
		m.verdictStep(w, d)
	default:
		m.startSteps(w, d)
		m.stopSteps(w, d)
	}
}

// noticeExit is the event of the watch.
func (m *supervisionModel) noticeExit(w *world, d int) {
	x := &w.defs[d]
	if !x.running || w.byRecord(x.held) != nil || x.at == atRestore || x.at == atUp || x.at == atFailed ||
		x.at == atVerdict { // there the actor handles no events
		return
	}
	if !x.early || x.at != atCheck {
		m.act(w, d, true, "agent notices the end of the process", func(a *actor, x *defined) {
			x.early = false
			a.handleExit(Exit{})
		})
	}
	if x.at == atCheck { // it may have run for a short time only
		m.act(w, d, true, "agent notices the early end of the process", func(a *actor, x *defined) {
			x.early = false
			a.upSince = time.Now()
			a.handleExit(Exit{})
		})
	}
}

func (m *supervisionModel) idleSteps(w *world, d int) {
	x := &w.defs[d]
	if !x.managed {
		return
	}
	if !x.running {
		m.act(w, d, true, "agent looks", func(a *actor, x *defined) { a.lookAgain() })
	}
	m.act(w, d, true, "agent begins a pull-up", func(a *actor, x *defined) {
		if !m.intact(pullUpWaits) {
			a.unclear, a.orphans = "", nil
		}
		if a.pullUpDue() && !a.mustWait() {
			a.pullAt = time.Time{}
			x.action, x.pullUp, x.at = gozzard.ActionStart, true, atLook
		}
	})
}

func (x *defined) verdict(code gozzard.Code) { x.at, x.code = atVerdict, codeNumber(code) }

// verdictStep ends an operation: the verdict and the record are in the journal.
func (m *supervisionModel) verdictStep(w *world, d int) {
	x := &w.defs[d]
	m.act(w, d, true, "agent records the verdict of "+x.action.String()+": "+string(modelCodes[x.code]),
		func(a *actor, x *defined) {
			out := gozzard.Outcome{Code: modelCodes[x.code], Message: someText}
			if p := m.w.byRecord(x.held); p != nil && x.action == gozzard.ActionStart && out.Code == gozzard.CodeOK {
				p.proven = true
			}
			a.operating = false
			if x.pullUp {
				a.finishRestart(out, "")
			} else {
				op := Op{Action: x.action, Done: func(gozzard.Outcome, *Record, bool) {}}
				a.finish(op, out, before{rec: x.record(d, x.stored), managed: x.managed})
			}
			ends := x.action == gozzard.ActionStop || x.action == gozzard.ActionKill
			if ends && (out.Code == gozzard.CodeOK || out.Code == gozzard.CodeNotRunning) {
				x.stopped = true
				m.checkStopped(d)
			}
			if !x.pullUp {
				x.stored = x.name
			}
			x.idle()
			m.forgetLists(d)
		})
}

func (x *defined) idle() {
	x.at, x.action, x.pullUp, x.saw, x.early, x.forced, x.code = atIdle, gozzard.ActionNone, false, false, false, false, 0
}

func (m *supervisionModel) forgetLists(d int) {
	for i := range m.w.live {
		if p := &m.w.live[i]; int(p.of) == d+1 {
			p.listed, p.due = false, false
		}
	}
}

// checkStopped checks that nothing that a command of the definition has started lives.
func (m *supervisionModel) checkStopped(d int) {
	for i := range m.w.live {
		p := &m.w.live[i]
		started := int(p.of) == d+1 && int(p.group) == d+1 && (m.cgroup || p.marked)
		if p.due || started && (p.holder == 0 || int(p.holder) == d+1) {
			m.bad = badStopped
		}
	}
}
