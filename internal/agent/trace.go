package agent

import "github.com/gozzard/gozzard"

// noteBegin notes when an operation with a trace began: its intent is durable, its effect comes next.
func (a *Agent) noteBegin(op *operation) {
	if op.trace == "" {
		return
	}
	a.mu.Lock()
	op.began = a.o.Now()
	a.mu.Unlock()
	a.log.Debug("operation begins", "op", op.id, "ns", op.key.Namespace, "proc", op.key.Name, "trace_id", op.trace.ID())
}

// noteEnd notes when an operation with a trace was done. The caller holds a.mu.
func (a *Agent) noteEnd(op *operation) {
	if op.trace == "" {
		return
	}
	op.ended = a.o.Now()
	a.log.Debug("operation is done", "op", op.id, "ns", op.key.Namespace, "proc", op.key.Name, "trace_id", op.trace.ID())
}

// addTimes adds the times of an operation with a trace to a report about it. They are durations by the clock of this run of
// the agent, so they are right whatever the clocks of the machines say.
func (op *operation) addTimes(r *gozzard.OpReport) {
	if op.trace == "" || op.arrived.IsZero() || op.began.IsZero() {
		return
	}
	r.Waited = max(op.began.Sub(op.arrived), 1)
	if !op.ended.IsZero() {
		r.Ran = max(op.ended.Sub(op.began), 1)
	}
}
