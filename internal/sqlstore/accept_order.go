package sqlstore

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/gozzard/gozzard"
)

// probeAgents is up to how many agents are looked up one by one. For more, all attempts that wait are read.
const probeAgents = 1000

// Both find agents with attempts that wait. The index attempts_waiting has only those attempts.
var (
	selectWaitingAgents = `SELECT DISTINCT agent_id FROM attempts WHERE state = 1`
	selectWaitingOf     = withRows(`SELECT DISTINCT v.a FROM v JOIN attempts o ON o.agent_id = v.a WHERE o.state = 1`,
		"a TEXT")
)

// findWaiting finds the agents of the task on which older attempts wait. Other servers commit nothing meanwhile.
func (a *acceptance) findWaiting(ctx context.Context, c *conn) error {
	a.waits = map[gozzard.AgentID]bool{}
	if !a.t.InOrder {
		return nil
	}

	// Those of tasks before, also of this transaction.
	ready := map[gozzard.AgentID]bool{}
	for i := range a.t.Attempts {
		if at := &a.t.Attempts[i]; at.State == gozzard.AttemptDispatched {
			ready[at.Agent] = true
			a.waits[at.Agent] = c.waiting[at.Agent]
		}
	}
	if err := a.readWaiting(ctx, c, slices.Sorted(maps.Keys(ready))); err != nil {
		return err
	}

	// Those of this task, for the tasks after it. It need not be written before they look.
	for i := range a.t.Attempts {
		at := &a.t.Attempts[i]
		if state, _ := a.begin(at); state == gozzard.AttemptPending {
			if c.waiting == nil {
				c.waiting = map[gozzard.AgentID]bool{}
			}
			c.waiting[at.Agent] = true
		}
	}
	return nil
}

// readWaiting reads on which of the agents attempts wait.
func (a *acceptance) readWaiting(ctx context.Context, c *conn, agents []gozzard.AgentID) error {
	note := func(r *sql.Rows) error {
		var agent string
		err := r.Scan(&agent)
		a.waits[gozzard.AgentID(agent)] = true
		return err
	}
	if len(agents) > probeAgents {
		return c.each(ctx, selectWaitingAgents, nil, note)
	}
	return c.queryNow(ctx, selectWaitingOf, len(agents),
		func(i int, to []any) []any { return append(to, text(string(agents[i]))) }, note)
}

// begin is the state with which an attempt is recorded.
func (a *acceptance) begin(at *gozzard.Attempt) (gozzard.AttemptState, uint64) {
	if at.State == gozzard.AttemptDispatched && a.waits[at.Agent] {
		return gozzard.Birth(at.Session, false)
	}
	return at.State, at.Session
}
