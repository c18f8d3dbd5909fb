package agent

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
)

var errForbidden = errors.New("not allowed by local policy")

// judge asks the host's policy right before an operation begins, by the definition that it would be done with. What
// is refused gets a tombstone: it never happened, nothing of it is kept, and its definition is not taken over.
//
// What the policy forbids later than it was done is not undone: a process that runs goes on, may be queried,
// unhosted and unregistered, but nothing is started, stopped or probed for it any more.
func (a *Agent) judge(op *operation, given []byte) error {
	if a.o.Policy == nil {
		return nil
	}

	why := a.forbids(op, given)
	if why == nil {
		return nil
	}

	a.log.Warn("operation was refused by local policy", "op", op.id, "ns", op.key.Namespace, "proc", op.key.Name,
		"action", op.action, "why", why)
	out := gozzard.Outcome{Code: gozzard.CodeRefused, Message: clip(why.Error())}
	a.mu.Lock()
	defer a.mu.Unlock()

	switch {
	case op.action.ReadOnly() && op.phase == gozzard.PhaseQueued:
		op.phase, op.outcome = gozzard.PhaseDone, out
		a.tell(op)
	case gozzard.MayBegin(op.phase):
		a.bury(op, out)
	}

	return fmt.Errorf("%w: %w", errForbidden, why)
}

// forbids gives the policy's reason against an operation, nil when there is none.
func (a *Agent) forbids(op *operation, given []byte) error {
	if err := a.o.Policy.Action(op.action); err != nil {
		return err
	}

	kept := a.sup.Definition(op.key)
	switch op.action {
	case gozzard.ActionUnregister:
		return nil
	case gozzard.ActionUnhost: // runs nothing, but what comes with it is kept
		if len(given) == 0 || kept != nil && bytes.Equal(given, gozzard.EncodeSpec(kept)) {
			return nil
		}
	case gozzard.ActionQuery:
		if kept != nil { // it is looked for by the kept one
			return nil
		}
	}

	spec := kept

	if len(given) > 0 {
		var err error
		if spec, err = gozzard.DecodeSpec(given); err != nil {
			return nil // who takes definitions over says what is wrong with it
		}
	}

	if spec == nil {
		return nil // nothing can be done without one
	}
	if err := a.o.Policy.Definition(spec); err != nil {
		return err
	}
	if op.action.ReadOnly() {
		return nil
	}

	return a.makeRoom(op.key)
}

// makeRoom counts a process that the host does not have yet.
func (a *Agent) makeRoom(key gozzard.Key) error {
	a.mu.Lock()
	defer a.mu.Unlock()

	if _, managed := a.state.procs[key]; managed {
		return nil
	}
	if _, counted := a.coming[key]; counted {
		return nil
	}
	if err := a.o.Policy.Processes(len(a.state.procs) + len(a.coming) + 1); err != nil {
		return err
	}

	a.coming[key] = struct{}{}
	return nil
}

// giveRoom takes back what makeRoom counted for an operation that did not begin after all.
func (a *Agent) giveRoom(key gozzard.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.coming, key)
}
