package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	maxAsked  = 1024            // questions that wait for their answers
	askAgain  = 2 * time.Second // a question may be lost on the way
	maxLogAsk = 256 << 10       // bytes in one answer
)

// questions are the questions that agents have not answered yet.
type questions struct {
	mu   sync.Mutex
	open map[gozzard.OpID]*question
}

type question struct {
	agent  gozzard.AgentID
	answer chan *gozzard.LogChunk // capacity 1
}

func (q *questions) add(id gozzard.OpID, agent gozzard.AgentID) (*question, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.open) >= maxAsked {
		return nil, false
	}
	asked := &question{agent: agent, answer: make(chan *gozzard.LogChunk, 1)}
	q.open[id] = asked
	return asked, true
}

// remove removes a question of an agent and returns it; nil when that agent was not asked.
func (q *questions) remove(id gozzard.OpID, agent gozzard.AgentID) *question {
	q.mu.Lock()
	defer q.mu.Unlock()
	asked := q.open[id]
	if asked == nil || asked.agent != agent {
		return nil
	}
	delete(q.open, id)
	return asked
}

// Log reads what a process printed from its host. It fails at once when the host is offline, and after a time when
// the host does not answer.
func (p *Plane) Log(ctx context.Context, caller gozzard.Caller, t gozzard.Target,
	q gozzard.LogQuery) (gozzard.LogChunk, error) {
	// Reject what the caller may not see. A hidden process gets the answer that an agent gives for one that it does not
	// have.
	host, known := p.Resolve(caller, t)
	if !known {
		return gozzard.LogChunk{}, gozzard.Errorf(gozzard.ErrNotFound, "no agent has ever reported from %s",
			targetName(t))
	}

	agent := host.Info.Agent
	if p.delivery.OnlineSession(agent).ID == 0 {
		return gozzard.LogChunk{}, gozzard.Errorf(gozzard.ErrUnavailable,
			"host %s is offline, and its logs are there: its agent was last heard at %s. Start the agent, or ask again when "+
				"the host is back", offlineName(t, host), lastHeard(host))
	}
	if !caller.Rights.Sees(q.Key.Namespace, host.Info.Ref()) {
		return gozzard.LogChunk{}, gozzard.Errorf(gozzard.ErrNotFound, "%s: %s has no log on this host",
			targetName(t), q.Key)
	}

	// Ask the agent.
	if q.Max <= 0 || q.Max > maxLogAsk {
		q.Max = maxLogAsk
	}
	q.ID = gozzard.NewOpID()
	c, err := p.ask(ctx, agent, &q)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return gozzard.LogChunk{}, &gozzard.Error{Kind: gozzard.ErrUnavailable, Cause: err,
			Message: fmt.Sprintf("the agent of %s did not answer within %s", targetName(t), p.o.Answer)}
	}
	if err != nil {
		return gozzard.LogChunk{}, err
	}

	if c.Error != "" {
		return gozzard.LogChunk{}, gozzard.Errorf(gozzard.ErrNotFound, "%s: %s", targetName(t), c.Error)
	}
	return *c, nil
}

// ask sends a question to an agent, again and again because it may be lost, until the answer comes or the time is over.
func (p *Plane) ask(ctx context.Context, agent gozzard.AgentID, q *gozzard.LogQuery) (*gozzard.LogChunk, error) {
	asked, ok := p.questions.add(q.ID, agent)
	if !ok {
		return nil, gozzard.Errorf(gozzard.ErrUnavailable,
			"the limit of %d logs that are read at the same time is reached: try again in a moment", maxAsked)
	}
	defer p.questions.remove(q.ID, agent)
	ctx, cancel := context.WithTimeout(ctx, p.o.Answer)
	defer cancel()

	for {
		if s := p.delivery.OnlineSession(agent); s.ID != 0 {
			p.delivery.Send(agent, s.Cloud, &gozzard.Command{Version: gozzard.ProtocolVersion,
				Kind: gozzard.CommandLogs, Session: s.ID, Logs: q})
		}

		select {
		case c := <-asked.answer:
			return c, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(askAgain):
		}
	}
}

func (p *Plane) receiveLogs(from gozzard.AgentID, r *gozzard.Report) {
	if r.Logs == nil {
		p.reject("logs_empty", from)
		return
	}
	asked := p.questions.remove(r.Logs.ID, from)
	if asked == nil { // too late, a second answer, or never asked for
		p.reject("logs_unasked", from)
		return
	}
	asked.answer <- r.Logs // removed once: there is room
}
