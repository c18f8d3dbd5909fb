package supervise

import (
	"bytes"
	"maps"
	"time"

	"github.com/gozzard/gozzard"
)

// Record is the durable state of one process. The agent writes it to the journal together with the operation that
// caused it.
type Record struct {
	Key          gozzard.Key       `json:"key"`
	Labels       map[string]string `json:"labels,omitempty"`  // shared, never changed in place
	Spec         []byte            `json:"spec,omitempty"`    // EncodeSpec; shared, never changed in place
	Account      string            `json:"account,omitempty"` // of a definition that names none: the host's default when it came
	Unnamed      bool              `json:"unnamed,omitempty"` // the definition names no account; earlier versions did not write this
	Hosted       bool              `json:"hosted,omitempty"`
	Wanted       gozzard.RunState  `json:"wanted"`
	RegisteredAt int64             `json:"registered_at"`
	LastStart    int64             `json:"last_start,omitempty"`
}

func (r Record) equal(o Record) bool {
	return r.Key == o.Key && r.Account == o.Account && r.Unnamed == o.Unnamed && r.Hosted == o.Hosted && r.Wanted == o.Wanted &&
		r.RegisteredAt == o.RegisteredAt && r.LastStart == o.LastStart &&
		maps.Equal(r.Labels, o.Labels) && bytes.Equal(r.Spec, o.Spec)
}

// Op is one operation on one process.
type Op struct {
	ID     gozzard.OpID
	Ref    gozzard.AttemptRef // its place in the server's record; zero: the server did not ask for it
	Action gozzard.Action
	Key    gozzard.Key
	Labels map[string]string // empty: use the present labels
	Spec   []byte            // made by EncodeSpec; empty: use the present definition
	// Account returns the account for a definition that names none. The record keeps it, so that a later change of the
	// host's default account does not move the process to another account. "" keeps none. nil is the same.
	Account func() string
	Adopt   bool // a start supervises a process that it finds running

	// Begin is called right before anything is done. If it returns an error, the operation is dropped: it was
	// cancelled, or the journal could not record it. It may be nil for queries.
	Begin func() error

	// Done is called exactly once if Begin succeeded or was nil. The actor waits for it, so rec is durable before
	// anything follows from it. rec is the record that must be stored; nil means that it has not changed. removed
	// means that the record must be deleted. Done is not called for an operation that is in progress when Run's
	// context ends: its outcome is unknown, and the journal correctly says that it was begun.
	Done func(out gozzard.Outcome, rec *Record, removed bool)
}

// FirstRecord is the record of a process that is not managed yet, with the definition that the operation brings. It is nil
// if that definition is missing or cannot be read.
func (op *Op) FirstRecord(now time.Time) *Record {
	spec, err := gozzard.DecodeSpec(op.Spec)
	if len(op.Spec) == 0 || err != nil {
		return nil
	}
	rec := op.firstRecord(spec, now)
	return &rec
}

func (op *Op) firstRecord(spec *gozzard.Spec, now time.Time) Record {
	rec := Record{Key: op.Key, Labels: op.Labels, Spec: op.Spec, Wanted: gozzard.StateStopped, RegisteredAt: now.Unix()}
	if spec.Identity.User == "" && op.Account != nil {
		rec.Account, rec.Unnamed = op.Account(), true
	}
	return rec
}
