package delivery

import "github.com/gozzard/gozzard"

// recentMost is how many verdicts are remembered. It is more than a server can record in the time within which an agent
// that got no acknowledgement repeats a verdict.
const recentMost = 1 << 16

// recent has the operations that got their verdict lately, with their agents. A verdict that an agent repeats is
// acknowledged from here, without the record. The oldest are forgotten first: then the record is asked, as for every
// operation that is not known here. The zero value is ready.
type recent struct {
	owners map[gozzard.OpID]gozzard.AgentID
	ring   []gozzard.OpID
	next   int // in ring, once it is full
}

// add remembers that the record has the verdict of an operation.
func (r *recent) add(op gozzard.OpID, agent gozzard.AgentID) {
	if _, known := r.owners[op]; known {
		return
	}
	if r.owners == nil {
		r.owners = map[gozzard.OpID]gozzard.AgentID{}
	}

	r.owners[op] = agent
	if len(r.ring) < recentMost {
		r.ring = append(r.ring, op)
		return
	}
	delete(r.owners, r.ring[r.next])
	r.ring[r.next] = op
	r.next = (r.next + 1) % recentMost
}

// owner is the agent of an operation whose verdict the record has.
func (r *recent) owner(op gozzard.OpID) (agent gozzard.AgentID, known bool) {
	agent, known = r.owners[op]
	return agent, known
}
