package supervise

import (
	"bytes"
	"maps"

	"github.com/gozzard/gozzard"
)

// Record is the durable state of one process; the agent journals it together with the operation that made it.
type Record struct {
	Key          gozzard.Key       `json:"key"`
	Labels       map[string]string `json:"labels,omitempty"` // shared, never changed in place
	Spec         []byte            `json:"spec,omitempty"`   // EncodeSpec; shared, never changed in place
	Hosted       bool              `json:"hosted,omitempty"`
	Wanted       gozzard.RunState  `json:"wanted"`
	RegisteredAt int64             `json:"registered_at"`
	LastStart    int64             `json:"last_start,omitempty"`
}

func (r Record) equal(o Record) bool {
	return r.Key == o.Key && r.Hosted == o.Hosted && r.Wanted == o.Wanted && r.RegisteredAt == o.RegisteredAt &&
		r.LastStart == o.LastStart &&
		maps.Equal(r.Labels, o.Labels) && bytes.Equal(r.Spec, o.Spec)
}

// Op is one operation on one process.
type Op struct {
	ID     gozzard.OpID
	Action gozzard.Action
	Key    gozzard.Key
	Labels map[string]string // empty: what is known
	Spec   []byte            // EncodeSpec; empty: what is known

	// Begin is called right before anything is done. An error means: do nothing and forget it (cancelled, or the
	// journal would not take it). It may be nil for queries.
	Begin func() error

	// Done is called exactly once when Begin succeeded (or was nil), before the actor goes on, so that rec is
	// durable before anything follows from it. rec is the record as it must now be kept (nil: unchanged); removed:
	// forget the process. It is not called for an operation that was in the middle when Run's context ended: nobody
	// knows its outcome then, and the journal rightly has it as begun.
	Done func(out gozzard.Outcome, rec *Record, removed bool)
}
