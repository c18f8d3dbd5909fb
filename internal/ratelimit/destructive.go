package ratelimit

import (
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
)

// blastFloor is the number of processes from which on Percent counts. Two of five processes are more than 30 %, but
// such a small number needs no confirmation.
const blastFloor = 50

// Blast limits how many processes a caller may stop, kill or restart at once.
//
// A caller of the native API must confirm the number of processes if they are more than Targets, or more than Percent
// of all processes that it can see. Callers of the BlueKing APIs cannot confirm anything, so each of their apps has a
// Quota per hour. An app that may do everything on the whole fleet has no quota, because it could remove every limit
// anyway.
type Blast struct {
	Targets int
	Percent int
	Quota   int            // processes per hour of one app
	Quotas  map[string]int // of apps with another quota; 0: no quota
}

func (b *Blast) quota(app string) int {
	if n, ok := b.Quotas[app]; ok {
		return n
	}
	return b.Quota
}

// Operation checks an operation before it is accepted. native: the caller can confirm the number. visible counts the
// processes that the caller can see.
func (g *Guard) Operation(op *gozzard.Operation, native bool, visible func() int) error {
	n, verb := destructive(op)
	if n == 0 {
		return nil
	}
	if !native {
		return g.spendQuota(op, n, verb)
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
		Refusal: gozzard.Refusal{Act: "refused:limit", About: e.Message}}
}

// spendQuota counts processes against the quota of the app.
func (g *Guard) spendQuota(op *gozzard.Operation, n int, verb string) error {
	app, now := op.Caller.App, g.o.Now()
	quota := g.o.Blast.quota(app)
	if quota <= 0 || op.Caller.Rights.All() || g.quotas.allow(app, n, now) {
		return nil
	}

	text := fmt.Sprintf("%s concerns %d processes, and app %s may stop, kill or restart %d an hour",
		verb, n, app, quota)
	if n > quota { // waiting does not help
		g.o.Refused(RuleQuota)
		return &gozzard.Error{
			Kind: gozzard.ErrRateLimited, Retry: time.Hour, Refusal: gozzard.Refusal{Act: "refused:limit", About: text},
			Message: text + ": ask for fewer at once, or have its quota raised",
		}
	}
	return gozzard.Refused(g.reject(RuleQuota, g.quotas.wait(app, n, now), text),
		gozzard.Refusal{Act: "refused:limit", About: text})
}

// destructive counts the processes that an operation stops, kills or restarts.
func destructive(op *gozzard.Operation) (n int, verb string) {
	for i := range op.Items {
		switch it := &op.Items[i]; it.Action {
		case gozzard.ActionStop, gozzard.ActionKill, gozzard.ActionRestart:
			if it.Refused == nil {
				n += len(it.Targets)
				verb = it.Action.String()
			}
		}
	}
	return n, verb
}
