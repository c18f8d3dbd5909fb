package ratelimit

import (
	"fmt"
	"math"
	"time"

	"github.com/gozzard/gozzard"
)

// definitionBytes is the quota of definitions in bytes; 0: no limit.
func (o *Options) definitionBytes() int { return max(0, min(o.DefinitionQuota, math.MaxInt>>20)) << 20 }

// SpendDefinitions counts bytes of definitions that an app is about to bring to the record and that are new or changed.
// They count for the app, whatever user and API they come from. undo takes the count back.
func (g *Guard) SpendDefinitions(c gozzard.Caller, bytes int) (undo func(), err error) {
	quota, now := g.o.definitionBytes(), g.o.Now()
	if quota == 0 || bytes == 0 || c.Rights.All() {
		return func() {}, nil
	}
	if g.defined.allow(c.App, bytes, now) {
		return func() { g.defined.giveBack(c.App, bytes, g.o.Now()) }, nil
	}
	return nil, g.aboveDefinitions(c.App, bytes, g.defined.wait(c.App, bytes, now))
}

// aboveDefinitions is the error of a request that brings too many bytes.
func (g *Guard) aboveDefinitions(app string, bytes int, wait time.Duration) error {
	text := fmt.Sprintf("the request brings %s of new or changed definitions, and app %s may bring %d MiB an hour",
		amount(bytes), app, g.o.DefinitionQuota)
	if bytes > g.o.definitionBytes() { // waiting does not help
		g.o.Refused(RuleDefinitions)
		return &gozzard.Error{Kind: gozzard.ErrRateLimited, Retry: time.Hour, Refusal: overLimit(text),
			Message: text + ": bring fewer or smaller ones at once, or have the quota raised (--definition-quota of the server)"}
	}
	return gozzard.Refused(g.reject(RuleDefinitions, wait, text), overLimit(text))
}

// RememberDefinitions counts bytes that an app brought before the server started. The calls are in the order of time.
func (g *Guard) RememberDefinitions(app string, bytes int, at time.Time) {
	if g.o.definitionBytes() > 0 {
		g.defined.spend(app, bytes, at)
	}
}

// amount is a number of bytes as texts have it.
func amount(n int) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
