package control

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

const (
	settleBatch  = 2000
	settleCrowd  = 64 // verdicts of one commit from which on there are many
	settleLinger = 10 * time.Millisecond
)

// settle is one report of an agent about one operation on its way into the record.
type settle struct {
	row     record.Settlement
	action  gozzard.Action
	key     gozzard.Key
	cloud   int
	session uint64
}

// settleLoop folds reports into the record: whatever has come while the last commit ran goes into the next one. An
// agent is told that a verdict is durable only afterwards; when the record fails nothing is told and the agent
// repeats.
func (p *Plane) settleLoop(ctx context.Context) {
	batch := make([]settle, 0, settleBatch)
	for {
		crowd := len(batch) >= settleCrowd
		batch = batch[:0]
		select {
		case <-ctx.Done():
			return
		case s := <-p.settles:
			batch = p.gather(append(batch, s), crowd)
		}
		if err := p.settleAll(ctx, batch); err != nil && ctx.Err() == nil {
			p.o.Log.Error("cannot record verdicts, agents will repeat them", "count", len(batch), "err", err)
		}
	}
}

// gather takes the reports that are there. In a crowd it waits a little for more: each commit writes the same pages
// of the record again.
func (p *Plane) gather(batch []settle, crowd bool) []settle {
	var late <-chan time.Time

	if crowd {
		late = time.After(settleLinger)
	}

	for len(batch) < settleBatch {
		select {
		case s := <-p.settles:
			batch = append(batch, s)
			continue
		default:
		}
		if late == nil {
			return batch
		}
		select {
		case s := <-p.settles:
			batch = append(batch, s)
		case <-late:
			late = nil
		case <-p.quit:
			return batch
		}
	}

	return batch
}

func (p *Plane) settleAll(ctx context.Context, batch []settle) error {
	if len(batch) == 0 {
		return nil
	}

	rows := make([]record.Settlement, len(batch))
	for i := range batch {
		rows[i] = batch[i].row
	}

	moved, err := p.o.Store.Settle(ctx, rows)
	p.launchCommitted()
	if err != nil {
		return err
	}

	acks := map[gozzard.AgentID]*gozzard.Command{}
	clouds := map[gozzard.AgentID]int{}
	for i := range batch {
		s := &batch[i]
		if !p.settled(&s.row, moved[i]) {
			continue
		}
		cmd := acks[s.row.Agent]
		if cmd == nil {
			cmd = &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandAck, Session: s.session}
			acks[s.row.Agent], clouds[s.row.Agent] = cmd, s.cloud
		}
		cmd.Acked = append(cmd.Acked, s.row.Op)
	}

	for agent, cmd := range acks {
		p.tell(agent, clouds[agent], cmd)
	}

	return nil
}

// settled updates what is in memory after a row was written; moved is false when the attempt was final already (or
// never this agent's). It reports whether the agent may forget the operation: not while the record waits for
// something else.
func (p *Plane) settled(row *record.Settlement, moved bool) (final bool) {
	if moved && row.Process != nil && row.Process.Remove {
		p.o.Live.Remove(row.Agent, row.Process.ID.Key)
	}
	if moved && row.To.Final() && p.o.Observe.Settled != nil {
		p.o.Observe.Settled(row.To, row.Outcome.Code)
	}
	if moved && row.Outcome.Code == gozzard.CodeRefused && p.o.Observe.Refused != nil {
		p.o.Observe.Refused("refused_by_host") // by its policy, for the most part
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.flights[row.Op]
	if f == nil || f.agent != row.Agent {
		return true
	}
	if moved && row.To.Final() {
		p.drop(f)
		return true
	}

	return false
}

// withdraw gives an attempt that was never dispatched its verdict. From pending only: another server may just have
// sent it.
func (p *Plane) withdraw(ctx context.Context, f *flight, out gozzard.Outcome) {
	p.settleOne(ctx, f, record.Settlement{From: gozzard.AttemptPending, To: gozzard.AttemptNotExecuted, Outcome: out})
}

// settleOne gives one attempt a verdict of the server's own; when the record does not take it the timer comes again.
func (p *Plane) settleOne(ctx context.Context, f *flight, row record.Settlement) {
	row.Ref, row.Op, row.Agent = f.ref, f.op.ID, f.agent
	moved, err := p.o.Store.Settle(ctx, []record.Settlement{row})
	if err != nil {
		p.o.Log.Error("cannot record a verdict", "agent", f.agent, "proc", f.op.Key, "op", f.op.ID, "err", err)
		p.mu.Lock()
		p.schedule(f, p.o.Now().Add(p.o.Resend))
		p.mu.Unlock()
		return
	}

	if !p.settled(&row, moved[0]) { // somebody else moved it meanwhile: look again
		p.mu.Lock()
		p.schedule(f, p.o.Now().Add(p.o.Resend))
		p.mu.Unlock()
	}
}

// processChange is what a successful action means for the recorded flags.
func (p *Plane) processChange(agent gozzard.AgentID, key gozzard.Key, action gozzard.Action,
	out gozzard.Outcome) *record.ProcessChange {
	if out.Code != gozzard.CodeOK {
		return nil
	}

	c := &record.ProcessChange{ID: gozzard.ProcID{Agent: agent, Key: key}, Hosted: out.Hosted}
	switch action {
	case gozzard.ActionStart, gozzard.ActionRestart, gozzard.ActionHost:
		c.Wanted = gozzard.StateRunning
	case gozzard.ActionStop, gozzard.ActionKill:
		c.Wanted = gozzard.StateStopped
	case gozzard.ActionUnhost:
		c.Wanted = gozzard.StateStopped
		if row, ok := p.o.Live.Get(agent, key); ok {
			c.Wanted = row.Status.Wanted // unhosting changes nothing but the hosting
		}
	case gozzard.ActionUnregister:
		c.Remove = true
	default:
		return nil
	}

	return c
}

// pruneLoop removes old results in small steps so that nobody waits for it.
func (p *Plane) pruneLoop(ctx context.Context) {
	const every, step, pause = 10 * time.Minute, 50, 100 * time.Millisecond
	wait := time.Minute
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		n, err := p.o.Store.Prune(ctx, p.o.Now().Add(-p.o.Keep), step)
		wait = every
		if err != nil {
			p.o.Log.Error("cannot prune old results", "err", err)
		} else if n == step {
			wait = pause
		}
	}
}
