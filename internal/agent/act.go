package agent

import (
	"crypto/sha256"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Act is an entry of the act log: an operation that had an effect on this host, or that was rejected when it began.
type Act struct {
	Op      gozzard.OpID
	Ref     gozzard.AttemptRef
	Action  gozzard.Action
	Key     gozzard.Key
	Spec    [sha256.Size]byte // the hash of the definition as it was sent, or of nothing if none was sent
	Outcome gozzard.Outcome
}

// doneFunc is the type of supervise.Op.Done.
type doneFunc = func(out gozzard.Outcome, rec *supervise.Record, removed bool)

// reportAct wraps done, which may be nil, so that Options.Acted is called after the end of an operation is durable.
func (a *Agent) reportAct(in *gozzard.Op, done doneFunc) doneFunc {
	if a.o.Acted == nil {
		return done
	}
	if done == nil {
		done = func(gozzard.Outcome, *supervise.Record, bool) {}
	}

	act := Act{Op: in.ID, Ref: in.Ref, Action: in.Action, Key: in.Key, Spec: sha256.Sum256(in.Spec)}
	return func(out gozzard.Outcome, rec *supervise.Record, removed bool) {
		done(out, rec, removed)
		act.Outcome = out
		act.Outcome.Message = clip(out.Message)
		a.o.Acted(act)
	}
}
