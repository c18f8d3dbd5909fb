package supervise

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
)

// modelHost is the machine of the model as the supervisor sees it. It collects evidence in the way of package host.
type modelHost struct {
	Host // what the model does not need
	m    *supervisionModel
}

const (
	bootNow    = "now"
	bootBefore = "before"
)

var bootedAt = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func clockAt(t uint8) time.Time { return bootedAt.Add(time.Duration(t) * time.Hour) }

func (p *live) identity() Proc { return Proc{BootID: bootNow, PID: int(p.pid), Start: uint64(p.start)} }

func (h onRecord) real() Held {
	r := Held{Proc: Proc{BootID: bootNow, PID: int(h.pid), Start: uint64(h.start)}, Settled: h.settled,
		Replaced: h.replaced, How: identity.HowStarted}
	switch {
	case h.pid == 0:
		return Held{}
	case h.start == 0:
		r.BootID, r.Start = bootBefore, 1<<20
	}
	if h.pidFile {
		r.How = identity.HowPIDFile
	}
	if h.unnamed {
		r.Unnamed = programNames[nameFirst]
	}
	return r
}

func recordOf(h Held) onRecord {
	r := onRecord{pid: uint8(h.PID), start: uint8(h.Start), settled: h.Settled, replaced: h.Replaced,
		pidFile: h.How == identity.HowPIDFile, unnamed: h.Unnamed != ""}
	if h.BootID == bootBefore {
		r.start = 0
	}
	return r
}

// number is the number of a definition, from 1.
func number(key gozzard.Key) int {
	if key == modelKeys[0] {
		return 1
	}
	return 2
}

// find returns a live process by its identity.
func (h *modelHost) find(p Proc) *live {
	x := h.m.w.byPID(uint8(p.PID))
	switch {
	case x == nil:
		return nil
	case p.BootID != bootNow: // the start times of two boots may be the same
		if h.m.intact(bootIsCompared) {
			return nil
		}
	case uint64(x.start) != p.Start && h.m.intact(startIsCompared):
		return nil
	}
	return x
}

func (h *modelHost) Alive(p Proc) bool { return h.find(p) != nil }

func (h *modelHost) Watch(Proc, func(Exit)) (func(), error) { return func() {}, nil }

func (h *modelHost) OOMKills(gozzard.Key) int { return 0 }

func (h *modelHost) Managed(gozzard.Key, bool) {}

func (h *modelHost) Collect(context.Context, Proc) {}

// members lists the live processes of a group. Without cgroups it remembers them, if it is asked to.
func (h *modelHost) members(q Query, remember bool) (found []*live) {
	n := uint8(number(q.Key))
	for i := range h.m.w.live {
		p := &h.m.w.live[i]
		switch {
		case p.is == noProcess:
		case h.m.cgroup && p.group == n,
			!h.m.cgroup && (p.group == n && (p.marked || p.seen) || h.belongs(p, q, n)):
			found = append(found, p)
			if remember && !h.m.cgroup && !p.known {
				p.seen = p.group == n
			}
		}
	}
	return found
}

// belongs reports whether a process is the one on record or a shell of a running command, or descends from one of them.
func (h *modelHost) belongs(p *live, q Query, n uint8) bool {
	for range maxLive {
		if p.known && p.of == n || p.identity() == q.Held.Proc {
			return true
		}
		var parent *live
		for i := range h.m.w.live {
			if x := &h.m.w.live[i]; x.is != noProcess && p.parent != 0 && x.start == p.parent {
				parent = x
			}
		}
		if parent == nil {
			return false
		}
		p = parent
	}
	return false
}

func (h *modelHost) taken(q Query, p *live) bool { return q.Taken(p.identity(), nil) != "" }

// describe describes a live process.
func (h *modelHost) describe(p *live, q Query) identity.Candidate {
	c := identity.Candidate{Proc: p.identity(), StartedAt: clockAt(p.start)}
	if p.is == aShell && p.known {
		c.Barred = "which is the shell of a running command"
	}
	if programNames[p.name] != q.Spec.Identity.ProcName {
		c.Misfit = fmt.Sprintf("runs as %s, definition says %s", programNames[p.name], q.Spec.Identity.ProcName)
	}
	return c
}

// isBegin reports whether a process is what a start command became, or a child of its shell.
func (h *modelHost) isBegin(p *live) bool {
	for i := range h.m.w.live {
		x := &h.m.w.live[i]
		if x.is != noProcess && x.known && (x == p && p.is != aShell || x.is == aShell && p.parent == x.start) {
			return true
		}
	}
	return false
}

// Find collects the evidence and decides.
func (h *modelHost) Find(q Query) (Found, error) {
	// Collect the evidence.
	e := identity.Evidence{Starting: q.Starting, Held: q.Held, NoName: "no process is named"}
	file := h.m.w.defs[number(q.Key)-1].file
	e.PIDFileAt = clockAt(file.at)
	if p := h.find(q.Held.Proc); p != nil {
		c := h.describe(p, q)
		e.Alive = &c
	}
	if q.Held.BootID == bootNow && file.pid != 0 && int(file.pid) == q.Held.PID && e.Alive == nil &&
		h.m.intact(fileNamesEnded) {
		e.MainEnded = q.Starting && file.fresh || !q.Starting && uint64(file.at) > q.Held.Start
	}
	members := h.members(q, true)
	for _, p := range members {
		if e.Alive != nil && p.pid != file.pid {
			continue
		}
		if c := h.describe(p, q); c.Barred == "" && !h.taken(q, p) {
			c.Misnamed = q.Starting && c.Misfit != "" && !q.Spec.NamesProgram() && h.isBegin(p)
			e.Members = append(e.Members, c)
		}
	}
	if p := h.m.w.byPID(file.pid); p != nil && file.pid != 0 {
		c := h.describe(p, q)
		c.Other = h.owner(p, q)
		e.Named = &c
	}

	// Decide.
	d := h.m.decide(e)
	h.m.rules[d.Rule]++
	f := Found{Verdict: d.Verdict, Orphans: d.Orphans, Reason: d.Reason, Empty: len(members) == 0}
	if d.Verdict == identity.Ours || d.Verdict == identity.Adopted {
		f.Proc, f.StartedAt, f.How, f.Misfit = d.Main.Proc, d.Main.StartedAt, d.How, d.Main.Misfit
	}
	if e.Named != nil && d.Rule != orphanRule && f.Proc.IsZero() &&
		!strings.Contains(d.Reason, fmt.Sprint("pid ", file.pid)) {
		h.m.bad = badSilent
	}
	return f, nil
}

// owner names the other definition that has a process.
func (h *modelHost) owner(p *live, q Query) string {
	var inGroup func(gozzard.Key) bool
	if p.group != 0 && int(p.group) != number(q.Key) && (h.m.cgroup || p.marked) && h.m.intact(groupOfOther) {
		inGroup = func(k gozzard.Key) bool { return number(k) == int(p.group) }
	}
	other := q.Taken(p.identity(), inGroup)
	for d := range h.m.defs {
		if x := &h.m.w.defs[d]; other == modelKeys[d].String() && !x.managed && x.at == atIdle {
			h.m.bad = badRefused
		}
	}
	return other
}

// Members lists what belongs to the process of a definition.
func (h *modelHost) Members(q Query) (procs []Proc, err error) {
	for i := range h.m.w.live {
		p := &h.m.w.live[i]
		in := false
		for _, x := range h.members(q, true) {
			in = in || x == p
		}
		if p.is == noProcess || !in && !h.descends(p, q.Held) || h.taken(q, p) {
			continue
		}
		procs = append(procs, p.identity())
	}
	return procs, nil
}

// descends reports whether a process is the one on record or descends from it.
func (h *modelHost) descends(p *live, held Held) bool {
	for range maxLive {
		if p.is != noProcess && p.identity() == held.Proc {
			return true
		}
		if p.parent == 0 {
			return false
		}
		for i := range h.m.w.live {
			if h.m.w.live[i].start == p.parent {
				p = &h.m.w.live[i]
				break
			}
		}
	}
	return false
}

func (h *modelHost) Probe(context.Context, *gozzard.Control) error { return nil }

func (h *modelHost) Signal(p Proc, sig Signal) error {
	x := h.find(p)
	if x == nil {
		return fmt.Errorf("no such process")
	}
	if h.m.check(x); sig == SignalKill { // after any other signal it may end, as at any time
		h.m.w.end(x)
	}
	return nil
}

// Clear kills the group and the given processes. It spares what another definition has on record.
func (h *modelHost) Clear(q Query, also []Proc) error {
	if h.m.spareAll {
		return nil
	}
	victims := map[Proc]bool{}
	for _, p := range h.members(q, false) {
		if !h.taken(q, p) || !h.m.intact(clearSpares) {
			victims[p.identity()] = true
		}
	}
	for _, p := range also {
		if q.Taken(p, nil) == "" {
			victims[p] = true
		}
	}
	for p := range victims {
		if x := h.find(p); x != nil {
			h.m.check(x)
			h.m.w.end(x)
		}
	}
	return nil
}

// check reports a signal that must not be sent.
func (m *supervisionModel) check(p *live) {
	d := m.acting
	x := &m.w.defs[d]
	ends := x.action == gozzard.ActionStop || x.action == gozzard.ActionKill || x.action == gozzard.ActionRestart
	starts := x.at == atFailed || x.at == atCommand
	switch {
	case int(p.of) != d+1:
		m.bad = badForeign
	case p.is == byHand && !p.proven:
		m.bad = badForeign
	case ends:
	case x.at == atUpdate || x.at == atRestore || x.at == atIdle:
		m.bad = badEnded
	case p.proven && p.is != aWorker:
		m.bad = badEnded
	case p.is == aWorker && x.pullUp && m.orphan == gozzard.OrphansWait && !starts:
		m.bad = badEnded
	case p.is == aMain && !starts && (!p.next && !p.heir || x.file.pid == p.pid && p.name == x.name):
		m.bad = badEnded
	}
}
