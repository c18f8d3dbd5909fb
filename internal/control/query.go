package control

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

// TaskResults is a task with its attempts, in the order of the request.
type TaskResults struct {
	Task     gozzard.Task
	Attempts []gozzard.Attempt
}

// Open counts the attempts without a final verdict.
func (r *TaskResults) Open() int {
	n := 0
	for i := range r.Attempts {
		if !r.Attempts[i].State.Final() {
			n++
		}
	}
	return n
}

// Results reads a task of the caller's app. Another app's task does not exist for it.
func (p *Plane) Results(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID) (TaskResults, error) {
	unknown := func() (TaskResults, error) {
		return TaskResults{}, gozzard.Errorf(gozzard.ErrNotFound, "no such task")
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
		return TaskResults{}, err
	}
	if task.ID != id || task.Caller.App != caller.App {
		return unknown()
	}
	attempts, err := p.o.Store.Attempts(ctx, seq)
	if err != nil {
		return TaskResults{}, err
	}
	return TaskResults{Task: task, Attempts: attempts}, nil
}

// Await is Results once every attempt is final, or after a time.
func (p *Plane) Await(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID, limit time.Duration) (TaskResults, error) {
	if seq, ok := id.Seq(); ok {
		wait, cancel := context.WithTimeout(ctx, limit)
		p.await(wait, seq)
		cancel()
	}
	return p.Results(ctx, caller, id)
}

// StatusRow is the live picture of one process on one asked host.
type StatusRow struct {
	Target    gozzard.Target
	HostKnown bool
	ProcKnown bool
	Host      Host
	Row       Row
}

// Status answers for each target, known or not.
func (p *Plane) Status(key gozzard.Key, targets []gozzard.Target) []StatusRow {
	rows := make([]StatusRow, len(targets))
	for i, t := range targets {
		rows[i].Target = t
		if t.Refused != nil {
			continue
		}
		h, ok := p.Resolve(t)
		if !ok {
			continue
		}
		rows[i].HostKnown, rows[i].Host = true, h
		rows[i].Row, rows[i].ProcKnown = p.o.Live.Get(h.Info.Agent, key)
	}
	return rows
}

// Page lists a namespace in a stable order.
func (p *Plane) Page(namespace string, start, limit int) (int, []Row) {
	return p.o.Live.Page(namespace, start, limit)
}

// Find lists what a filter matches.
func (p *Plane) Find(f Filter, start, limit int) (int, []Row) { return p.o.Live.Find(f, start, limit) }

// Hosts lists every host ever seen.
func (p *Plane) Hosts() []Host { return p.o.Live.Hosts() }

// Resolve finds the host a target names.
func (p *Plane) Resolve(t gozzard.Target) (Host, bool) {
	if t.Agent != "" {
		return p.o.Live.Host(t.Agent)
	}
	if !t.Addr.IP.IsValid() {
		return Host{}, false
	}
	return p.o.Live.HostByAddr(t.Addr)
}

// Ready tells whether the record answers.
func (p *Plane) Ready(ctx context.Context) error { return p.o.Store.Ping(ctx) }
