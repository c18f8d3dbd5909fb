package control

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

const (
	maxRestored = 1000 // definitions restored by one task

	// A host that loses its state again and again is restored this many times at once, and then once in every pause.
	restoresAtOnce = 20
	restorePause   = time.Minute

	restoreDoor = "relay" // the door of these tasks in the record: stored, so it stays
)

// restorer sends the recorded definitions to hosts that lost their state.
type restorer struct {
	o        *Options
	delivery *delivery.Engine
	operate  func(context.Context, *gozzard.Operation) (gozzard.Task, error)

	// pause is read-locked by every operation of a caller from its draft until it is in memory, and locked while a host
	// is restored. Without it, a definition could be restored between an operation's place in the record and its
	// delivery: the host would then reject the operation as older than the definition.
	pause sync.RWMutex

	mu      sync.Mutex
	open    map[gozzard.AgentID]*lostState
	allowed map[gozzard.AgentID]*rate.Limiter // of hosts that were restored lately
	cleaned time.Time                         // when allowed was
	wake    chan struct{}
}

// lostState is what a host had before it lost its state. A process that older operations are still about is restored
// when those are decided: they know better what is wanted.
type lostState struct {
	left  []gozzard.ProcID
	since uint64 // record.Host.JournalSince of the journal that does not have them
	begun bool   // see mayRestore
	said  bool   // that it has to wait
}

func newRestorer(o *Options, d *delivery.Engine,
	operate func(context.Context, *gozzard.Operation) (gozzard.Task, error)) *restorer {
	return &restorer{o: o, delivery: d, operate: operate, open: map[gozzard.AgentID]*lostState{},
		allowed: map[gozzard.AgentID]*rate.Limiter{}, wake: make(chan struct{}, 1)}
}

// lostState lists what a host had when its HELLO comes with another journal than before; nil when it lost nothing. The
// record remembers the loss until all is restored, also over a restart of the server.
func (r *restorer) lostState(agent gozzard.AgentID, rec *record.Host) *lostState {
	if rec.RestoredJournal == rec.JournalSince {
		return nil
	}
	lost := &lostState{since: rec.JournalSince}
	_, rows := r.o.Live.Find(gozzard.Everything(), fleet.Filter{Agents: []gozzard.AgentID{agent}}, 0, math.MaxInt)
	for i := range rows {
		lost.left = append(lost.left, gozzard.ProcID{Agent: agent, Key: rows[i].Status.Key})
	}
	return lost
}

// add makes the loop restore what a host lost; nil is nothing.
func (r *restorer) add(agent gozzard.AgentID, lost *lostState) {
	if lost == nil {
		return
	}
	r.mu.Lock()
	r.open[agent] = lost
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// drop ends the restoring of a host.
func (r *restorer) drop(agent gozzard.AgentID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, agent)
}

// loop restores definitions until ctx ends.
func (r *restorer) loop(ctx context.Context) {
	for {
		r.mu.Lock()
		open := maps.Clone(r.open)
		r.mu.Unlock()
		for agent, lost := range open {
			err := r.restore(ctx, agent, lost)
			switch {
			case err == nil || ctx.Err() != nil:
			case gozzard.KindOf(err) == gozzard.ErrRateLimited: // a fleet came back without its state, and others are first
				r.o.Log.Debug("the definitions of a host are restored later, the server is busy", "agent", agent, "err", err)
			default:
				r.o.Log.Error("cannot restore the definitions of a host, trying again", "agent", agent, "err", err)
			}
		}

		var again <-chan time.Time
		if len(open) > 0 {
			again = time.After(r.o.Resend)
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-r.wake:
		}
	}
}

// restore does what can be done for one host now, and records when nothing is left.
func (r *restorer) restore(ctx context.Context, agent gozzard.AgentID, lost *lostState) error {
	if err := r.restoreIdle(ctx, agent, lost); err != nil || len(lost.left) > 0 {
		return err
	}
	if err := r.o.Store.JournalRestored(ctx, agent, lost.since); err != nil {
		return err
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[agent] == lost {
		delete(r.open, agent)
	}
	return nil
}

// restoreIdle restores the processes of a ready host that no operation is about. The others are left for the next time.
func (r *restorer) restoreIdle(ctx context.Context, agent gozzard.AgentID, lost *lostState) error {
	if _, _, ready := r.delivery.Session(agent); !ready || !r.mayRestore(agent, lost) {
		return nil
	}

	r.pause.Lock()
	defer r.pause.Unlock()
	busy := r.delivery.BusyKeys(agent)
	var later []gozzard.ProcID
	now := slices.DeleteFunc(slices.Clone(lost.left), func(id gozzard.ProcID) bool {
		if busy[id.Key] {
			later = append(later, id)
		}
		return busy[id.Key]
	})

	for len(now) > 0 {
		n := min(len(now), maxRestored)
		if err := r.restoreSome(ctx, agent, now[:n]); err != nil {
			lost.left = append(later, now...)
			return err
		}
		now = now[n:]
	}

	lost.left = later
	return nil
}

// mayRestore bounds how often a host is restored. A hostile host could otherwise make the server write tasks and rows of
// the audit without an end.
func (r *restorer) mayRestore(agent gozzard.AgentID, lost *lostState) bool {
	if lost.begun || len(lost.left) == 0 {
		return true
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.o.Now()
	if now.Sub(r.cleaned) > restorePause {
		r.cleaned = now
		maps.DeleteFunc(r.allowed, func(_ gozzard.AgentID, l *rate.Limiter) bool {
			return l.TokensAt(now) >= restoresAtOnce // it is as if it were new
		})
	}
	if r.allowed[agent] == nil {
		r.allowed[agent] = rate.NewLimiter(rate.Every(restorePause), restoresAtOnce)
	}

	lost.begun = r.allowed[agent].AllowN(now, 1)
	if !lost.begun && !lost.said {
		lost.said = true
		r.o.Observe.rejected("state_lost_again")
		r.o.Log.Warn("a host loses its state again and again, so its definitions are restored later: look at the disk of "+
			"its state folder; if it has no fault, the agent may be hostile", "agent", agent)
	}
	return lost.begun
}

// restoreSome restores processes with one task. One that is not in the record was never registered, or is not any more.
func (r *restorer) restoreSome(ctx context.Context, agent gozzard.AgentID, ids []gozzard.ProcID) error {
	var items []gozzard.Item
	for rec, err := range r.o.Store.Processes(ctx, ids) {
		if err != nil {
			return err
		}
		if it, ok := r.item(&rec); ok {
			items = append(items, it)
		}
	}

	if len(items) == 0 {
		return nil
	}

	task, err := r.operate(ctx, &gozzard.Operation{
		Caller: gozzard.Caller{App: "gozzard", User: "system", Rights: gozzard.Everything()}, Door: restoreDoor,
		Items: items, WaitOffline: r.o.Lease,
	})
	if err != nil {
		return err
	}

	r.o.Log.Warn("a host came back without its state: its recorded definitions are restored", "agent", agent,
		"processes", len(items), "task", task.ID)
	return nil
}

// item gives a process back to its host. A supervised process is supervised again, so it runs; of the others the host
// gets the definition.
func (r *restorer) item(rec *record.Process) (gozzard.Item, bool) {
	spec, err := gozzard.DecodeSpec(rec.Spec)
	if err != nil {
		r.o.Log.Error("cannot read a recorded definition", "agent", rec.ID.Agent, "proc", rec.ID.Key, "err", err)
		return gozzard.Item{}, false
	}

	it := gozzard.Item{Action: gozzard.ActionUpdate, Key: rec.ID.Key, Labels: rec.Labels, Spec: spec,
		Targets: []gozzard.Target{{Agent: rec.ID.Agent}}}
	if rec.Hosted {
		it.Action = gozzard.ActionHost
	}
	return it, true
}
