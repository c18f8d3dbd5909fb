package control

import (
	"context"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

// Results reads a task of the caller's app. The task of another app is not found, except for a person that sees the whole
// fleet. Nor is a task of another person with the same app found, unless the caller may see all of it.
func (p *Plane) Results(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID) (record.TaskResults, error) {
	unknown := func() (record.TaskResults, error) {
		return record.TaskResults{}, gozzard.Errorf(gozzard.ErrNotFound, "no such task")
	}

	seq, ok := id.Seq()
	if !ok {
		return unknown()
	}

	task, err := p.o.Store.Task(ctx, seq)
	if gozzard.KindOf(err) == gozzard.ErrNotFound && err != nil {
		return unknown()
	}
	if err != nil {
		return record.TaskResults{}, err
	}
	if task.ID != id || !caller.ReadsTasksOf(task.Caller.App) {
		return unknown()
	}

	res, err := p.results.of(ctx, task)
	if err != nil {
		return record.TaskResults{}, err
	}
	if !readsWhole(caller, &task) && !p.seesAttempts(caller.Rights, res.Attempts) {
		return unknown()
	}

	return res, nil
}

// readsWhole reports whether a caller may read a task of its app whatever its targets are: it is the caller's own, or
// the caller sees everything. Else the caller must see every attempt of it.
func readsWhole(caller gozzard.Caller, t *gozzard.Task) bool {
	return t.Caller.App == caller.App && t.Caller.User == caller.User || caller.Rights.SeesAll()
}

func (p *Plane) seesAttempts(rights *gozzard.Rights, attempts []gozzard.Attempt) bool {
	sees := p.sight(rights)
	return !slices.ContainsFunc(attempts, func(a gozzard.Attempt) bool {
		return !sees(a.Agent, a.Addr,
			a.Key.Namespace)
	})
}

// Await is Results when every attempt is final, or after a time.
func (p *Plane) Await(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID,
	limit time.Duration) (record.TaskResults, error) {
	if seq, ok := id.Seq(); ok {
		wait, cancel := context.WithTimeout(ctx, limit)
		p.delivery.Await(wait, seq)
		p.peers.await(wait, seq)
		cancel()
	}
	return p.Results(ctx, caller, id)
}

// Status answers for each target, known or not. What the caller may not see counts as not known.
func (p *Plane) Status(caller gozzard.Caller, key gozzard.Key, targets []gozzard.Target) []record.StatusRow {
	rows := make([]record.StatusRow, len(targets))
	for i, t := range targets {
		rows[i].Target = t
		if t.Refused != nil {
			continue
		}
		h, ok := p.Resolve(caller, t)
		if !ok {
			continue
		}
		rows[i].HostKnown, rows[i].Host = true, h
		if caller.Rights.Sees(key.Namespace, h.Info.Ref()) {
			rows[i].Row, rows[i].ProcKnown = p.o.Live.Get(h.Info.Agent, key)
		}
	}

	return rows
}

// Page lists what the caller may see of a namespace, in a stable order.
func (p *Plane) Page(caller gozzard.Caller, namespace string, start, limit int) (int, []fleet.Row) {
	return p.o.Live.Page(caller.Rights, namespace, start, limit)
}

// Find lists what a filter matches and the caller may see.
func (p *Plane) Find(caller gozzard.Caller, f fleet.Filter, start, limit int) (int, []fleet.Row) {
	return p.o.Live.Find(caller.Rights, f, start, limit)
}

// Hosts lists every host that was ever seen and the caller may see.
func (p *Plane) Hosts(caller gozzard.Caller) []fleet.Host { return p.o.Live.Hosts(caller.Rights) }

// Resolve finds the host a target names. One that the caller may not see is not found.
func (p *Plane) Resolve(caller gozzard.Caller, t gozzard.Target) (fleet.Host, bool) {
	h, known := p.resolve(t)
	if !known || !caller.Rights.SeesHost(h.Info.Ref()) {
		return fleet.Host{}, false
	}
	return h, true
}

// May reports whether a caller may do something to a process on a host that the caller may see.
// spec is the encoded definition of the process; without one no account is asked for.
func (p *Plane) May(caller gozzard.Caller, a gozzard.Action, key gozzard.Key, t gozzard.Target, spec []byte) bool {
	h, known := p.Resolve(caller, t)
	if !known || len(spec) == 0 {
		return known && caller.Rights.MayOn(a, key.Namespace, h.Info.Ref())
	}
	s, err := gozzard.DecodeSpec(spec)
	return err == nil && caller.Rights.May(a, key.Namespace, h.Info.Ref(),
		s.AccountOn(h.Info.DefaultAccount))
}

func (p *Plane) resolve(t gozzard.Target) (fleet.Host, bool) {
	if t.Agent != "" {
		return p.o.Live.Host(t.Agent)
	}
	if !t.Addr.IP.IsValid() {
		return fleet.Host{}, false
	}
	return p.o.Live.HostByAddr(t.Addr)
}

// Ready checks that the record answers.
func (p *Plane) Ready(ctx context.Context) error { return p.o.Store.Ping(ctx) }
