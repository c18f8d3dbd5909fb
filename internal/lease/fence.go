package lease

import (
	"context"
	"errors"
	"time"
)

// ErrLost is in the error of a write with a Fence that another server has replaced. Nothing was recorded.
var ErrLost = errors.New("another server does this work by now")

// Lease is the right of one server to do some work, for a time.
type Lease struct {
	Fence
	Left time.Duration // by the clock of the database, when it was read; not above 0: any server may take it
}

// Fence proves that a server holds a lease. Number grows with every new holder, so the proof of a holder that was frozen
// meanwhile is rejected, whatever that holder believes.
type Fence struct {
	Name   string // of the work
	Holder string // id of a server
	Number int64
}

// fenceKey is the key of a Fence in a context.
type fenceKey struct{}

// WithFence makes every write to the record with this context succeed only while f is the fence of its lease. The store
// checks that in the transaction of the write.
func WithFence(ctx context.Context, f Fence) context.Context {
	return context.WithValue(ctx, fenceKey{}, f)
}

// FenceOf is the fence of a context. ok is false for work that needs no lease.
func FenceOf(ctx context.Context) (f Fence, ok bool) {
	f, ok = ctx.Value(fenceKey{}).(Fence)
	return f, ok
}
