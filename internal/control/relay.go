package control

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

// relayTask bounds the processes laid down by one task.
const relayTask = 1000

// relays are hosts that lost their state and get the server's copy again.
type relays struct {
	mu   sync.Mutex
	open map[gozzard.AgentID]*relay
	wake chan struct{}
}

// relay is one of them. What older operations are still about is laid down when those are decided: they know better
// what is wanted.
type relay struct {
	left  []gozzard.ProcID
	since uint64 // HostRecord.JournalSince of the journal that lacks them
}

// lostState is what a host was known to have when it says HELLO with a journal that is not the one known: whatever
// it kept is not kept any more. It is asked before the host reports, since that leaves nothing of what it does not
// have. The record remembers until it is done, whoever may have died in between.
func (p *Plane) lostState(agent gozzard.AgentID, rec record.Host) *relay {
	if rec.RestoredJournal == rec.JournalSince {
		return nil
	}
	r := &relay{since: rec.JournalSince}
	_, rows := p.o.Live.Find(gozzard.Everything(), fleet.Filter{Agents: []gozzard.AgentID{agent}}, 0, math.MaxInt)
	for i := range rows {
		r.left = append(r.left, gozzard.ProcID{Agent: agent, Key: rows[i].Status.Key})
	}
	return r
}

// relayLost has processes laid down again on a host that lost them.
func (p *Plane) relayLost(agent gozzard.AgentID, r *relay) {
	if r == nil {
		return
	}
	p.relays.mu.Lock()
	p.relays.open[agent] = r
	p.relays.mu.Unlock()
	select {
	case p.relays.wake <- struct{}{}:
	default:
	}
}

// relayLoop lays down what the record has for hosts that lost it.
func (p *Plane) relayLoop(ctx context.Context) {
	for {
		p.relays.mu.Lock()
		open := maps.Clone(p.relays.open)
		p.relays.mu.Unlock()
		for agent, r := range open {
			err := p.layDown(ctx, agent, r)
			if err == nil && len(r.left) == 0 {
				err = p.o.Store.JournalRestored(ctx, agent, r.since)
			}
			if err != nil && ctx.Err() == nil {
				p.o.Log.Error("cannot lay the definitions of a host down again, trying again", "agent", agent, "err",
					err)
			}
			if err == nil && len(r.left) == 0 {
				p.relays.mu.Lock()
				if p.relays.open[agent] == r {
					delete(p.relays.open, agent)
				}
				p.relays.mu.Unlock()
			}
		}
		var again <-chan time.Time
		if len(open) > 0 {
			again = time.After(p.o.Resend)
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-p.relays.wake:
		}
	}
}

// layDown asks for what the record has of a host that is ready, and keeps what is under way otherwise for the next
// time.
func (p *Plane) layDown(ctx context.Context, agent gozzard.AgentID, r *relay) error {
	if s := p.onlineSession(agent); s.id == 0 || !s.ready {
		return nil
	}

	busy := p.busyKeys(agent)
	var later []gozzard.ProcID
	now := slices.DeleteFunc(slices.Clone(r.left), func(id gozzard.ProcID) bool {
		if busy[id.Key] {
			later = append(later, id)
		}
		return busy[id.Key]
	})

	for len(now) > 0 {
		n := min(len(now), relayTask)
		if err := p.layDownSome(ctx, agent, now[:n]); err != nil {
			r.left = append(later, now...)
			return err
		}
		now = now[n:]
	}

	r.left = later
	return nil
}

// layDownSome is one task. What is not recorded was never registered here, or is not any more.
func (p *Plane) layDownSome(ctx context.Context, agent gozzard.AgentID, ids []gozzard.ProcID) error {
	var items []gozzard.Item
	for rec, err := range p.o.Store.Processes(ctx, ids) {
		if err != nil {
			return err
		}
		if it, ok := p.relayItem(&rec); ok {
			items = append(items, it)
		}
	}

	if len(items) == 0 {
		return nil
	}

	task, err := p.Operate(ctx, &gozzard.Operation{
		Caller: gozzard.Caller{App: "gozzard", User: "system", Rights: gozzard.Everything()}, Door: "relay",
		Items: items, WaitOffline: p.o.Lease,
	})
	if err != nil {
		return err
	}

	p.o.Log.Warn("a host came back without its state: what the record has is laid down again", "agent", agent,
		"processes", len(items), "task", task.ID)
	return nil
}

// relayItem is what gives a process back to its host. What is hosted is hosted again, so it runs; of the others
// only the definition is known again.
func (p *Plane) relayItem(rec *record.Process) (gozzard.Item, bool) {
	spec, err := gozzard.DecodeSpec(rec.Spec)
	if err != nil {
		p.o.Log.Error("a recorded definition cannot be read", "agent", rec.ID.Agent, "proc", rec.ID.Key, "err", err)
		return gozzard.Item{}, false
	}
	it := gozzard.Item{Action: gozzard.ActionUpdate, Key: rec.ID.Key, Labels: rec.Labels, Spec: spec,
		Targets: []gozzard.Target{{Agent: rec.ID.Agent}}}
	if rec.Hosted {
		it.Action = gozzard.ActionHost
	}
	return it, true
}

// busyKeys are the processes of an agent that operations are under way for.
func (p *Plane) busyKeys(agent gozzard.AgentID) map[gozzard.Key]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	busy := map[gozzard.Key]bool{}
	for _, f := range p.byAgent[agent] {
		if !f.op.Action.ReadOnly() {
			busy[f.op.Key] = true
		}
	}
	return busy
}
