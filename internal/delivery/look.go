package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// A look compares what this server has of an agent with the record (gozzard.OnLook). Other servers may have changed an
// attempt, and the answer to a write may have been lost.

const (
	lookers  = 128 // agents that are looked at at a time; they share transactions of the record
	lookMost = 512 // agents that are read about together: what is read about the last of them is old when it is used
)

// view is what the record has of some agents.
type view struct {
	held     map[gozzard.OpID]bool // what this server had before it read
	open     map[gozzard.AgentID][]gozzard.Attempt
	sessions map[gozzard.AgentID]uint64
	apps     map[gozzard.TaskSeq]string // of attempts that this server does not have
}

// Doubt makes the engine look at agents soon: a write about them was not taken, or not answered.
func (e *Engine) Doubt(agents ...gozzard.AgentID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range agents {
		e.doubts[id] = true
	}
}

// lookLoop looks at agents that are in doubt.
func (e *Engine) lookLoop(ctx context.Context) {
	t := time.NewTicker(e.o.Resend)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}

		e.mu.Lock()
		agents := make([]gozzard.AgentID, 0, len(e.doubts))
		for id := range e.doubts {
			agents = append(agents, id)
		}
		clear(e.doubts)
		e.mu.Unlock()
		if err := e.LookAt(ctx, agents); err != nil && ctx.Err() == nil {
			e.o.Log.Warn("cannot compare open operations with the record, trying again", "agents", len(agents), "err", err)
			e.Doubt(agents...)
		}
	}
}

// LookAt looks at agents, and dispatches what waits for them.
func (e *Engine) LookAt(ctx context.Context, agents []gozzard.AgentID) error {
	for part := range slices.Chunk(agents, lookMost) {
		v, err := e.read(ctx, part)
		if err != nil {
			return err
		}
		together(part, func(id gozzard.AgentID) {
			defer e.LockAgent(id)()
			e.look(ctx, id, v)
			e.makeReady(ctx, id)
		})
	}
	return nil
}

// read reads what the record has of agents: the attempts, and then the sessions. A session that is still the newest one was
// so when the attempts were read.
func (e *Engine) read(ctx context.Context, agents []gozzard.AgentID) (*view, error) {
	v := &view{held: e.heldOf(agents), open: make(map[gozzard.AgentID][]gozzard.Attempt, len(agents))}

	// The attempts.
	open, err := e.o.Store.OpenOf(ctx, agents)
	if err != nil {
		return nil, err
	}
	for i := range open {
		v.open[open[i].Agent] = append(v.open[open[i].Agent], open[i])
	}

	// The sessions.
	if v.sessions, err = e.o.Store.Sessions(ctx, agents); err != nil {
		return nil, err
	}

	// The apps of what is missing.
	var missing []gozzard.Attempt
	for _, id := range agents {
		missing = append(missing, e.Missing(v.open[id])...)
	}
	v.apps, err = e.appsOf(ctx, missing)
	return v, err
}

func (e *Engine) appsOf(ctx context.Context, list []gozzard.Attempt) (map[gozzard.TaskSeq]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	return e.o.Apps(ctx, list)
}

// look brings an agent in line with the record. The agent's lock is held.
func (e *Engine) look(ctx context.Context, id gozzard.AgentID, v *view) {
	var late []Settlement
	e.change(func(now time.Time) {
		g := e.queue.agents[id]
		own := Session{}
		if g != nil {
			own = g.session
		}
		switch {
		case own.ID == 0 && e.o.Shared && (g == nil || len(g.attempts) == 0): // not this server's
		case own.ID == 0:
			e.follow(id, v, now)
		case !g.decided: // HELLO decides first
		case own.ID > v.sessions[id]: // opened since the read, or the host was removed
		case !gozzard.IsHome(own.ID, v.sessions[id]):
			e.leave(g, now)
		default:
			e.follow(id, v, now)
			late = e.lateOf(own.ID, v.open[id], now)
		}
	})

	if len(late) > 0 {
		e.settleLate(ctx, late, v)
	}
}

// follow takes up what is missing, and brings what this server has in line with the record. The lock is held.
func (e *Engine) follow(id gozzard.AgentID, v *view, now time.Time) {
	g := e.queue.agents[id]
	own := uint64(0)
	if g != nil {
		own = g.session.ID
	}

	open := make(map[gozzard.OpID]bool, len(v.open[id]))
	for i := range v.open[id] {
		row := &v.open[id][i]
		open[row.Op] = true
		a := e.queue.attempts[row.Op]
		switch {
		case a != nil:
			e.catchUp(a, row, own, now)
		case e.isMissing(row.Op) && (own == 0 || holds(own, row)):
			e.add(row, v.apps[row.Ref.Task], own, now)
		}
	}
	if g == nil {
		return
	}
	for _, a := range slices.Clone(g.attempts) { // what is not open any more has a verdict
		if v.held[a.op.ID] && !open[a.op.ID] {
			e.queue.apply(a, Event{Kind: LetGo}, now)
		}
	}
}

// holds reports whether a home holds an attempt that it finds as the record has it.
func holds(own uint64, row *gozzard.Attempt) bool {
	do, _ := gozzard.OnLook(own, own, gozzard.Sighting{State: row.State, Session: row.Session})
	return do == gozzard.LookHold
}

// catchUp applies what the record has of an attempt and this server did not hear: the answer was lost, or another server
// did it. What this server has that is newer than the row that was read stays, and so does what the record is being asked
// about: the answer comes.
func (e *Engine) catchUp(a *Attempt, row *gozzard.Attempt, own uint64, now time.Time) {
	if a.due.IsZero() {
		return
	}
	if own == 0 && e.o.Shared && movedOn(a, row) { // another server is at work
		e.queue.apply(a, Event{Kind: LetGo}, now)
		return
	}
	if a.state == Waiting && row.State != gozzard.AttemptPending && gozzard.MaySend(own, row.Session) {
		e.queue.apply(a, Event{Kind: Dispatched, Session: row.Session, Deadline: row.Deadline}, now)
	}
	if a.state.Record() == gozzard.AttemptDispatched && row.State == gozzard.AttemptUnknown {
		e.queue.apply(a, Event{Kind: GivenUp}, now)
	}
}

// movedOn reports whether the record has an attempt in another state or session than this server.
func movedOn(a *Attempt, row *gozzard.Attempt) bool {
	return row.State != a.state.Record() || row.State != gozzard.AttemptPending && row.Session != a.session
}

// add takes up an attempt that the record has. What was dispatched in the session own is sent. The lock is held.
func (e *Engine) add(row *gozzard.Attempt, app string, own uint64, now time.Time) {
	kind := FoundUnknown
	switch {
	case row.State == gozzard.AttemptPending:
		kind = AddedPending
	case row.State == gozzard.AttemptDispatched && gozzard.MaySend(own, row.Session):
		kind = AddedDispatched
	case row.State == gozzard.AttemptDispatched:
		kind = FoundDispatched
	}
	if kind != FoundUnknown {
		e.queue.quotas[app]++
	}
	e.queue.addFound(row, app, kind, now)
	if a := e.queue.attempts[row.Op]; kind == AddedPending && a.agent.online { // what looks dispatches it, without the timer
		e.queue.due.set(a, now.Add(e.o.Resend))
	}
}

// isMissing reports whether this server does not have an operation and did not record its verdict lately. The lock is held.
func (e *Engine) isMissing(id gozzard.OpID) bool {
	_, decided := e.queue.recent.owner(id)
	return e.queue.attempts[id] == nil && !decided
}

// lateOf lists what a former home recorded for a session that was over. The lock is held.
func (e *Engine) lateOf(own uint64, open []gozzard.Attempt, now time.Time) (late []Settlement) {
	for i := range open {
		row := &open[i]
		do, to := gozzard.OnLook(own, own, gozzard.Sighting{State: row.State, Session: row.Session,
			Held: !e.isMissing(row.Op), Late: !row.Deadline.After(now)})
		if do == gozzard.LookSettle {
			late = append(late, Settlement{Ref: row.Ref, Op: row.Op, Agent: row.Agent, Action: row.Action, Key: row.Key,
				To: to, FromSession: row.Session, Outcome: reconciledOutcome(to, &gozzard.OpReport{})})
		}
	}
	return late
}

// settleLate records what becomes of such attempts, and takes up those that wait again.
func (e *Engine) settleLate(ctx context.Context, late []Settlement, v *view) {
	changed, err := e.o.Store.Settle(ctx, late)
	if err != nil {
		if ctx.Err() == nil {
			e.o.Log.Error("cannot decide about operations that were recorded for an older session, trying again",
				"agent", late[0].Agent, "count", len(late), "err", err)
		}
		e.Doubt(late[0].Agent)
		return
	}

	e.change(func(now time.Time) {
		for i := range late {
			if changed[i] && late[i].To == gozzard.AttemptPending {
				e.takeBack(&late[i], v, now)
			}
		}
	})
}

// takeBack takes up an attempt that waits again. The lock is held.
func (e *Engine) takeBack(s *Settlement, v *view, now time.Time) {
	if a := e.queue.attempts[s.Op]; a != nil { // the call that recorded it was answered meanwhile
		e.queue.apply(a, Event{Kind: Requeued}, now)
		return
	}
	for _, row := range v.open[s.Agent] {
		if row.Op == s.Op {
			row.State, row.Session, row.Expires = gozzard.AttemptPending, 0, row.Deadline
			e.add(&row, v.apps[row.Ref.Task], 0, now)
		}
	}
}
