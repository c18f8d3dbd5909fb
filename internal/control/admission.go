package control

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/gozzard/gozzard"
)

const (
	// One agent opens sessions as fast as its own rules let it at worst; whoever is faster takes nothing away from
	// the others.
	helloPerAgent = 10
	helloBurst    = 50

	admissionSweep = 4096 // agents, before those that are quiet are looked for
)

// admission lets so many sessions be opened in a second. Opening one costs a commit, and often a whole report of
// its host. An agent that is not let in hears nothing and says HELLO again, ever more rarely and at random times,
// so a fleet that comes back all at once is spread out.
type admission struct {
	all *rate.Limiter

	mu    sync.Mutex
	each  map[gozzard.AgentID]*rate.Limiter
	sweep int
}

// newAdmission makes one for sessions a second; below 0 for any number.
func newAdmission(perSecond float64) *admission {
	limit := rate.Limit(perSecond)
	if perSecond < 0 {
		limit = rate.Inf
	}
	return &admission{all: rate.NewLimiter(limit, max(1, int(perSecond))), each: map[gozzard.AgentID]*rate.Limiter{},
		sweep: admissionSweep}
}

// refuses names the rule by which a HELLO has to wait, "" for none.
func (a *admission) refuses(from gozzard.AgentID, now time.Time) (rule string) {
	switch {
	case !a.of(from, now).AllowN(now, 1):
		return "hello_agent_rate"
	case !a.all.AllowN(now, 1):
		return "hello_rate"
	}
	return ""
}

func (a *admission) of(from gozzard.AgentID, now time.Time) *rate.Limiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.each[from]
	if l == nil {
		if len(a.each) >= a.sweep {
			for id, old := range a.each {
				if old.TokensAt(now) >= helloBurst {
					delete(a.each, id)
				}
			}
			a.sweep = max(admissionSweep, 2*len(a.each))
		}
		l = rate.NewLimiter(helloPerAgent, helloBurst)
		a.each[from] = l
	}

	return l
}
