package agent

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// noteFirst notes the definition of a process that is new on this host. The intent has it, so that an agent that ends in
// the middle of the operation knows the process when it starts again.
func (a *Agent) noteFirst(op *operation, t *supervise.Op) {
	a.mu.Lock()
	_, managed := a.state.procs[op.key]
	a.mu.Unlock()
	if managed || op.action == gozzard.ActionUnregister {
		return
	}

	first := t.FirstRecord(a.o.Now())
	a.mu.Lock()
	op.first = first
	a.mu.Unlock()
}

// keepFirst keeps the definition that an interrupted operation brought for a new process. The server has it on record, and
// the process may run: without its definition the host would not report it.
func (s *state) keepFirst(e *opEntry) {
	op := s.ops[gozzard.OpID(e.ID)]
	if op == nil || op.first == nil {
		return
	}
	if _, managed := s.procs[op.key]; !managed {
		s.procs[op.key] = *op.first
	}
}
