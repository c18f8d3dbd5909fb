package ratelimit

import (
	"fmt"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// holder has a quota: an app by its code, or a user as user:NAME. The app of a user without an app has the same name.
type holder string

// userHolder is the beginning of the name of a user.
const userHolder = "user:"

// holders are the app and the user of a caller. An app with a quota of its own has that one only: it was given for
// what the app does for its users. A name that an app only claims does not count: by claiming it, one app could use up
// the quota of a user of another app.
func (b *Blast) holders(c gozzard.Caller) []holder {
	app, user := holder(c.App), holder(userHolder+c.User)
	if _, own := b.ownQuota(c.App); own || c.User == "" || app == user || c.Asserted {
		return []holder{app}
	}
	return []holder{app, user}
}

// quota is the number per hour of an app or a user.
func (b *Blast) quota(h holder) int {
	if n, ok := b.ownQuota(string(h)); ok {
		return n
	}
	return b.Quota
}

// Above says what becomes of an operation that exceeds the quota.
type Above int

// The ways.
const (
	AboveReject  Above = iota // it is rejected: its caller cannot confirm
	AboveConfirm              // it is accepted if its caller confirmed the number
	AboveCount                // it is accepted: it completes a change that was checked before
)

// accepts reports whether an operation is accepted above the quota.
func (a Above) accepts(op *gozzard.Operation, admin bool) bool {
	return a == AboveCount || a == AboveConfirm && op.Confirm != 0 || a == AboveReject && admin
}

// Spend counts an operation that is about to be recorded. It ends, interrupts or leaves n processes. rejected attempts
// of it are recorded although nothing is done. undo takes the count back, if the operation is not recorded after all.
func (g *Guard) Spend(op *gozzard.Operation, n, rejected int, above Above) (undo func(), err error) {
	now, admin := g.o.Now(), op.Caller.Rights.All()

	// Count what is rejected.
	if q := g.o.RefusedQuota; q > 0 && rejected > 0 && !admin && above != AboveCount {
		if !g.refused.allow(op.Caller.App, rejected, now) {
			return nil, g.aboveRefused(op.Caller.App, rejected, g.refused.wait(op.Caller.App, min(rejected, q), now))
		}
	}

	// Count what is destructive.
	if n == 0 {
		return func() {}, nil
	}
	if err := g.spendQuota(op, n, above, admin, now); err != nil {
		return nil, err
	}
	return func() { g.giveBack(op.Caller, n) }, nil
}

// aboveRefused is the error of an operation with too many attempts that are rejected.
func (g *Guard) aboveRefused(app string, rejected int, wait time.Duration) error {
	text := fmt.Sprintf("%d entries of the request name hosts that are not known or not permitted, and of app %s "+
		"at most %d an hour are recorded", rejected, app, g.o.RefusedQuota)
	if rejected > g.o.RefusedQuota { // waiting does not help
		g.o.Refused(RuleRefused)
		return &gozzard.Error{Kind: gozzard.ErrRateLimited, Retry: time.Hour, Refusal: overLimit(text),
			Message: text + ": send fewer of them in one request"}
	}
	return gozzard.Refused(g.reject(RuleRefused, wait, text), overLimit(text))
}

// spendQuota counts processes against the quotas of the app and the user: against both or none.
func (g *Guard) spendQuota(op *gozzard.Operation, n int, above Above, admin bool, now time.Time) error {
	free := above.accepts(op, admin)
	list := g.o.Blast.holders(op.Caller)
	g.spending.Lock()
	defer g.spending.Unlock()

	for _, h := range list {
		quota := g.o.Blast.quota(h)
		if free || quota <= 0 || g.quotas.has(h, n, now) {
			continue
		}
		return g.aboveQuota(op, h, n, quota, above, g.quotas.wait(h, n, now))
	}

	for _, h := range list {
		if g.o.Blast.quota(h) > 0 {
			g.quotas.spend(h, n, now)
		}
	}
	return nil
}

// aboveQuota is the error of an operation that exceeds the quota of its app or user.
func (g *Guard) aboveQuota(op *gozzard.Operation, h holder, n, quota int, above Above, wait time.Duration) error {
	_, verb := destructive(op)
	name := "app " + string(h)
	if user, ok := strings.CutPrefix(string(h), userHolder); ok {
		name = "user " + user
	}
	text := fmt.Sprintf(textsOf(op).quota, verb, n, name, destructiveWords, quota)

	switch {
	case above == AboveConfirm:
		g.o.Refused(RuleQuota)
		named, _ := destructive(op)
		return needsConfirm("%s: repeat it with confirm %d if that is meant", text, named)
	case n > quota: // waiting does not help
		g.o.Refused(RuleQuota)
		return &gozzard.Error{Kind: gozzard.ErrRateLimited, Retry: time.Hour, Refusal: overLimit(text),
			Message: text + ": ask for fewer at once, or have its quota raised"}
	}
	return gozzard.Refused(g.reject(RuleQuota, wait, text), overLimit(text))
}

// giveBack takes the count of an operation back.
func (g *Guard) giveBack(c gozzard.Caller, n int) {
	g.spending.Lock()
	defer g.spending.Unlock()
	for _, h := range g.o.Blast.holders(c) {
		if g.o.Blast.quota(h) > 0 {
			g.quotas.giveBack(h, n, g.o.Now())
		}
	}
}

// Remember counts an operation that was recorded before the server started. The calls are in the order of time.
func (g *Guard) Remember(c gozzard.Caller, n int, at time.Time) {
	g.spending.Lock()
	defer g.spending.Unlock()
	for _, h := range g.o.Blast.holders(c) {
		if g.o.Blast.quota(h) > 0 {
			g.quotas.spend(h, n, at)
		}
	}
}

// overLimit is the row of the audit about a request that a limit rejected.
func overLimit(text string) gozzard.Refusal {
	return gozzard.Refusal{Act: "refused:limit", About: text}
}
