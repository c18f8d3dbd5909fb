package control

import (
	"context"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Operate accepts an operation. When it returns, the task with one attempt per target and its audit row are durable,
// and every attempt will get a verdict. Attempts on hosts that are unknown or offline have theirs already.
func (p *Plane) Operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error) {
	p.restorer.pause.RLock()
	defer p.restorer.pause.RUnlock()
	return p.operate(ctx, op)
}

// restore is Operate for the restorer. What it gives back to a host was accepted before, so no second person has to
// approve it again.
func (p *Plane) restore(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error) {
	return p.operate(gozzard.WithApproval(ctx), op)
}

// operate is Operate without the pause of the restorer.
func (p *Plane) operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error) {
	trace, end := p.traced(ctx, op)
	acc, err := p.admitAndAccept(ctx, op, trace)
	if end != nil {
		end(acc.Task, acc.Known, err)
	}
	return acc.Task, err
}

// admitAndAccept is operate for an operation with its trace.
func (p *Plane) admitAndAccept(ctx context.Context, op *gozzard.Operation, trace gozzard.Trace) (record.Accepted, error) {
	// Reject what would wait too long.
	queue, leave, err := p.enqueue(ctx, op)
	if err != nil {
		return record.Accepted{}, err
	}
	defer leave()

	// Find out what it is about.
	d, err := p.draft(ctx, op, queue)
	if err == nil {
		err = p.checkPermitted(op)
	}
	if err != nil {
		return record.Accepted{}, err
	}

	// Let it wait for a second person where that is needed.
	if p.o.Hold != nil {
		if err := p.o.Hold(ctx, op, d.task.Attempts); err != nil {
			return record.Accepted{}, err
		}
	}

	// Reject what is registered already, and what replaces a definition that the caller has not seen. Looking and
	// recording must not interleave with another register.
	if d.registers || op.Expect != nil {
		p.registering.Lock()
		defer p.registering.Unlock()
		if err := p.rejectRecorded(ctx, op, d); err != nil {
			return record.Accepted{}, err
		}
	}

	// Reject what the quotas of the caller do not allow.
	admitted, err := p.admit(ctx, op, d)
	if err != nil {
		return record.Accepted{}, err
	}
	open := d.open()
	if err := p.delivery.Reserve(op.Caller.App, open); err != nil {
		p.o.Observe.rejected("attempts_in_flight")
		admitted.undo()
		return record.Accepted{}, err
	}
	leave() // its attempts are counted by Reserve now

	// Record it, its contents first.
	if err := p.keepContents(ctx, op, d.contents(op.Caller.Rights)); err != nil {
		p.delivery.Unreserve(op.Caller.App, open)
		admitted.undo()
		return record.Accepted{}, err
	}
	d.task.Task.Trace = trace
	d.task.InOrder, d.task.Charge = p.peers != nil, admitted.Charge
	if readOnly(op) {
		d.task.FoldAudit = p.o.FoldQuery
	}
	acc, err := p.accept(ctx, d.task)
	if err != nil || acc.Known {
		p.delivery.Unreserve(op.Caller.App, open)
		admitted.undo()
	}
	if err != nil {
		return record.Accepted{}, admitted.why(err)
	}
	p.taskFeed.note(acc.Task.Seq)
	if !acc.Known && p.o.Observe.Accepted != nil {
		p.o.Observe.Accepted(len(d.task.Attempts))
	}

	return acc, nil
}

// readOnly reports whether an operation changes nothing.
func readOnly(op *gozzard.Operation) bool {
	return !slices.ContainsFunc(op.Items, func(it gozzard.Item) bool { return !it.Action.ReadOnly() })
}

// rejectRecorded rejects what does not fit to the definitions in the record. A repeated request is answered with its task:
// the record has what it brought.
func (p *Plane) rejectRecorded(ctx context.Context, op *gozzard.Operation, d *draft) error {
	if d.registers {
		if err := p.rejectRegistered(ctx, d); err != nil {
			return err
		}
	}
	if op.Expect == nil {
		return nil
	}

	recs, err := recorded(ctx, p.o.Store, d.defined())
	if err != nil {
		return err
	}
	if err := checkExpected(op, recs); err != nil && !p.repeated(ctx, op) {
		return err
	}
	return nil
}

// repeated reports whether the caller used the idempotency key of an operation before.
func (p *Plane) repeated(ctx context.Context, op *gozzard.Operation) bool {
	if op.IdempotencyKey == "" {
		return false
	}
	known, err := p.o.Store.HasKey(ctx, op.Caller, op.IdempotencyKey)
	return err == nil && known
}

// rejectRegistered turns register into "already registered" where the record has the process.
func (p *Plane) rejectRegistered(ctx context.Context, d *draft) error {
	var ids []gozzard.ProcID
	for i := range d.task.Attempts {
		if a := &d.task.Attempts[i]; a.Action == gozzard.ActionRegister && !a.State.Final() {
			ids = append(ids, gozzard.ProcID{Agent: a.Agent, Key: a.Key})
		}
	}

	recs, err := recorded(ctx, p.o.Store, ids)
	if err != nil {
		return err
	}

	for i := range d.task.Attempts {
		a := &d.task.Attempts[i]
		if _, ok := recs[gozzard.ProcID{Agent: a.Agent, Key: a.Key}]; ok && a.Action == gozzard.ActionRegister &&
			!a.State.Final() {
			a.State = gozzard.AttemptNotExecuted
			a.Outcome = gozzard.Outcome{Code: gozzard.CodeAlreadyRegistered,
				Message: "already registered"}
		}
	}

	d.task.Register = slices.DeleteFunc(d.task.Register, func(r record.Process) bool {
		_, ok := recs[r.ID]
		return ok
	})

	return nil
}

// checkExpected rejects an operation that would replace a definition other than those that its caller expects.
func checkExpected(op *gozzard.Operation, recs map[gozzard.ProcID]record.Process) error {
	if op.Expect == nil {
		return nil
	}
	for id, rec := range recs {
		if slices.Contains(op.Expect, rec.Digest()) {
			continue
		}
		if len(op.Expect) == 0 {
			return gozzard.Errorf(gozzard.ErrConflict, "%s/%s is registered on agent %s already; nothing was registered. "+
				"Edit its definition, or choose another name", id.Key.Namespace, id.Key.Name, id.Agent)
		}
		return gozzard.Errorf(gozzard.ErrConflict, "another caller changed the definition of %s/%s on agent %s meanwhile; "+
			"nothing was registered. Read it again, then repeat your change", id.Key.Namespace, id.Key.Name, id.Agent)
	}
	return nil
}

// recorded reads registered processes; those that are not registered are missing.
func recorded(ctx context.Context, store Store, ids []gozzard.ProcID) (map[gozzard.ProcID]record.Process, error) {
	out := make(map[gozzard.ProcID]record.Process, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	for rec, err := range store.Processes(ctx, ids) {
		if err != nil {
			return nil, err
		}
		out[rec.ID] = rec
	}
	return out, nil
}
