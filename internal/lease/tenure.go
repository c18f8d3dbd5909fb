package lease

import (
	"context"
	"sync"
	"time"
)

// tenure is the time in which a server holds a lease without interruption.
type tenure struct {
	fence   Fence
	lost    chan struct{} // closed when it has ended
	running bool          // the work has begun; the Keeper guards it

	mu    sync.Mutex
	until time.Time   // has the monotonic clock, so it does not depend on the date
	timer *time.Timer // ends it if it is not renewed, also while the record does not answer
}

func newTenure(f Fence, until time.Time) *tenure {
	t := &tenure{fence: f, lost: make(chan struct{}), until: until}
	t.mu.Lock() // expire may be called at once
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(time.Until(until), t.expire)
	return t
}

// renew prolongs a tenure that has not ended.
func (t *tenure) renew(until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended() {
		return
	}
	t.until = until
	t.timer.Reset(time.Until(until))
}

// expire ends a tenure that was not renewed in time.
func (t *tenure) expire() {
	if t.check() != nil {
		t.lose()
	}
}

// lose ends a tenure. A second call does nothing.
func (t *tenure) lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	select {
	case <-t.lost:
	default:
		close(t.lost)
	}
}

// check returns an error if the tenure has ended. It looks at the clock: after a machine or a process was frozen, work may
// go on before the timer does.
func (t *tenure) check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended() {
		return ErrLost
	}
	return nil
}

// ended reports whether the tenure has ended. mu is held.
func (t *tenure) ended() bool {
	select {
	case <-t.lost:
		return true
	default:
		return !time.Now().Before(t.until)
	}
}

// run runs the work with a context that ends with the tenure and has its fence.
func (t *tenure) run(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-t.lost:
			cancel(ErrLost)
		case <-ctx.Done():
		}
	}()
	return f(context.WithValue(WithFence(ctx, t.fence), tenureKey{}, t))
}

type tenureKey struct{}

// Check returns an error if the context belongs to a lease that this server may have lost. Work that is about to have an
// effect outside the record calls it just before: the record cannot reject such an effect.
func Check(ctx context.Context) error {
	if t, ok := ctx.Value(tenureKey{}).(*tenure); ok {
		return t.check()
	}
	return nil
}
