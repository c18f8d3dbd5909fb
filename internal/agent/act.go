package agent

import (
	"crypto/sha256"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Act is an operation that had its effect, or was refused at its beginning, as the host's own record has it.
type Act struct {
	Op      gozzard.OpID
	Ref     gozzard.AttemptRef
	Action  gozzard.Action
	Key     gozzard.Key
	Spec    [sha256.Size]byte // hash of the definition as it was sent; of nothing when none was
	Outcome gozzard.Outcome
}

// acted tells of the end of an operation after it is durable.
func (a *Agent) acted(in *gozzard.Op, done func(gozzard.Outcome, *supervise.Record, bool)) func(gozzard.Outcome,
	*supervise.Record, bool) {
	if a.o.Acted == nil {
		return done
	}
	act := Act{Op: in.ID, Ref: in.Ref, Action: in.Action, Key: in.Key, Spec: sha256.Sum256(in.Spec)}
	return func(out gozzard.Outcome, rec *supervise.Record, removed bool) {
		done(out, rec, removed)
		act.Outcome = out
		act.Outcome.Message = clip(out.Message)
		a.o.Acted(act)
	}
}
