package agent

import (
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
)

var errForbidden = errors.New("not allowed by local policy")

// checkPolicy asks the host's policy right before an operation begins, for the definition that the operation would
// use. A rejected operation gets a tombstone: it never happened, and its definition is not stored.
//
// If the policy forbids something only after it was done, nothing is undone. A running process keeps running and can
// be queried, unregistered, or removed from supervision. But Gozzard does not start, stop or probe it any more. A query
// and the end of supervision are never rejected because of a definition: they run nothing, and a caller that syncs
// its states would go on with old ones.
//
// An operation of another account than the one that its caller has a right to is rejected in the same way.
func (a *Agent) checkPolicy(op *operation, given []byte, account string) error {
	// Compare the account, and ask the policy.
	err, byPolicy := a.accountError(op, given, account), false
	if err == nil && a.o.Policy != nil {
		err = a.policyError(op, given)
		byPolicy = true
	}
	if err == nil {
		return nil
	}
	a.log.Warn("an operation was rejected by the local policy, or because of its account",
		"op", op.id, "ns", op.key.Namespace, "proc", op.key.Name, "action", op.action, "err", err)

	// Record the rejection.
	out := gozzard.Outcome{Code: gozzard.CodeRefused, Message: clip(err.Error()), Policy: byPolicy}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case op.action.ReadOnly() && op.phase == gozzard.PhaseQueued:
		op.phase, op.outcome = gozzard.PhaseDone, out
		a.queueResult(op)
	case gozzard.MayBegin(op.phase):
		a.writeTombstone(op, out)
		if op.action == gozzard.ActionStart || op.action == gozzard.ActionRestart {
			a.addEvent(gozzard.Event{Key: op.key, Kind: gozzard.EventStartFailed, Message: out.Message,
				Cause: gozzard.Cause{Op: op.id, Ref: op.ref}})
		}
	}

	return fmt.Errorf("%w: %w", errForbidden, err)
}

// policyError returns why the policy forbids an operation, or nil.
func (a *Agent) policyError(op *operation, given []byte) error {
	// Check the action.
	if err := a.o.Policy.Action(op.action); err != nil {
		return err
	}

	// Allow what uses no new definition and runs nothing.
	present := a.sup.Definition(op.key)
	switch op.action {
	case gozzard.ActionUnregister:
		return nil
	case gozzard.ActionUnhost: // it only lets go; handleOperate has removed a definition that is forbidden
		if present != nil || len(given) == 0 || a.forbids(op.key.Namespace, given) {
			return nil
		}
		return a.countProcess(op.key)
	case gozzard.ActionQuery:
		if present == nil { // the query uses the present definition if there is one
			op.veiled = a.forbids(op.key.Namespace, given)
		}
		return nil
	}

	// Find the definition that the operation would use. The supervisor rejects an operation without a definition, or
	// with one that it cannot read.
	spec := present
	if len(given) > 0 && !a.sup.Keeps(op.key, op.action, given) {
		var err error
		if spec, err = gozzard.DecodeSpec(given); err != nil {
			return nil
		}
	}
	if spec == nil {
		return nil
	}

	// A definition without an account can be recorded and looked for. What runs or signals something needs an account.
	if spec.Identity.User == "" && a.defaultAccount() == "" && runsNothing(op.action) {
		return a.countProcess(op.key)
	}

	// Check it.
	if err := a.o.Policy.Definition(op.key.Namespace, spec); err != nil {
		return err
	}
	return a.countProcess(op.key)
}

// forbids reports whether the policy forbids a definition that came with a query or with the end of supervision. The
// answer to a query then says whether the process runs, but not its command line, which may have what only its account
// may know.
func (a *Agent) forbids(namespace string, given []byte) bool {
	if len(given) == 0 || a.o.Policy == nil {
		return false
	}
	spec, err := gozzard.DecodeSpec(given)
	if err != nil || spec.Identity.User == "" && a.defaultAccount() == "" { // it may be any account's
		return false
	}
	return a.o.Policy.Definition(namespace, spec) != nil
}

// runsNothing reports whether an action runs no command and sends no signal.
func runsNothing(a gozzard.Action) bool {
	return a == gozzard.ActionRegister || a == gozzard.ActionUpdate
}

// countProcess counts a process that is new on this host against the limit of the policy.
func (a *Agent) countProcess(key gozzard.Key) error {
	a.mu.Lock()
	defer a.mu.Unlock()

	if _, managed := a.state.procs[key]; managed {
		return nil
	}
	if _, counted := a.newProcs[key]; counted {
		return nil
	}
	if err := a.o.Policy.Processes(len(a.state.procs) + len(a.newProcs) + 1); err != nil {
		return err
	}

	a.newProcs[key] = struct{}{}
	return nil
}

// uncountProcess undoes countProcess for an operation that did not begin.
func (a *Agent) uncountProcess(key gozzard.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.newProcs, key)
}
