package control

import (
	"runtime"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	// joiningPerCPU is how many agents may be joining for each processor. Each needs some milliseconds of it, as much as
	// a hundred heartbeats or more. If more could join than there is time for, answers to heartbeats would wait behind
	// that work for longer than a session lives: sessions would end, new ones would be opened, and this would go on
	// without end.
	joiningPerCPU = 256

	// joinPatience is how long an agent counts, so that one which never reports keeps nobody out. It does not count again
	// for joinForgiven, however often it says HELLO.
	joinPatience = 5 * time.Second
	joinForgiven = time.Minute

	joinLook = 100 * time.Millisecond // between two looks for agents that count no more
)

// Joining knows the agents that are joining: they said HELLO, and their first full report was not yet acknowledged.
type Joining struct {
	most int
	now  func() time.Time

	mu      sync.Mutex
	agents  map[gozzard.AgentID]*joiner
	overdue map[gozzard.AgentID]time.Time // when they stopped to count, without having joined
	looked  time.Time
}

// joiner is an agent that is joining.
type joiner struct {
	since   time.Time
	session uint64
	waits   bool // for its Welcome
}

// NewJoining makes one for this machine. If now is nil, it has the clock of the machine.
func NewJoining(now func() time.Time) *Joining {
	return newJoining(joiningPerCPU*runtime.GOMAXPROCS(0), now)
}

func newJoining(most int, now func() time.Time) *Joining {
	if now == nil {
		now = time.Now
	}
	return &Joining{most: most, now: now, agents: map[gozzard.AgentID]*joiner{}, overdue: map[gozzard.AgentID]time.Time{}}
}

// Full reports whether further agents have to wait.
func (j *Joining) Full() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.look(j.now())
	return len(j.agents) >= j.most
}

// begin counts an agent that said HELLO. It names the rule by which the HELLO is dropped, "" for none; the agent says it
// again.
func (j *Joining) begin(agent gozzard.AgentID, session uint64) (rule string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	j.look(now)

	known := j.agents[agent]
	_, forgiven := j.overdue[agent]
	switch {
	case known != nil && known.waits && known.session == session:
		return "hello_repeated" // the first one is not answered yet
	case known != nil:
		known.session, known.waits = session, true
	case forgiven:
	case len(j.agents) >= j.most:
		return "hello_joining"
	default:
		j.agents[agent] = &joiner{since: now, session: session, waits: true}
	}
	return ""
}

// answered notes that the HELLO of an agent was answered, or never will be: the next one counts.
func (j *Joining) answered(agent gozzard.AgentID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.agents[agent]; known != nil {
		known.waits = false
	}
}

// end counts an agent no more: it has joined, or its HELLO was rejected.
func (j *Joining) end(agent gozzard.AgentID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.agents, agent)
	delete(j.overdue, agent)
}

// look finds agents that do not count any more. mu is held.
func (j *Joining) look(now time.Time) {
	if now.Sub(j.looked) < joinLook {
		return
	}
	j.looked = now
	for agent, known := range j.agents {
		if now.Sub(known.since) >= joinPatience {
			delete(j.agents, agent)
			j.overdue[agent] = now
		}
	}
	for agent, at := range j.overdue {
		if now.Sub(at) >= joinForgiven {
			delete(j.overdue, agent)
		}
	}
}
