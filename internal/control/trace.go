package control

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Tracer follows operations to their verdicts, so that people see where time is spent. It decides nothing, and must neither
// fail nor wait.
type Tracer interface {
	// Begin is called before an operation is accepted. It gives the trace that is recorded with the task, "" if the operation is
	// not traced, and then what is called with the task, or with the error.
	Begin(ctx context.Context, op *gozzard.Operation) (gozzard.Trace, func(task gozzard.Task, known bool, err error))

	// Launched is called for an accepted task before anything of it is sent, with the attempts that this server delivers.
	Launched(task *gozzard.Task, list []gozzard.Attempt)

	// Found is called with attempts that an earlier run of this server, or another server, accepted.
	Found(task *gozzard.Task, list []gozzard.Attempt)

	// Sent is called before a command goes to an agent. It may set the traces of its operations.
	Sent(to gozzard.AgentID, cmd *gozzard.Command)

	// Reported is called with what an agent reports, before anything comes of it.
	Reported(from gozzard.AgentID, list []gozzard.OpReport)

	// Settled is called after a write of the record that began at a time, with what it changed.
	Settled(rows []record.Settlement, changed []bool, began time.Time)
}

// tracedDispatcher is a Dispatcher whose commands a Tracer sees.
type tracedDispatcher struct {
	Dispatcher
	tracer Tracer
}

// Send implements Dispatcher.
func (d tracedDispatcher) Send(to gozzard.AgentID, cloud int, cmd *gozzard.Command) error {
	d.tracer.Sent(to, cmd)
	return d.Dispatcher.Send(to, cloud, cmd)
}

// traced is the trace of an operation, if it has one, and what ends the span of its acceptance.
func (p *Plane) traced(ctx context.Context, op *gozzard.Operation) (gozzard.Trace, func(gozzard.Task, bool, error)) {
	if p.o.Tracer == nil {
		return "", nil
	}
	return p.o.Tracer.Begin(ctx, op)
}

// launched makes a task known to the tracer.
func (p *Plane) launched(t *gozzard.Task, list []gozzard.Attempt) {
	if p.o.Tracer != nil && t.Trace != "" {
		p.o.Tracer.Launched(t, list)
	}
}

// found makes attempts of the record known to the tracer; traced are those of their tasks that have a trace.
func (p *Plane) found(traced []gozzard.Task, all []gozzard.Attempt) {
	if len(traced) == 0 {
		return
	}
	of := make(map[gozzard.TaskSeq][]gozzard.Attempt, len(traced))
	for i := range all {
		of[all[i].Ref.Task] = append(of[all[i].Ref.Task], all[i])
	}
	for i := range traced {
		p.o.Tracer.Found(&traced[i], of[traced[i].Seq])
	}
}
