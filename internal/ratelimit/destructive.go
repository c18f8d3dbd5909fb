package ratelimit

import (
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
)

// blastFloor is from where on the part of the fleet counts: of five processes two are more than 30 %, and nobody
// needs to be asked about that.
const blastFloor = 50

// Blast is how much may be stopped, killed or restarted at once.
//
// Who uses the native API says the number of processes again (confirm) when there are more than Targets of them, or
// more than Percent of all that he sees. Callers of the BlueKing APIs cannot be asked anything, so each of their
// apps has a Quota an hour; one that may do everything on the whole fleet has none, because it can lift every limit
// anyway.
type Blast struct {
	Targets int
	Percent int
	Quota   int            // processes an hour of one app
	Quotas  map[string]int // of apps that have another one; 0 is none
}

func (b *Blast) quota(app string) int {
	if n, ok := b.Quotas[app]; ok {
		return n
	}
	return b.Quota
}

// Operation looks at an operation before it is accepted. native says that its caller can be asked; visible counts
// the processes that he sees.
func (g *Guard) Operation(op *gozzard.Operation, native bool, visible func() int) error {
	n, verb := destructive(op)
	if n == 0 {
		return nil
	}
	if !native {
		return g.takeQuota(op, n, verb)
	}
	if op.Confirm != 0 && op.Confirm != n {
		g.o.Refused(RuleBlast)
		return confirm("%s concerns %d processes, and confirm is %d: nothing was done", verb, n, op.Confirm)
	}

	if op.Confirm == n {
		return nil
	}

	b := &g.o.Blast
	if b.Targets > 0 && n > b.Targets {
		g.o.Refused(RuleBlast)
		return confirm("%s concerns %d processes, more than %d: repeat it with confirm %d if that is meant", verb, n,
			b.Targets, n)
	}

	if b.Percent > 0 && n >= blastFloor {
		if all := visible(); n*100 > b.Percent*all {
			g.o.Refused(RuleBlast)
			return confirm("%s concerns %d processes, more than %d %% of the %d that you see: repeat it with confirm %d if that is meant", verb, n, b.Percent, all, n)
		}
	}

	return nil
}

func confirm(format string, args ...any) error {
	e := gozzard.Errorf(gozzard.ErrInvalid, format, args...)
	return &gozzard.Error{Kind: e.Kind, Faults: []gozzard.Fault{{Path: "confirm", Text: e.Message}}}
}

func (g *Guard) takeQuota(op *gozzard.Operation, n int, verb string) error {
	app, now := op.Caller.App, g.o.Now()
	quota := g.o.Blast.quota(app)
	if quota <= 0 || op.Caller.Rights.All() || g.quotas.take(app, n, now) {
		return nil
	}

	text := fmt.Sprintf("%s concerns %d processes, and app %s may stop, kill or restart %d an hour", verb, n, app,
		quota)

	if n > quota { // no wait is long enough
		g.o.Refused(RuleQuota)
		return &gozzard.Error{Kind: gozzard.ErrRateLimited,
			Message: text + ": ask for fewer at once, or have its quota raised", Retry: time.Hour}
	}

	return g.refuse(RuleQuota, g.quotas.wait(app, n, now), text)
}

// destructive counts the processes that an operation takes down.
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
