package ratelimit

import (
	"github.com/gozzard/gozzard"
)

// blastFloor is the number of processes from which on Percent counts. Two of five processes are more than 30 %, but
// such a small number needs no confirmation.
const blastFloor = 50

// Blast limits how many processes a caller may stop, kill, restart, reload, unmanage or unregister, how many files it may
// write, and on how many hosts it may run scripts or restart the agent.
//
// A caller of the native API must confirm the number of processes if they are more than Targets, or more than Percent
// of all processes that it can see. Files and scripts are counted in the same way, one on each host, and compared with the
// hosts that it can see. Beside that each app and each user has a Quota per hour, over all APIs together, so
// that small steps and other APIs do not get around it. Above the quota a caller of the native API must confirm the
// number. Callers of the BlueKing APIs cannot confirm anything, so they are rejected. An app that may do everything on
// the whole fleet is not rejected there, because it could remove every limit anyway.
type Blast struct {
	Targets int
	Percent int
	Quota   int            // processes, files and scripts per hour of one app, and of one user
	Quotas  map[string]int // of apps and users (user:NAME) with another quota; 0: no quota

	Platform map[string]bool // apps with PlatformQuota, unless Quotas has them
}

// Visible counts what a caller can see. A part of all is a part of one of these.
type Visible struct {
	Processes, Hosts func() int
}

// Operation checks an operation of the native API before it is accepted: the caller must confirm a large number.
func (g *Guard) Operation(op *gozzard.Operation, visible Visible) error {
	n, verb := destructive(op)
	if n == 0 {
		return nil
	}
	t := textsOf(op)

	// A confirmed number must be right.
	if op.Confirm != 0 && op.Confirm != n {
		g.o.Refused(RuleBlast)
		return needsConfirm(t.other, verb, n, op.Confirm)
	}
	if op.Confirm == n {
		return nil
	}

	// A large number, or a large part of the fleet, must be confirmed.
	b := &g.o.Blast
	if b.Targets > 0 && n > b.Targets {
		g.o.Refused(RuleBlast)
		return needsConfirm(t.many, verb, n, b.Targets, n)
	}

	if b.Percent > 0 && n >= blastFloor {
		see := visible.Processes
		if t != processTexts {
			see = visible.Hosts
		}
		if all := see(); n*100 > b.Percent*all {
			g.o.Refused(RuleBlast)
			return needsConfirm(t.part, verb, n, b.Percent, all, n)
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

// texts are what a caller reads about a number that is too large. Each is written out, because each is translated.
type texts struct {
	other, many, part, quota string
}

var (
	processTexts = &texts{
		other: "%s concerns %d processes, and confirm is %d: nothing was done",
		many:  "%s concerns %d processes, more than %d: repeat it with confirm %d if that is meant",
		part: "%s concerns %d processes, more than %d %% of the %d that you see: " +
			"repeat it with confirm %d if that is meant",
		quota: "%s concerns %d processes, and %s may %s %d an hour",
	}
	fileTexts = &texts{
		other: "%s concerns %d files, and confirm is %d: nothing was done",
		many:  "%s concerns %d files, more than %d: repeat it with confirm %d if that is meant",
		part: "%s concerns %d files, more than %d %% of the %d hosts that you see: " +
			"repeat it with confirm %d if that is meant",
		quota: "%s concerns %d files, and %s may %s %d an hour",
	}
	scriptTexts = &texts{
		other: "%s runs on %d hosts, and confirm is %d: nothing was done",
		many:  "%s runs on %d hosts, more than %d: repeat it with confirm %d if that is meant",
		part: "%s runs on %d hosts, more than %d %% of the %d that you see: " +
			"repeat it with confirm %d if that is meant",
		quota: "%s runs on %d hosts, and %s may %s %d an hour",
	}
)

// textsOf are the texts about an operation. One request never has items of different kinds.
func textsOf(op *gozzard.Operation) *texts {
	for i := range op.Items {
		switch a := op.Items[i].Action; {
		case a.OnFile():
			return fileTexts
		case a == gozzard.ActionScript || a.OnAgent():
			return scriptTexts
		}
	}
	return processTexts
}

// destructiveActions are the actions that count: they end a process, interrupt it, leave it without supervision, replace a
// file, do whatever a script does, or interrupt the agent.
var destructiveActions = []gozzard.Action{gozzard.ActionStop, gozzard.ActionKill, gozzard.ActionRestart,
	gozzard.ActionReload, gozzard.ActionUnhost, gozzard.ActionUnregister, gozzard.ActionConfigure,
	gozzard.ActionScript, gozzard.ActionTransfer, gozzard.ActionRestartAgent}

// destructiveWords is what texts call them.
const destructiveWords = "stop, kill, restart, reload, unmanage, unregister, configure, script, transfer or restart-agent"

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

// destructive counts the processes, files or scripts that an operation names for such actions.
func destructive(op *gozzard.Operation) (n int, verb string) {
	for i := range op.Items {
		if it := &op.Items[i]; isDestructive(it.Action) && it.Refused == nil {
			n += len(it.Targets)
			verb = it.Action.String()
		}
	}
	return n, verb
}
