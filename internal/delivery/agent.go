package delivery

import (
	"cmp"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// Session is an agent's session as this server opened it.
type Session struct {
	ID    uint64
	Run   uint64 // number of the agent's run, chosen by the agent
	Cloud int

	// Behind says that the agent has operations on record that this server does not know. An operation that an earlier
	// run of the server left open may be among them.
	Behind bool

	Base uint64 // what is added to the numbers of tasks to make generations (gozzard.LiftBase)
}

// agent is an agent with a session or with open attempts.
type agent struct {
	id      gozzard.AgentID
	session Session // ID 0: none
	heard   time.Time
	online  bool // heard within the lease
	decided bool // what older sessions left open is decided
	settled bool // it is decided, and what waited was dispatched

	attempts []*Attempt // open ones, in no order
	waiting  int        // of them, in state Waiting
}

// ready reports whether operations may be dispatched as they are accepted. While others wait they wait too: one
// process sees its operations in the order of their tasks.
func (g *agent) ready() bool { return g.online && g.settled && g.waiting == 0 }

// end forgets the session.
func (g *agent) end() {
	g.session, g.online, g.decided, g.settled = Session{}, false, false, false
}

func (g *agent) add(a *Attempt) {
	a.agentIndex = len(g.attempts)
	g.attempts = append(g.attempts, a)
}

func (g *agent) remove(a *Attempt) {
	last := len(g.attempts) - 1
	moved := g.attempts[last]
	g.attempts[a.agentIndex], moved.agentIndex = moved, a.agentIndex
	g.attempts[last] = nil
	g.attempts = g.attempts[:last]
}

// waitingInOrder lists the attempts that wait, in the order of their tasks.
func (g *agent) waitingInOrder() []*Attempt {
	if g.waiting == 0 {
		return nil
	}

	list := make([]*Attempt, 0, g.waiting)
	for _, a := range g.attempts {
		if a.state == Waiting {
			list = append(list, a)
		}
	}

	slices.SortFunc(list, func(a, b *Attempt) int {
		return cmp.Or(cmp.Compare(a.ref.Task, b.ref.Task), cmp.Compare(a.ref.Index, b.ref.Index))
	})

	return list
}

// splitSuperseded separates waiting attempts that a newer one on the same process makes pointless
// (gozzard.Action.Supersedes). list is in the order of tasks.
func splitSuperseded(list []*Attempt) (current, superseded []*Attempt) {
	newest := make(map[gozzard.Key]*Attempt, len(list))
	for _, a := range list {
		newest[a.op.Key] = a
	}

	for _, a := range list {
		n := newest[a.op.Key]
		if n != a && n.op.Action.Supersedes(a.op.Action) {
			superseded = append(superseded, a)
		} else {
			current = append(current, a)
		}
	}

	return current, superseded
}
