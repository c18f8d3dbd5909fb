package ratelimit

import (
	"time"

	"github.com/gozzard/gozzard"
)

// Charge is what a request counts against the quotas of an hour where several servers share a record: a caller that goes round
// the servers must not have the quota of each. The record counts it in the transaction that stores the request, so it costs no
// further one, and what is not stored does not count.
type Charge struct {
	List []gozzard.Spending

	above []func(wait time.Duration) error // the error of each
}

// Above is the error of a request for which one of the quotas has too little left.
func (c *Charge) Above(over *gozzard.OverQuota) error { return c.above[over.Index](over.Wait) }

func (c *Charge) add(s gozzard.Spending, above func(wait time.Duration) error) {
	if s.N > 0 && s.Quota > 0 {
		c.List, c.above = append(c.List, s), append(c.above, above)
	}
}

// Charge is Spend and SpendDefinitions for quotas that the record counts. bytes are those of new definitions.
func (g *Guard) Charge(op *gozzard.Operation, n, rejected, bytes int, above Above) *Charge {
	c, admin := g.ChargeDefinitions(op.Caller, bytes), op.Caller.Rights.All()

	// Count what is rejected.
	if app := op.Caller.App; !admin && above != AboveCount {
		c.add(gozzard.Spending{Name: RuleRefused + "/" + app, N: rejected, Quota: g.o.RefusedQuota},
			func(wait time.Duration) error { return g.aboveRefused(app, rejected, wait) })
	}

	// Count what is destructive.
	for _, h := range g.o.Blast.holders(op.Caller) {
		quota := g.o.Blast.quota(h)
		c.add(gozzard.Spending{Name: RuleQuota + "/" + string(h), N: n, Quota: quota, Force: above.accepts(op, admin)},
			func(wait time.Duration) error { return g.aboveQuota(op, h, n, quota, above, wait) })
	}
	return c
}

// ChargeDefinitions is SpendDefinitions for a quota that the record counts.
func (g *Guard) ChargeDefinitions(caller gozzard.Caller, bytes int) *Charge {
	c := &Charge{}
	if !caller.Rights.All() {
		c.add(gozzard.Spending{Name: RuleDefinitions + "/" + caller.App, N: bytes, Quota: g.o.definitionBytes()},
			func(wait time.Duration) error { return g.aboveDefinitions(caller.App, bytes, wait) })
	}
	return c
}
