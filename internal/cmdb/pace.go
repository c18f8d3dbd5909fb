package cmdb

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// pace holds back all calls together once one was refused: a limit is one of the app, not of a call.
type pace struct {
	mu    sync.Mutex
	until time.Time
}

// pause lets no call begin for a while.
func (p *pace) pause(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.until) {
		p.until = until
	}
}

// wait returns when calls may begin.
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

// backOff doubles a pause with each time, up to maxPause, and takes a random part off so that many do not come back
// at once.
func backOff(first time.Duration, times int) time.Duration {
	d := first
	for range times - 1 {
		if d = min(2*d, maxPause); d == maxPause {
			break
		}
	}
	return spread(d)
}

// spread takes off up to a quarter.
func spread(d time.Duration) time.Duration {
	if d < 4 {
		return d
	}
	return d - rand.N(d/4) // only spreads load
}
