package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

const (
	maxAsked = 1024            // questions that wait for their answers
	askAgain = 2 * time.Second // a question may be lost on the way
)

// questions are the questions that agents have not answered yet.
type questions struct {
	mu   sync.Mutex
	open map[gozzard.OpID]*question
}

type question struct {
	agent  gozzard.AgentID
	kind   gozzard.CommandKind
	answer chan *gozzard.Report // capacity 1
}

func (q *questions) add(id gozzard.OpID, agent gozzard.AgentID, kind gozzard.CommandKind) (*question, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.open) >= maxAsked {
		return nil, false
	}
	asked := &question{agent: agent, kind: kind, answer: make(chan *gozzard.Report, 1)}
	q.open[id] = asked
	return asked, true
}

// remove removes a question of an agent and returns it; nil when that agent was not asked for this.
func (q *questions) remove(id gozzard.OpID, agent gozzard.AgentID, kind gozzard.CommandKind) *question {
	q.mu.Lock()
	defer q.mu.Unlock()
	asked := q.open[id]
	if asked == nil || asked.agent != agent || asked.kind != kind {
		return nil
	}
	delete(q.open, id)
	return asked
}

// hostToAsk finds the host that a caller wants to read from. It must be online.
func (p *Plane) hostToAsk(caller gozzard.Caller, t gozzard.Target) (fleet.Host, error) {
	host, known := p.Resolve(caller, t)
	if !known {
		return host, gozzard.Errorf(gozzard.ErrNotFound, "%s is not in the fleet: it never joined, or it has left", targetName(t))
	}
	if p.reach(host.Info.Agent).ID == 0 {
		return host, gozzard.Errorf(gozzard.ErrUnavailable,
			"host %s is offline, and its logs, histories and files are there: its agent was last heard at %s. Start the agent, or "+
				"ask again when the host is back", offlineName(t, host), lastHeard(host))
	}
	return host, nil
}

// ask sends a question to an agent, again and again because it may be lost, until the answer comes or the time is over.
func (p *Plane) ask(ctx context.Context, t gozzard.Target, agent gozzard.AgentID, id gozzard.OpID,
	cmd *gozzard.Command) (*gozzard.Report, error) {
	asked, ok := p.questions.add(id, agent, cmd.Kind)
	if !ok {
		return nil, gozzard.Errorf(gozzard.ErrUnavailable,
			"the limit of %d logs, histories and files that are read at the same time is reached: try again in a moment", maxAsked)
	}
	defer p.questions.remove(id, agent, cmd.Kind)
	ctx, cancel := context.WithTimeout(ctx, p.o.Answer)
	defer cancel()

	for {
		if s := p.reach(agent); s.ID != 0 {
			again := *cmd // what was handed over may not change any more
			again.Version, again.Session = gozzard.ProtocolVersion, s.ID
			p.sendTo(agent, s, &again)
		}

		select {
		case r := <-asked.answer:
			return r, nil
		case <-ctx.Done():
			return nil, &gozzard.Error{Kind: gozzard.ErrUnavailable, Cause: ctx.Err(),
				Message: fmt.Sprintf("the agent of %s did not answer within %s", targetName(t), p.o.Answer)}
		case <-time.After(askAgain):
		}
	}
}

// answered hands an answer over to its question. Without one it is too late, a second answer, or was never asked for.
func (p *Plane) answered(from gozzard.AgentID, id gozzard.OpID, r *gozzard.Report, unasked string) {
	kind := gozzard.CommandLogs
	switch r.Kind {
	case gozzard.ReportHistory:
		kind = gozzard.CommandHistory
	case gozzard.ReportFile:
		kind = gozzard.CommandFile
	}
	asked := p.questions.remove(id, from, kind)
	if asked == nil {
		p.reject(unasked, from)
		return
	}
	asked.answer <- r // removed once: there is room
}

// isAsked reports whether this server waits for an answer.
func (q *questions) isAsked(id gozzard.OpID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open[id] != nil
}
