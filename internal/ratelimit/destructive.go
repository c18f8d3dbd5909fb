package ratelimit

import (
	"github.com/gozzard/gozzard"
)

// blastFloor is the number of processes from which on Percent counts. Two of five processes are more than 30 %, but
// such a small number needs no confirmation.
const blastFloor = 50

// Blast limits how many processes a caller may stop, kill, restart, reload, unmanage or unregister.
//
// A caller of the native API must confirm the number of processes if they are more than Targets, or more than Percent
// of all processes that it can see. Beside that each app and each user has a Quota per hour, over all APIs together, so
// that small steps and other APIs do not get around it. Above the quota a caller of the native API must confirm the
// number. Callers of the BlueKing APIs cannot confirm anything, so they are rejected. An app that may do everything on
// the whole fleet is not rejected there, because it could remove every limit anyway.
type Blast struct {
	Targets int
	Percent int
	Quota   int            // processes per hour of one app, and of one user
	Quotas  map[string]int // of apps and users (user:NAME) with another quota; 0: no quota

	Platform map[string]bool // apps with PlatformQuota, unless Quotas has them
}

// Operation checks an operation of the native API before it is accepted: the caller must confirm a large number. visible
// counts the processes that the caller can see.
func (g *Guard) Operation(op *gozzard.Operation, visible func() int) error {
	n, verb := destructive(op)
	if n == 0 {
		return nil
	}

	// A confirmed number must be right.
	if op.Confirm != 0 && op.Confirm != n {
		g.o.Refused(RuleBlast)
		return needsConfirm("%s concerns %d processes, and confirm is %d: nothing was done", verb, n, op.Confirm)
	}
	if op.Confirm == n {
		return nil
	}

	// A large number, or a large part of the fleet, must be confirmed.
	b := &g.o.Blast
	if b.Targets > 0 && n > b.Targets {
		g.o.Refused(RuleBlast)
		return needsConfirm("%s concerns %d processes, more than %d: repeat it with confirm %d if that is meant",
			verb, n, b.Targets, n)
	}

	if b.Percent > 0 && n >= blastFloor {
		if all := visible(); n*100 > b.Percent*all {
			g.o.Refused(RuleBlast)
			return needsConfirm("%s concerns %d processes, more than %d %% of the %d that you see: "+
				"repeat it with confirm %d if that is meant", verb, n, b.Percent, all, n)
		}
	}

	return nil
}

// needsConfirm is an error about the field confirm.
func needsConfirm(format string, args ...any) error {
	e := gozzard.Errorf(gozzard.ErrInvalid, format, args...)
	return &gozzard.Error{Kind: e.Kind, Faults: []gozzard.Fault{{Path: "confirm", Text: e.Message}},
		Refusal: overLimit(e.Message)}
}

// destructiveActions are the actions that count: they end a process, interrupt it, or leave it without supervision.
var destructiveActions = []gozzard.Action{gozzard.ActionStop, gozzard.ActionKill, gozzard.ActionRestart,
	gozzard.ActionReload, gozzard.ActionUnhost, gozzard.ActionUnregister}

// destructiveWords is what texts call them.
const destructiveWords = "stop, kill, restart, reload, unmanage or unregister"

// DestructiveActions are the actions that count against the quota.
func DestructiveActions() []gozzard.Action { return destructiveActions }

// isDestructive reports whether an action counts.
func isDestructive(a gozzard.Action) bool {
	for _, d := range destructiveActions {
		if a == d {
			return true
		}
	}
	return false
}

// destructive counts the processes that an operation names for such actions.
func destructive(op *gozzard.Operation) (n int, verb string) {
	for i := range op.Items {
		if it := &op.Items[i]; isDestructive(it.Action) && it.Refused == nil {
			n += len(it.Targets)
			verb = it.Action.String()
		}
	}
	return n, verb
}
