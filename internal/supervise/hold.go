package supervise

import (
	"fmt"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
)

const (
	orphanGrace = 5 * time.Second // how long what a dead main process left behind may take to end by itself
	mainAfter   = time.Second     // what ran so long after its start command was the main process
	recheck     = 2 * time.Second // how often a supervised process is looked at that cannot be started yet
)

// claim puts a process on record for a definition. If another definition has it, claim returns that one.
func (s *Supervisor) claim(p Proc, key gozzard.Key) (other string) {
	s.holdMu.Lock()
	defer s.holdMu.Unlock()
	if k, ok := s.holders[p]; ok && k != key {
		return k.String()
	}
	s.holders[p] = key
	return ""
}

// release takes a process off the record of a definition.
func (s *Supervisor) release(p Proc, key gozzard.Key) {
	s.holdMu.Lock()
	defer s.holdMu.Unlock()
	if s.holders[p] == key {
		delete(s.holders, p)
	}
}

// takenBut returns a function that names the definition, other than the given one, that has a process on record or in
// its group.
func (s *Supervisor) takenBut(key gozzard.Key) func(Proc, func(gozzard.Key) bool) string {
	return func(p Proc, inGroup func(gozzard.Key) bool) string {
		s.holdMu.Lock()
		holder, taken := s.holders[p]
		s.holdMu.Unlock()
		switch {
		case taken && holder != key:
			return holder.String()
		case taken || inGroup == nil:
			return ""
		}

		for _, a := range s.all() {
			if a.key != key && inGroup(a.key) && a.snapshot().managed {
				return a.key.String()
			}
		}
		return ""
	}
}

// record puts the process that runs now on record.
func (a *actor) record(f Found) {
	if !a.held.IsZero() && a.held.Proc != f.Proc {
		a.s.release(a.held.Proc, a.key)
	}
	h := Held{Proc: f.Proc, Settled: !a.starting, How: f.How}
	if h.How == identity.HowRecord && a.held.Proc == f.Proc { // found again after a restart of the agent
		h.How = a.held.How
	}
	switch {
	case a.held.Proc == f.Proc:
		h.Unnamed = a.held.Unnamed
	case f.How == identity.HowStarted && !a.spec.NamesProgram():
		h.Unnamed = a.spec.Identity.ProcName
	}
	a.setHeld(h)
}

// settle records that the process that runs now is the main process.
func (a *actor) settle() {
	h := a.held
	h.Settled, h.Replaced = true, false
	a.setHeld(h)
}

func (a *actor) setHeld(h Held) {
	if h == a.held {
		return
	}
	a.held = h
	a.s.heldChanged(a.key, h)
}

// noteFinding updates what the status says about the identity of the process.
func (a *actor) noteFinding(f Found) {
	a.unclear = ""
	switch {
	case a.running():
		a.notes.identity = f.Misfit
	case f.Verdict == identity.Ambiguous:
		a.unclear, a.notes.identity = f.Reason, f.Reason
	default:
		a.notes.identity = f.Against
	}
	a.setOrphans(f.Orphans)
}

// setOrphans records what a main process that has ended left behind. If the process is supervised, its next start waits
// for it.
func (a *actor) setOrphans(orphans []Proc) {
	had := len(a.orphans) > 0
	a.orphans = slices.Clone(orphans)
	if len(orphans) == 0 {
		return
	}

	// Show them.
	text := fmt.Sprintf("its main process has ended, but other processes of it still run: %s", pidList(orphans))
	a.notes.identity = text
	if had || a.operating {
		return
	}

	// Give them time to end, and report it once.
	wanted, _ := a.pullUpWanted()
	switch {
	case !wanted:
	case a.spec.Policy.Orphans == gozzard.OrphansWait:
		text = fmt.Sprintf("its main process has ended, but other processes of it still run: %s; it is started again when they "+
			"have ended", pidList(orphans))
	default:
		text = fmt.Sprintf("its main process has ended, but other processes of it still run: %s; they are killed and it is "+
			"started again in %s", pidList(orphans), spell(orphanGrace))
	}
	if at := time.Now().Add(orphanGrace); wanted && a.pullAt.Before(at) {
		a.pullAt = at
	}
	a.announce(gozzard.Event{Kind: gozzard.EventOrphaned, Message: text})
}

// mustWait reports whether a pull-up that is due cannot begin yet: it is not clear which process is the one, or the
// definition wants to wait for what the main process left behind. It looks again after a while.
func (a *actor) mustWait() bool {
	if len(a.orphans) == 0 && a.unclear == "" {
		return false
	}

	a.lookAgain()
	wait := a.unclear != "" || len(a.orphans) > 0 && a.spec.Policy.Orphans == gozzard.OrphansWait
	switch {
	case a.running():
		a.pullAt = time.Time{}
	case wait:
		a.pullAt = time.Now().Add(recheck)
	}
	a.publish(false)
	return a.running() || wait
}
