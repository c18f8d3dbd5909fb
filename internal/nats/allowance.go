package nats

import (
	"time"

	"golang.org/x/time/rate"
)

// allowance is how much of one thing, messages or bytes, an agent may still send: the tokens of a rate limiter, and a
// credit for answers that the server asked for. The credit is spent first.
type allowance struct {
	limiter *rate.Limiter // nil: no limit
	credit  int
}

func newAllowance(perSecond float64, burst int) allowance {
	if perSecond <= 0 {
		return allowance{}
	}
	return allowance{limiter: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// covers reports whether n can be spent and the given part of the burst is still left.
func (a *allowance) covers(n int, reserve float64, now time.Time) bool {
	return a.limiter == nil || a.available(now)-float64(n) >= reserve*float64(a.limiter.Burst())
}

// spend uses up n; the caller has asked covers.
func (a *allowance) spend(n int, now time.Time) {
	fromCredit := min(n, a.credit)
	a.credit -= fromCredit

	if a.limiter != nil {
		a.limiter.AllowN(now, n-fromCredit)
	}
}

// halfFull reports whether more than half of the burst is left.
func (a *allowance) halfFull(now time.Time) bool {
	return a.limiter == nil || a.available(now) > float64(a.limiter.Burst())/2
}

func (a *allowance) available(now time.Time) float64 {
	return float64(a.credit) + a.limiter.TokensAt(now)
}
