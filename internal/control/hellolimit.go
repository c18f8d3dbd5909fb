package control

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/gozzard/gozzard"
)

const (
	// An agent that follows its own rules never opens sessions faster than this. A faster one takes nothing away from
	// the others.
	helloPerAgent = 10
	helloBurst    = 50

	limiterSweep = 4096 // agents, before the limiters of quiet agents are removed
)

// helloLimiter limits how many sessions are opened in a second. Opening one costs a commit, and often a whole report of
// its host. An agent over the limit gets no answer and says HELLO again, ever more rarely and at random times, so a
// fleet that comes back all at once is spread out.
type helloLimiter struct {
	all *rate.Limiter

	mu    sync.Mutex
	each  map[gozzard.AgentID]*rate.Limiter
	sweep int
}

// newHelloLimiter makes one for sessions a second; below 0 there is no limit.
func newHelloLimiter(perSecond float64) *helloLimiter {
	limit := rate.Limit(perSecond)
	if perSecond < 0 {
		limit = rate.Inf
	}
	return &helloLimiter{all: rate.NewLimiter(limit, max(1, int(perSecond))),
		each: map[gozzard.AgentID]*rate.Limiter{}, sweep: limiterSweep}
}

// rejects names the rule by which a HELLO has to wait, "" for none.
func (l *helloLimiter) rejects(from gozzard.AgentID, now time.Time) (rule string) {
	switch {
	case !l.of(from, now).AllowN(now, 1):
		return "hello_agent_rate"
	case !l.all.AllowN(now, 1):
		return "hello_rate"
	}
	return ""
}

// of is the limiter of one agent.
func (l *helloLimiter) of(from gozzard.AgentID, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.each[from]; known != nil {
		return known
	}

	if len(l.each) >= l.sweep {
		for id, old := range l.each {
			if old.TokensAt(now) >= helloBurst {
				delete(l.each, id)
			}
		}
		l.sweep = max(limiterSweep, 2*len(l.each))
	}

	made := rate.NewLimiter(helloPerAgent, helloBurst)
	l.each[from] = made
	return made
}
