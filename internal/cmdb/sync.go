package cmdb

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/pace"
	"github.com/gozzard/gozzard/internal/topology"
)

// Reader reads a business completely.
type Reader interface {
	Read(ctx context.Context, biz int) (*topology.Business, error)
}

// SyncOptions say which businesses are read from CMDB, and when.
type SyncOptions struct {
	Reader     Reader
	Businesses []int          // read periodically; others only by Flush
	Caller     gozzard.Caller // of periodic reads
	Interval   time.Duration  // between two reads of a business; 0 means 10 min
	Retry      time.Duration  // after the first failed read, doubled with each up to Interval; 0 means 30 s
	Log        *slog.Logger

	// Apply writes a complete business to the record. It runs once at a time for each business.
	Apply func(ctx context.Context, caller gozzard.Caller, b *topology.Business) error
}

// Sync keeps businesses up to date with CMDB.
type Sync struct {
	o  SyncOptions
	mu sync.Mutex
	at map[int]*reads // by business
}

// reads are the running read of one business and the next one. A caller that comes during a read waits for the next:
// the running read may have missed the change that the caller wants to see.
type reads struct {
	now, next *pass
}

// pass is one read of a business.
type pass struct {
	done chan struct{} // closed when it has ended
	err  error
	gone bool // its caller went away before it ended
}

// NewSync makes a Sync.
func NewSync(o SyncOptions) *Sync {
	o.Interval = cmp.Or(o.Interval, 10*time.Minute)
	o.Retry = min(cmp.Or(o.Retry, 30*time.Second), o.Interval)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Sync{o: o, at: map[int]*reads{}}
}

// Run reads all businesses periodically until ctx ends. It begins at once with the first; the others follow in equal
// distances within the interval.
func (s *Sync) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for i, biz := range s.o.Businesses {
		offset := time.Duration(i) * (s.o.Interval / time.Duration(len(s.o.Businesses)))
		wg.Go(func() { s.readPeriodically(ctx, biz, offset) })
	}
	wg.Wait()
	return nil
}

// readPeriodically reads one business until ctx ends, after an error sooner.
func (s *Sync) readPeriodically(ctx context.Context, biz int, wait time.Duration) {
	failed := 0
	for pace.Sleep(ctx, wait) == nil {
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
			s.o.Log.Error("cannot sync a business from CMDB", "biz", biz, "err", err, "failed", failed, "again_in",
				wait)
			continue
		}
		failed = 0
		wait = s.o.Interval + rand.N(s.o.Interval/10+1) - s.o.Interval/20 // only spreads load
	}
}

// Flush reads a business now and applies it. Calls that come during a read of the business share the next read.
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

// enter returns the next read of a business. With mine the caller has to do it, after the read before.
func (s *Sync) enter(biz int) (p, before *pass, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.at[biz]
	if l == nil {
		l = &reads{now: &pass{done: make(chan struct{})}}
		s.at[biz] = l
		return l.now, nil, true
	}

	if l.next == nil {
		l.next = &pass{done: make(chan struct{})}
		return l.next, l.now, true
	}

	return l.next, nil, false
}

// do waits for the read before, then reads and applies the business.
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

	// Others that wait for this read do not get the end of its caller, nor that another server does its work now.
	p.err, p.gone = err, err != nil && (ctx.Err() != nil || lease.Check(ctx) != nil)
	return err
}

// leave ends a read and wakes the callers that wait for it.
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
	case l.next: // its caller went away before it began
		l.next = nil
	}
}
