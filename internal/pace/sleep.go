package pace

import (
	"context"
	"time"
)

// Sleep waits for a time. If ctx ends before, it returns why.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
