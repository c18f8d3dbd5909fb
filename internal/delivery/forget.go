package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
)

// forgetTries is how often Forget looks at what is open. What it finds is decided by nobody else for good, so one more
// look than there are states is enough.
const forgetTries = 8

// Forget ends the session of an agent that left the fleet and gives every open attempt its verdict: what was not sent is
// not executed, and nobody will ever know whether the rest was. It returns how many attempts got one. LockAgent is held,
// and no new operation on the agent is accepted meanwhile.
func (e *Engine) Forget(ctx context.Context, id gozzard.AgentID) (n int, err error) {
	// End the session: from now on nothing is sent, and what the agent still reports is of no session.
	e.change(func(time.Time) {
		if g := e.queue.agents[id]; g != nil {
			g.end()
			if len(g.attempts) == 0 {
				delete(e.queue.agents, id)
			}
		}
	})

	// Decide what is open. An attempt may move between a look and the write, so look again.
	for range forgetTries {
		open, err := e.o.Store.OpenOf(ctx, []gozzard.AgentID{id})
		if err != nil || len(open) == 0 {
			return n, err
		}
		rows := make([]Settlement, len(open))
		for i := range open {
			rows[i] = leftVerdict(&open[i])
		}
		changed, err := e.o.Store.Settle(ctx, rows)
		if err != nil {
			return n, err
		}

		e.change(func(now time.Time) {
			for i := range rows {
				if !changed[i] {
					continue
				}
				n++
				if a := e.queue.attempts[rows[i].Op]; a != nil {
					e.queue.apply(a, Event{Kind: Settled}, now)
				}
			}
		})
	}

	return n, gozzard.Errorf(gozzard.ErrUnavailable, "operations on agent %s change all the time: try again", id)
}

// leftVerdict is the verdict of an attempt whose agent left the fleet.
func leftVerdict(a *gozzard.Attempt) Settlement {
	row := Settlement{Ref: a.Ref, Op: a.Op, Agent: a.Agent, Action: a.Action, Key: a.Key, From: a.State,
		FromSession: a.Session, To: gozzard.AttemptInterrupted,
		Outcome: gozzard.Outcome{Code: gozzard.CodeInterrupted, Message: fmt.Sprintf("interrupted: host %s left the fleet "+
			"before it answered; it was done at most once and is not repeated by itself", a.Agent)}}
	if a.State == gozzard.AttemptPending {
		row.To, row.Outcome = gozzard.AttemptNotExecuted, gozzard.Outcome{Code: gozzard.CodeUnreachable,
			Message: fmt.Sprintf("not executed: host %s left the fleet before it was sent", a.Agent)}
	}
	return row
}
