package enrol

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Of one rule, this many rejections are logged at once, and then one in each pause. Strangers can cause rejections, and
// they must not fill the log.
const (
	logBurst = 20
	logPause = 3 * time.Second
)

// logBudget limits how many rejections are logged. The zero value is ready. There are only a few rules.
type logBudget struct {
	mu    sync.Mutex
	rules map[string]*ruleBudget
}

type ruleBudget struct {
	limiter *rate.Limiter
	hidden  int // rejections that were not logged since the last one that was
}

// allow reports whether a rejection may be logged, and how many were not logged before it.
func (b *logBudget) allow(rule string, now time.Time) (hidden int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	l := b.rules[rule]
	if l == nil {
		if b.rules == nil {
			b.rules = map[string]*ruleBudget{}
		}
		l = &ruleBudget{limiter: rate.NewLimiter(rate.Every(logPause), logBurst)}
		b.rules[rule] = l
	}

	if !l.limiter.AllowN(now, 1) {
		l.hidden++
		return 0, false
	}
	hidden, l.hidden = l.hidden, 0
	return hidden, true
}
