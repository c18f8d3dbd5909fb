package cmdb

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// Reader reads a business whole.
type Reader interface {
	Read(ctx context.Context, biz int) (*topology.Business, error)
}

// SyncOptions say what is kept like CMDB.
type SyncOptions struct {
	Reader     Reader
	Businesses []int          // read periodically; others only when somebody asks
	Caller     gozzard.Caller // of periodic reads
	Interval   time.Duration  // between two reads of a business; 0 is 10 min
	Retry      time.Duration  // after the first failed one, doubled with each up to Interval; 0 is 30 s
	Log        *slog.Logger

	// Apply makes the record like what was read. It is never called with half a business, and never twice at a time
	// for one.
	Apply func(ctx context.Context, caller gozzard.Caller, b *topology.Business) error
}

// Sync keeps businesses like CMDB says.
type Sync struct {
	o  SyncOptions
	mu sync.Mutex
	at map[int]*line // by business
}

// line is the reads of one business: the one under way, and the next, which all who came meanwhile wait for. A read
// that had begun already may have missed what they want to see.
type line struct {
	now, next *pass
}

// pass is one read.
type pass struct {
	done chan struct{} // closed at its end
	err  error
	gone bool // who made it did not wait for its end
}

// NewSync makes a sync.
func NewSync(o SyncOptions) *Sync {
	o.Interval = cmp.Or(o.Interval, 10*time.Minute)
	o.Retry = min(cmp.Or(o.Retry, 30*time.Second), o.Interval)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Sync{o: o, at: map[int]*line{}}
}

// Run reads all businesses again and again until it is told to end. They begin spread over the interval, the first
// at once.
func (s *Sync) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for i, biz := range s.o.Businesses {
		offset := time.Duration(i) * (s.o.Interval / time.Duration(len(s.o.Businesses)))
		wg.Go(func() { s.keep(ctx, biz, offset) })
	}
	wg.Wait()
	return nil
}

// keep reads one business again and again.
func (s *Sync) keep(ctx context.Context, biz int, wait time.Duration) {
	failed := 0
	for sleep(ctx, wait) == nil {
		err := s.Flush(ctx, s.o.Caller, biz)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failed++
			wait = s.o.Retry
			for n := 1; n < failed && wait < s.o.Interval; n++ {
				wait *= 2
			}
			wait = spread(min(wait, s.o.Interval))
			s.o.Log.Error("cannot sync a business from CMDB", "biz", biz, "error", err, "failed", failed, "again_in",
				wait)
			continue
		}
		failed = 0
		wait = s.o.Interval + rand.N(s.o.Interval/10+1) - s.o.Interval/20 // only spreads load
	}
}

// Flush reads a business now and applies it. Calls for one business that come while it is read share the next read.
func (s *Sync) Flush(ctx context.Context, caller gozzard.Caller, biz int) error {
	for {
		p, before, mine := s.enter(biz)
		if mine {
			return s.do(ctx, caller, biz, p, before)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.done:
		}
		if !p.gone {
			return p.err
		}
	}
}

// enter joins the next read of a business, or opens it: then it is the caller's to do, after the one before.
func (s *Sync) enter(biz int) (p, before *pass, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.at[biz]
	if l == nil {
		l = &line{now: &pass{done: make(chan struct{})}}
		s.at[biz] = l
		return l.now, nil, true
	}

	if l.next == nil {
		l.next = &pass{done: make(chan struct{})}
		return l.next, l.now, true
	}

	return l.next, nil, false
}

// do makes a read when the one before has ended, and tells all who wait for it.
func (s *Sync) do(ctx context.Context, caller gozzard.Caller, biz int, p, before *pass) error {
	defer s.leave(biz, p)

	if before != nil {
		select {
		case <-ctx.Done():
			p.gone = true
			return ctx.Err()
		case <-before.done:
		}
	}

	b, err := s.o.Reader.Read(ctx, biz)
	if err == nil {
		err = s.o.Apply(ctx, caller, b)
	}

	p.err, p.gone = err, err != nil && ctx.Err() != nil
	return err
}

// leave ends a read.
func (s *Sync) leave(biz int, p *pass) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(p.done)
	l := s.at[biz]
	switch p {
	case l.now:
		if l.now, l.next = l.next, nil; l.now == nil {
			delete(s.at, biz)
		}
	case l.next: // it gave up while it waited
		l.next = nil
	}
}
