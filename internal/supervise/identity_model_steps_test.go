package supervise

import (
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// The steps of start, stop, kill and restart in the model. The agent may die between any two of them.

// startSteps are the steps of a start, from the look at the process to the end of its check.
func (m *supervisionModel) startSteps(w *world, d int) {
	switch x := &w.defs[d]; x.at {
	case atLook:
		if x.action == gozzard.ActionStart {
			m.lookBeforeStart(w, d)
		}
	case atClear:
		m.act(w, d, true, "agent clears the group", func(a *actor, x *defined) {
			if m.intact(startClears) {
				_ = a.makeRoom(gozzard.ActionStart)
			}
			x.at = atRun
		})
	case atRun:
		m.act(w, d, true, "agent runs the start command", func(a *actor, x *defined) {
			n, name := uint8(d+1), nameOther
			if m.shells {
				name = x.name
			}
			p := m.begin(&m.w, live{is: aShell, of: n, group: n, name: name, marked: true, known: true, open: true,
				pid: m.w.freshPID()})
			if p == nil {
				m.w = *w // wait until there is room
				return
			}
			m.checkMayStart(x)
			if a.beginLaunch(); !m.intact(launchIsOnRecord) {
				a.held = x.held.real()
			}
			x.at, x.saw, x.file.fresh = atCommand, false, false
		})
	case atCommand:
		m.commandSteps(w, d)
	case atCheck:
		m.checkSteps(w, d)
	case atUp, atFailed:
		code := gozzard.CodeOK
		if x.at == atFailed {
			code = gozzard.CodeCommandFailed
		}
		m.act(w, d, true, "agent puts the start on record", func(a *actor, x *defined) { m.afterStart(a, x, code, false) })
	}
}

// checkMayStart reports a start of what was stopped.
func (m *supervisionModel) checkMayStart(x *defined) {
	if x.stopped {
		m.bad = badStopped
	}
}

func (m *supervisionModel) lookBeforeStart(w *world, d int) {
	look := func(lookedAt time.Time) func(a *actor, x *defined) {
		return func(a *actor, x *defined) {
			a.lookedAt = lookedAt
			if out, rejected := a.beforeStart(launch{action: gozzard.ActionStart, pullUp: x.pullUp}); rejected {
				x.verdict(out.Code)
				return
			}
			m.checkNoneByHand(d)
			x.at = atClear
		}
	}
	m.act(w, d, true, "agent looks before the start", look(time.Time{}))
	if w.defs[d].pullUp && !w.justByHand(d) { // nothing can have been started by hand in so short a time
		m.act(w, d, true, "agent has just looked before the start", look(time.Now()))
	}
}

// checkNoneByHand reports a start although a person has started the process, with a pid file that proves it.
func (m *supervisionModel) checkNoneByHand(d int) {
	x := &m.w.defs[d]
	for i := range m.w.live {
		p := &m.w.live[i]
		if p.is == byHand && int(p.of) == d+1 && p.holder == 0 && x.file.pid == p.pid && p.name == x.name &&
			p.start > x.held.start {
			m.bad = badBeside
		}
	}
}

func (w *world) justByHand(d int) bool {
	return slices.ContainsFunc(w.live[:], func(p live) bool { return p.is == byHand && int(p.of) == d+1 && p.holder == 0 })
}

// commandSteps are the steps while the start command runs.
func (m *supervisionModel) commandSteps(w *world, d int) {
	x := &w.defs[d]
	if !x.running {
		m.act(w, d, true, "agent looks while the command runs", func(a *actor, x *defined) {
			run := a.run
			a.lookAgain()
			x.saw = x.saw || a.run != run
		})
	}

	// Find out whether it runs, and whether it is the process itself.
	ended, front := true, false
	for i := range w.live {
		p := &w.live[i]
		if int(p.of) == d+1 && p.known {
			ended = p.is == aMain
			front = p.is == aMain
		}
	}
	if ended {
		m.act(w, d, true, "the start command ends, or stays in the foreground", func(a *actor, x *defined) {
			m.commandEnds(a, x, d, front)
		})
	}
	if !ended || front {
		m.act(w, d, true, "the start command exceeds its time and is killed", func(a *actor, x *defined) {
			x.at = atFailed
			for i := range m.w.live {
				p := &m.w.live[i]
				if int(p.group) == d+1 && int(p.of) == d+1 && (m.cgroup || p.marked || p.seen || p.known) {
					m.w.end(p)
				}
			}
			a.lookAgain()
		})
	}
}

func (m *supervisionModel) commandEnds(a *actor, x *defined, d int, front bool) {
	t := launched{launch: launch{action: gozzard.ActionStart, pullUp: x.pullUp}, run: a.run}
	if x.saw {
		t.run--
	}
	if front { // the command is the process only if it is found
		f, _ := a.s.host.Find(a.query())
		p := m.w.byPID(uint8(f.Proc.PID))
		if p == nil || !p.known {
			m.w = world{} // not yet
			return
		}
		t.res.Front = true
		p.known, p.open = false, false
	}
	a.goneWithCommand(t)
	x.at = atCheck
}

// checkSteps are the steps while a start is checked.
func (m *supervisionModel) checkSteps(w *world, d int) {
	x := &w.defs[d]
	if !x.running {
		m.act(w, d, true, "agent looks during the check", func(a *actor, x *defined) { a.lookAgain() })
	}
	m.act(w, d, true, "the check is over", func(a *actor, x *defined) {
		a.lookAgain()
		if x.at = atFailed; a.running() {
			x.at = atUp
		}
	})
	if x.pullUp {
		for _, action := range []gozzard.Action{gozzard.ActionStart, gozzard.ActionStop} {
			if w.left.ops == 0 {
				break
			}
			m.act(w, d, false, "the pull-up gives way to "+action.String(), func(a *actor, x *defined) {
				a.lookAgain()
				code := gozzard.CodeCommandFailed
				if a.running() {
					code = gozzard.CodeOK
				}
				m.afterStart(a, x, code, true)
				a.finishRestart(gozzard.Outcome{Code: code, Message: someText}, "")
				x.idle()
				m.w.left.ops--
				m.arrive(&m.w, d, action)
			})
		}
	}
}

// afterStart draws the conclusion from a start.
func (m *supervisionModel) afterStart(a *actor, x *defined, code gozzard.Code, opWaits bool) {
	if opWaits {
		a.ops = []Op{{}}
	}
	a.starting = false
	m.spareAll = !m.intact(failedStartClears)
	if held := a.held; true {
		a.afterLaunch(launch{action: gozzard.ActionStart, pullUp: x.pullUp}, code)
		if !m.intact(settleAfterCheck) && a.held.Proc == held.Proc {
			a.held = held
		}
	}
	a.ops = nil
	x.verdict(code)
}

// stopSteps are the steps of stop, kill and the first half of restart.
func (m *supervisionModel) stopSteps(w *world, d int) {
	switch x := &w.defs[d]; x.at {
	case atLook:
		m.lookBeforeStop(w, d)
	case atMembers:
		m.act(w, d, true, "agent lists what belongs to the process", func(a *actor, x *defined) {
			for i := range m.w.live {
				p := &m.w.live[i]
				p.due = p.due || p.parent != 0 && p.parent == x.held.start
			}
			members, _ := a.s.host.Members(a.query())
			for _, p := range members {
				if m.intact(stopTakesMembers) {
					m.w.byPID(uint8(p.PID)).listed = true
				}
			}
			x.at = atSignal
		})
	case atSignal:
		m.act(w, d, true, "agent ends the process", func(a *actor, x *defined) {
			x.at = atWait
			if x.action != gozzard.ActionKill {
				_ = a.signal(SignalTerm)
				return
			}
			_ = a.force(m.listed(d))
		})
	case atWait:
		m.waitSteps(w, d)
	case atLeftovers:
		m.act(w, d, true, "agent clears what is left", func(a *actor, x *defined) {
			m.spareAll = !m.intact(stopClears)
			a.clearLeftovers(m.listed(d))
			if x.at = atClear; x.action != gozzard.ActionRestart {
				x.verdict(gozzard.CodeOK)
				return
			}
			x.action = gozzard.ActionStart // the second half
			m.forgetLists(d)
		})
	}
}

func (m *supervisionModel) lookBeforeStop(w *world, d int) {
	switch w.defs[d].action {
	case gozzard.ActionStop, gozzard.ActionKill:
		m.act(w, d, true, "agent looks before the "+w.defs[d].action.String(), func(a *actor, x *defined) {
			m.spareAll = !m.intact(emptyStopClears)
			out, ended := a.beforeStop(x.action)
			if x.at = atMembers; ended {
				x.verdict(out.Code)
			}
		})
	case gozzard.ActionRestart:
		m.act(w, d, true, "agent looks before the restart", func(a *actor, x *defined) {
			a.lookAgain()
			switch {
			case a.unclear != "":
				x.verdict(gozzard.CodeCommandFailed)
			case a.running():
				x.at = atMembers
			default:
				x.action, x.at = gozzard.ActionStart, atClear
			}
		})
	}
}

func (m *supervisionModel) waitSteps(w *world, d int) {
	x := &w.defs[d]
	if !x.running {
		m.act(w, d, true, "the process is gone", func(a *actor, x *defined) { x.at = atLeftovers })
	} else if !x.forced {
		m.act(w, d, true, "the process takes too long to end and is killed", func(a *actor, x *defined) {
			x.forced = true
			_ = a.force(m.listed(d))
		})
	}
}

// listed returns what belonged to the process when its stop began.
func (m *supervisionModel) listed(d int) (procs []Proc) {
	for i := range m.w.live {
		if p := &m.w.live[i]; p.listed && int(p.of) == d+1 {
			procs = append(procs, p.identity())
		}
	}
	return procs
}
