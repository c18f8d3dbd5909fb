package cmdb

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// pace delays all calls after a refusal, because the rate limit is for the app.
type pace struct {
	mu    sync.Mutex
	until time.Time
}

// pause delays the next calls.
func (p *pace) pause(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.until) {
		p.until = until
	}
}

// wait returns when a call may begin.
func (p *pace) wait(ctx context.Context) error {
	for {
		p.mu.Lock()
		left := time.Until(p.until)
		p.mu.Unlock()
		if left <= 0 {
			return ctx.Err()
		}
		if err := sleep(ctx, left); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
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
