package tracing

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/otlp"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

// Begin implements control.Tracer.
func (t *Tracer) Begin(ctx context.Context, op *gozzard.Operation) (gozzard.Trace, func(gozzard.Task, bool, error)) {
	began := t.o.Now()
	p, ok := t.placeOf(ctx, op)
	if !ok {
		return "", nil
	}

	trace := p.text()
	return trace, func(task gozzard.Task, known bool, err error) {
		s := p.below("accept", began, t.o.Now(), otlp.String("gozzard.app", op.Caller.App), otlp.String("gozzard.door", op.Door))
		if err != nil {
			s.Failed, s.Why = true, kindOf(err)
		} else {
			s.Attrs = append(s.Attrs, otlp.String("gozzard.task", taskname.Of(task.ID)),
				otlp.Int("gozzard.targets", int64(task.Targets)))
			t.o.Log.Debug("operation accepted", "task", taskname.Of(task.ID), "trace_id", trace.ID())
		}
		if known {
			s.Attrs = append(s.Attrs, otlp.Bool("gozzard.repeated"))
		}
		t.o.Sink.Add(s)
	}
}

// kindOf says why an operation was rejected, without texts of the caller.
func kindOf(err error) string {
	return "rejected: " + string(gozzard.KindOf(err))
}

// placeOf is where an operation belongs: to its request, or to that of its job.
func (t *Tracer) placeOf(ctx context.Context, op *gozzard.Operation) (place, bool) {
	if q, ok := ctx.Value(requestKey{}).(*request); ok {
		return t.join(q, op.Caller.App, op.Door)
	}
	p, ok := placeOf(gozzard.TraceOf(ctx))
	return p, ok && t.allow(op.Caller.App)
}

// Launched implements control.Tracer: a task of this server is on record, and its operations are delivered now. Attempts that
// have their verdict already get their spans.
func (t *Tracer) Launched(k *gozzard.Task, list []gozzard.Attempt) {
	t.follow(k, list, t.o.Now())
}

// Found implements control.Tracer: attempts that an earlier run of this server, or another server, accepted.
func (t *Tracer) Found(k *gozzard.Task, list []gozzard.Attempt) {
	t.follow(k, list, k.At)
}

// follow adds attempts to what is followed.
func (t *Tracer) follow(k *gozzard.Task, list []gozzard.Attempt, since time.Time) {
	p, ok := placeOf(k.Trace)
	if !ok || len(list) == 0 {
		return
	}

	t.mu.Lock()
	spans := t.add(k, p, list, since)
	t.mu.Unlock()
	t.o.Sink.Add(spans...)
}

// add is follow with the lock held.
func (t *Tracer) add(k *gozzard.Task, p place, list []gozzard.Attempt, since time.Time) []*otlp.Span {
	f := t.tasks[k.Seq]
	if f == nil {
		if len(t.tasks) >= maxTasks {
			t.busy.Add(1)
			return nil
		}
		f = newTask(k, p, since)
		t.tasks[k.Seq] = f
		t.followed.Store(int64(len(t.tasks)))
	}

	var spans []*otlp.Span
	now := t.o.Now()
	for i := range list {
		a := &list[i]
		if f.attempts[a.Op] != nil {
			continue
		}
		if t.attempts >= maxAttempts {
			t.busy.Add(1)
			break
		}
		f.attempts[a.Op] = &attempt{op: a.Op, index: a.Ref.Index, agent: a.Agent, key: a.Key, action: a.Action}
		t.attempts++
		if a.State.Final() {
			spans = append(spans, t.settle(k.Seq, f, f.attempts[a.Op], a.State, &a.Outcome, since, now)...)
		}
	}
	if f.open() == 0 {
		spans = append(spans, f.end(now)...)
		t.forget(k.Seq, f)
	}
	return spans
}

// Sent implements control.Tracer: operations go to an agent. They get the trace that their agent names in its log.
func (t *Tracer) Sent(to gozzard.AgentID, cmd *gozzard.Command) {
	if cmd.Kind != gozzard.CommandOperate || t.followed.Load() == 0 {
		return
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.o.Now()
	for i := range cmd.Ops {
		op := &cmd.Ops[i]
		k, a := t.find(op.Ref.Task, op.ID, to)
		if a == nil {
			continue
		}
		op.Trace = gozzard.Trace(k.place.text().Parent())
		if a.tries++; a.sent.IsZero() {
			a.sent = now
		}
	}
}

// Reported implements control.Tracer: an agent says what it knows of operations, before anything comes of it.
func (t *Tracer) Reported(from gozzard.AgentID, list []gozzard.OpReport) {
	if t.followed.Load() == 0 {
		return
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.o.Now()
	for i := range list {
		r := &list[i]
		if _, a := t.find(r.Ref.Task, r.ID, from); a != nil {
			a.report(r, now)
		}
	}
}

// Settled implements control.Tracer: rows of the record changed, in a write that began at the given time.
func (t *Tracer) Settled(rows []record.Settlement, changed []bool, began time.Time) {
	if t.followed.Load() == 0 {
		return
	}

	t.mu.Lock()
	var spans []*otlp.Span
	now := t.o.Now()
	for i := range rows {
		r := &rows[i]
		if !changed[i] {
			continue
		}
		k, a := t.find(r.Ref.Task, r.Op, r.Agent)
		switch {
		case a == nil:
		case r.To.Final():
			spans = append(spans, t.settle(r.Ref.Task, k, a, r.To, &r.Outcome, began, now)...)
			if k.open() == 0 {
				spans = append(spans, k.end(now)...)
				t.forget(r.Ref.Task, k)
			}
		case r.To == gozzard.AttemptPending: // it is sent again, in another session
			a.sent, a.arrived, a.reported = time.Time{}, time.Time{}, time.Time{}
		}
	}
	t.mu.Unlock()
	t.o.Sink.Add(spans...)
}

// find is an attempt that is followed. The caller holds t.mu.
func (t *Tracer) find(seq gozzard.TaskSeq, id gozzard.OpID, agent gozzard.AgentID) (*task, *attempt) {
	k := t.tasks[seq]
	if k == nil {
		return nil, nil
	}
	a := k.attempts[id]
	if a == nil || a.settled || a.agent != agent { // an agent speaks for its own operations only
		return nil, nil
	}
	return k, a
}

// settle makes the spans of an attempt with a verdict. The caller holds t.mu.
func (t *Tracer) settle(seq gozzard.TaskSeq, k *task, a *attempt, to gozzard.AttemptState, out *gozzard.Outcome,
	began, now time.Time) []*otlp.Span {
	a.settled = true
	k.done++
	t.o.Log.Debug("operation has its verdict", "op", a.op, "agent", a.agent, "ns", a.key.Namespace, "proc", a.key.Name,
		"code", codeOf(out.Code), "trace_id", k.place.text().ID())
	g := newGroup(k, a, to, out, began, now)
	if !k.large {
		return g.spans(k.place, nil)
	}
	return k.addToBatch(g, now)
}
