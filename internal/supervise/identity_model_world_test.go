package supervise

import (
	"maps"
	"slices"

	"github.com/gozzard/gozzard"
)

// What callers, people, daemons and the machine do in the model.

// callerSteps are operations that arrive.
func (m *supervisionModel) callerSteps(w *world, d int) {
	x := &w.defs[d]
	if !w.up || x.at != atIdle {
		return
	}

	if w.left.ops > 0 && (d == 0 || m.both) {
		for _, action := range []gozzard.Action{gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionKill,
			gozzard.ActionRestart} {
			m.try(w, d, false, action.String()+" arrives", func(w *world) {
				w.left.ops--
				m.arrive(w, d, action)
			})
		}
	}

	if w.left.defines > 0 {
		m.try(w, d, false, "a definition with another name arrives", func(w *world) {
			w.left.defines--
			m.arrive(w, d, gozzard.ActionUpdate)
			w.defs[d].name = nameChanged - w.defs[d].name
		})
		if x.managed {
			m.act(w, d, false, "unregister", func(a *actor, x *defined) {
				m.w.left.defines--
				a.unregister(Op{Action: gozzard.ActionUnregister, Done: func(gozzard.Outcome, *Record, bool) {}})
				x.stopped = false
			})
		}
	}
}

// arrive begins an operation.
func (m *supervisionModel) arrive(w *world, d int, action gozzard.Action) {
	x := &w.defs[d]
	x.action, x.at = action, atLook
	switch action {
	case gozzard.ActionStart, gozzard.ActionRestart:
		x.stopped = false
	case gozzard.ActionUpdate:
		x.at = atUpdate
	}
}

// worldSteps are what daemons and people do.
func (m *supervisionModel) worldSteps(w *world, d int) {
	for i := range w.live {
		if p := &w.live[i]; p.is != noProcess && (int(p.of) == d+1 || d == 0 && p.of == 0) {
			m.processSteps(w, d, i)
		}
	}
	m.fileSteps(w, d)
	m.peopleSteps(w, d)
}

// processSteps are what one process does.
func (m *supervisionModel) processSteps(w *world, d, i int) {
	p := &w.live[i]
	ends := p.is == aShell || p.is == stranger || p.is == aWorker // without a fault
	m.try(w, d, ends, p.is.String()+" ends", func(w *world) { w.end(&w.live[i]) })

	switch {
	case p.is == aShell && !p.forked:
		m.shellSteps(w, d, i)
	case p.of != 0 && (p.is == aMain || p.is == byHand):
		m.mainSteps(w, d, i)
	}
}

// shellSteps are what a start command does: it starts the main process, or becomes it.
func (m *supervisionModel) shellSteps(w *world, d, i int) {
	launchAs := func(verb string, helpful bool, wrong bool, exec bool) {
		m.try(w, d, helpful, verb, func(w *world) {
			x, shell := &w.defs[d], &w.live[i]
			name := x.name
			if wrong {
				name = nameOther
			}
			if wrong && !m.silent {
				w.left.renames--
			}
			m.checkMayStart(x)
			if exec {
				shell.is, shell.name, shell.heir = aMain, name, w.hasOther(d)
				return
			}
			shell.forked = true
			p := live{is: aMain, of: shell.of, group: shell.group, name: name, parent: shell.start, marked: true,
				heir: w.hasOther(d), pid: w.freshPID()}
			if m.begin(w, p) == nil {
				shell.forked = false
			}
		})
	}
	if m.silent {
		launchAs("the start command starts a program of another name", true, true, false)
		launchAs("the start command becomes a program of another name", true, true, true)
	} else {
		launchAs("the start command starts the main process", true, false, false)
		launchAs("the start command becomes the main process", true, false, true)
	}
	if pid := w.live[i].pid; w.left.mischief > 0 {
		m.try(w, d, false, "the start command writes its own pid into the pid file", func(w *world) {
			w.left.mischief--
			w.write(d, pid)
		})
	}
	if w.left.renames > 0 && !m.silent {
		launchAs("the start command starts a program of another name", false, true, false)
	}
}

// mainSteps are what a main process does.
func (m *supervisionModel) mainSteps(w *world, d, i int) {
	p := &w.live[i]
	pid := p.pid
	if (p.is == aMain && !p.heir || w.defs[d].at == atIdle) && w.sibling(*p) == nil {
		m.try(w, d, false, p.is.String()+" writes the pid file", func(w *world) { w.write(d, pid) })
	}

	if w.left.workers > 0 {
		m.try(w, d, false, p.is.String()+" starts a worker", func(w *world) {
			w.left.workers--
			q := w.live[i]
			m.begin(w, live{is: aWorker, of: q.of, group: q.group, name: q.name, parent: q.start, marked: q.marked,
				pid: w.freshPID()})
		})
	}
	if w.left.renames > 0 {
		if p.proven || !w.hasWorker(p) { // until then the name decides, and a worker has the name that it had before
			m.try(w, d, false, p.is.String()+" executes another program", func(w *world) {
				w.left.renames--
				w.live[i].name = nameOther
			})
		}
		if !m.cgroup && p.proven && w.sibling(*p) == nil {
			m.try(w, d, false, p.is.String()+" clears its environment", func(w *world) {
				w.left.renames--
				w.live[i].marked, w.live[i].parent = false, 0
			})
		}
	}

	if p.is == aMain && !p.proven && !p.known && !p.heir && !p.next && w.left.forks > 0 && w.defs[d].at < atFailed &&
		!w.hasWorker(p) && w.defs[d].file.pid != p.pid { // its child writes the pid file
		m.try(w, d, false, "main forks and ends, its child goes on", func(w *world) {
			w.left.forks--
			q := w.live[i]
			w.defs[d].early = true
			q.parent, q.pid, q.seen, q.holder, q.listed = 0, w.freshPID(), false, 0, false
			w.end(&w.live[i])
			m.begin(w, q)
		})
	}
	if p.is == aMain && p.proven && !p.next && w.left.handovers > 0 && p.name == w.defs[d].name &&
		p.marked { // without cgroups, what a hidden process starts in this moment cannot be found
		m.try(w, d, false, "main starts its successor, which writes the pid file", func(w *world) {
			q := w.live[i]
			n := live{is: aMain, of: q.of, group: q.group, name: q.name, parent: q.start, marked: q.marked, next: true,
				pid: w.freshPID()}
			if m.begin(w, n) != nil {
				w.left.handovers--
				w.write(d, n.pid)
			}
		})
	}
}

func (w *world) hasOther(d int) bool {
	x := &w.defs[d]
	return x.running && w.byRecord(x.held) != nil ||
		slices.ContainsFunc(w.live[:], func(p live) bool { return p.is == byHand && int(p.of) == d+1 })
}

func (w *world) hasWorker(p *live) bool {
	return slices.ContainsFunc(w.live[:], func(q live) bool { return q.is == aWorker && q.parent == p.start })
}

func (w *world) write(d int, pid uint8) {
	w.defs[d].file = pidFile{pid: pid, at: w.now() + 1, fresh: true}
}

// fileSteps are what happens to the pid file of a definition without its daemon.
func (m *supervisionModel) fileSteps(w *world, d int) {
	x := &w.defs[d]
	if w.left.mischief == 0 {
		return
	}
	if x.file.pid != 0 {
		m.try(w, d, false, "the pid file is removed", func(w *world) {
			w.left.mischief--
			w.defs[d].file = pidFile{}
		})
	}
	for i := range w.live {
		p := &w.live[i]
		if p.is == noProcess || !m.refutable(w, d, p) {
			continue
		}
		pid := p.pid
		m.try(w, d, false, "the pid file is written with the pid of "+p.is.String()+" of another", func(w *world) {
			w.left.mischief--
			w.write(d, pid)
			if q := &w.live[i]; q.of != 0 && !w.defs[q.of-1].managed { // it is free, and goes to the first one that finds it
				q.is, q.of, q.open = byHand, 0, false
			}
		})
	}
}

// refutable reports whether a pid file that names a process can be recognised as wrong. If its name fits, no other
// definition has it and it is younger than what is on record, then a person may as well have started it for the
// definition, and no evidence says otherwise.
func (m *supervisionModel) refutable(w *world, d int, p *live) bool {
	x := &w.defs[d]
	switch {
	case int(p.of) == d+1:
		return false
	case p.of != 0:
		y := &w.defs[p.of-1]
		if !y.managed { // what is not managed is free
			return y.at == atIdle && x.at == atIdle && (p.is == aMain || p.is == byHand)
		}
		return m.cgroup && p.group == p.of || p.holder == p.of
	}
	return p.name != x.name && p.name != nameChanged-x.name || x.held.start > p.start
}

// peopleSteps are processes that are started without the agent.
func (m *supervisionModel) peopleSteps(w *world, d int) {
	pids := []uint8{w.freshPID()}
	for e := range m.defs {
		for _, pid := range []uint8{w.defs[e].file.pid, w.defs[e].held.pid} {
			if pid != 0 && w.byPID(pid) == nil {
				pids = append(pids, pid) // the pid is used again
			}
		}
	}

	if d == 0 && w.left.strangers > 0 {
		for _, pid := range pids {
			for _, name := range []uint8{nameFirst, nameOther} {
				verb := "a stranger starts as " + programNames[name]
				if pid != pids[0] {
					verb += " with a pid that was used before"
				}
				m.try(w, d, false, verb, func(w *world) {
					w.left.strangers--
					m.begin(w, live{is: stranger, name: name, pid: pid})
				})
			}
		}
	}

	// A person looks before starting by hand: nothing of it that is known runs, and no operation is in progress.
	x := &w.defs[d]
	if w.left.hands == 0 || x.at != atIdle || w.copies(d) {
		return
	}
	m.try(w, d, false, "a person starts the process with its pid file", func(w *world) {
		w.left.hands--
		p := live{is: byHand, of: uint8(d + 1), name: w.defs[d].name, pid: pids[0]}
		if m.begin(w, p) != nil {
			w.write(d, p.pid)
		}
		for i := range w.live {
			if q := &w.live[i]; q.is == aMain && int(q.of) == d+1 {
				q.heir = true
			}
		}
	})
}

// copies reports whether a process runs that a person takes for the service.
func (w *world) copies(d int) bool {
	for i := range w.live {
		if p := &w.live[i]; int(p.of) == d+1 && (p.proven || p.is == byHand || p.next) && p.is != aWorker {
			return true
		}
	}
	return false
}

// freshPID is a pid that nothing uses or names.
func (w *world) freshPID() uint8 {
	pid := uint8(1)
	for used := true; used; {
		used = w.byPID(pid) != nil
		for d := range w.defs {
			used = used || w.defs[d].file.pid == pid || w.defs[d].held.pid == pid
		}
		if used {
			pid++
		}
	}
	return pid
}

// faultSteps are what happens to the agent and to the machine.
func (m *supervisionModel) faultSteps(w *world) {
	if !w.up {
		m.try(w, 0, true, "the agent starts", m.startAgent)
	} else if w.left.crashes > 0 {
		m.try(w, 0, false, "the agent is killed", func(w *world) {
			w.left.crashes--
			m.killAgent(w)
		})
	}
	if w.left.reboots > 0 {
		m.try(w, 0, false, "the machine is rebooted", func(w *world) {
			w.left.reboots--
			m.killAgent(w)
			w.live = [maxLive]live{}
			for d := range w.defs {
				w.defs[d].held.start = 0
				w.defs[d].file.at = 1
			}
		})
	}
}

// killAgent removes what is in memory only.
func (m *supervisionModel) killAgent(w *world) {
	w.up = false
	for d := range w.defs {
		x := &w.defs[d]
		x.idle()
		x.name = x.stored
		x.running, x.unclear, x.orphans, x.planned, x.message, x.note = false, false, false, false, false, false
		if !m.intact(heldIsDurable) {
			x.held = onRecord{}
		}
	}
	for i := range w.live {
		p := &w.live[i]
		p.holder, p.known, p.seen, p.listed, p.due, p.orphan = 0, false, false, false, false, false
	}
}

// startAgent begins with what is in the journal. Commands of the agent before are ended first.
func (m *supervisionModel) startAgent(w *world) {
	for i := range w.live {
		if p := &w.live[i]; p.open && m.intact(recoveryEndsCommands) {
			m.endCommand(w, *p)
		}
	}

	var recs []Record
	held := map[gozzard.Key]Held{}
	for d := range m.defs {
		x := &w.defs[d]
		if x.managed {
			recs = append(recs, x.record(d, x.stored))
		}
		if h := x.held.real(); !h.IsZero() && (x.managed || w.byRecord(x.held) != nil) {
			held[modelKeys[d]] = h
		}
	}
	m.load()
	clear(m.s.actors)
	if !m.intact(restoreClaims) {
		held = map[gozzard.Key]Held{}
	}
	m.s.Restore(recs, held)
	m.s.ready = nil
	holders := maps.Clone(m.s.holders)
	clear(m.s.known)
	for p, key := range holders {
		if x := w.byPID(uint8(p.PID)); x != nil {
			x.holder = uint8(number(key))
		}
	}
	for d := range m.defs {
		if w.defs[d].managed {
			w.defs[d].at = atRestore
		} else if _, kept := held[modelKeys[d]]; !kept {
			w.forget(d)
		}
	}
	w.up = true
}

// forget removes what is on record about a definition that is not managed and does not run. Then nothing says any more
// that the workers which it left behind are not the process.
func (w *world) forget(d int) {
	w.defs[d].held = onRecord{}
	for i := range w.live {
		if p := &w.live[i]; int(p.of) == d+1 && p.is == aWorker {
			p.heir, p.left = false, false
		}
	}
}

// endCommand ends a command of an earlier run of the agent, with what it has started. It spares the process on record,
// what looks like the process of the definition, and what these have started.
func (m *supervisionModel) endCommand(w *world, leader live) {
	x := &w.defs[leader.of-1]
	spared := map[uint8]bool{} // by start
	for range maxLive {
		for i := range w.live {
			p := &w.live[i]
			if p.is != noProcess && (p.start == x.held.start || spared[p.parent] || p.is != aShell && p.name == x.stored) {
				spared[p.start] = true
			}
		}
	}
	for i := range w.live {
		p := &w.live[i]
		switch {
		case p.is == noProcess || p.group != leader.group || !m.cgroup && p.start != leader.start && p.parent != leader.start:
		case spared[p.start]:
			p.open = false
		default:
			m.acting = int(leader.of) - 1
			x.at = atCommand // what a command has started may be ended
			m.check(p)
			x.at = atIdle
			w.end(p)
		}
	}
}

func (n nature) String() string {
	return [...]string{"", "the command", "main", "a worker", "the one by hand", "a stranger"}[n]
}
