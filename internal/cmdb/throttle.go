package cmdb

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gozzard/gozzard/internal/pace"
)

// throttle delays all calls after a refusal, because the rate limit is for the app.
type throttle struct {
	mu    sync.Mutex
	until time.Time
}

// pause delays the next calls.
func (t *throttle) pause(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until := time.Now().Add(d); until.After(t.until) {
		t.until = until
	}
}

// wait returns when a call may begin.
func (t *throttle) wait(ctx context.Context) error {
	for {
		t.mu.Lock()
		left := time.Until(t.until)
		t.mu.Unlock()
		if left <= 0 {
			return ctx.Err()
		}
		if err := pace.Sleep(ctx, left); err != nil {
			return err
		}
	}
}

// backOff is the pause after n errors: it doubles up to maxPause. A random part is taken off, so that many callers do
// not return at the same time.
func backOff(first time.Duration, times int) time.Duration {
	d := first
	for range times - 1 {
		if d = min(2*d, maxPause); d == maxPause {
			break
		}
	}
	return spread(d)
}

// spread takes off a random part, up to a quarter.
func spread(d time.Duration) time.Duration {
	if d < 4 {
		return d
	}
	return d - rand.N(d/4) // only spreads load
}
