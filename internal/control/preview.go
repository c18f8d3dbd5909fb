package control

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

// Preview says what an operation would do: to which processes it would go, which of them would be rejected at once, and
// which definitions would change. It does nothing, and needs the same rights as the operation.
func (p *Plane) Preview(ctx context.Context, op *gozzard.Operation) ([]record.Preview, error) {
	// Draft the operation as if it were accepted.
	d, err := p.draft(ctx, op, p.delivery.Queue(op.Caller.App))
	if err == nil {
		err = p.checkPermitted(op)
	}
	if err != nil {
		return nil, err
	}

	// Read the definitions that it would replace.
	ids := d.defined()
	recs, err := recorded(ctx, p.o.Store, ids)
	if err != nil {
		return nil, err
	}

	if err := checkExpected(op, recs); err != nil {
		return nil, err
	}

	// Compare.
	replaced := make(map[gozzard.ProcID]record.Preview, len(ids))
	for _, r := range d.task.Register {
		v := record.Preview{Defines: true, After: r.Spec}
		if rec, ok := recs[r.ID]; ok {
			v.Before = rec.Spec
		}
		replaced[r.ID] = v
	}
	out := make([]record.Preview, len(d.task.Attempts))
	for i := range d.task.Attempts {
		a := &d.task.Attempts[i]
		out[i] = replaced[gozzard.ProcID{Agent: a.Agent, Key: a.Key}]
		out[i].Attempt = *a
	}

	return out, nil
}

// Definitions reads a page of the recorded definitions of processes that the caller may see, in the order of Find.
// Processes that agents report and that are not recorded are left out of the page, not of the count. The values of
// variables of the environment are often secrets: only callers that may change a definition see them.
func (p *Plane) Definitions(ctx context.Context, caller gozzard.Caller, f fleet.Filter, start, limit int) (int,
	[]record.Definition, error) {
	count, rows := p.Find(caller, f, start, limit)
	ids := make([]gozzard.ProcID, len(rows))
	for i := range rows {
		ids[i] = gozzard.ProcID{Agent: rows[i].Agent, Key: rows[i].Status.Key}
	}
	recs, err := recorded(ctx, p.o.Store, ids)
	if err != nil {
		return 0, nil, err
	}

	var out []record.Definition
	tasks := map[gozzard.TaskSeq]*gozzard.Task{}
	for i, id := range ids {
		rec, ok := recs[id]
		if !ok {
			continue
		}
		d := record.Definition{Addr: rows[i].Addr, Process: rec}
		if d.Origin, err = p.origin(ctx, tasks, rec.Task); err != nil {
			return 0, nil, err
		}
		if host, _ := p.o.Live.Host(id.Agent); !caller.Rights.MayOn(gozzard.ActionUpdate, id.Key.Namespace, host.Info.Ref()) {
			if d.Spec, err = hideEnv(rec.Spec); err != nil {
				return 0, nil, err
			}
		}
		d.Origin = hideCaller(caller, d.Origin)
		out = append(out, d)
	}
	return count, out, nil
}

// origin is the task that brought a definition; nil for one that is not known or pruned. known has those that were read.
func (p *Plane) origin(ctx context.Context, known map[gozzard.TaskSeq]*gozzard.Task, seq gozzard.TaskSeq) (*gozzard.Task,
	error) {
	if t, ok := known[seq]; ok || seq == 0 {
		return t, nil
	}
	task, err := p.o.Store.Task(ctx, seq)
	switch {
	case err == nil:
		known[seq] = &task
	case gozzard.KindOf(err) == gozzard.ErrNotFound:
		known[seq] = nil
	default:
		return nil, err
	}
	return known[seq], nil
}

// hideCaller hides the task, the app and the person of a task from callers that cannot read it: they see when and by which
// door it came.
func hideCaller(caller gozzard.Caller, t *gozzard.Task) *gozzard.Task {
	if t == nil || caller.Rights.SeesAll() || t.Caller.App == caller.App && t.Caller.User == caller.User {
		return t
	}
	return &gozzard.Task{At: t.At, Door: t.Door}
}

// hidden is in the place of values that a caller may not see.
const hidden = "***"

// hideEnv hides the values of the environment of an encoded definition.
func hideEnv(encoded []byte) ([]byte, error) {
	spec, err := gozzard.DecodeSpec(encoded)
	if err != nil || len(spec.Exec.Env) == 0 {
		return encoded, err
	}
	for name := range spec.Exec.Env {
		spec.Exec.Env[name] = hidden
	}
	return gozzard.EncodeSpec(spec), nil
}
