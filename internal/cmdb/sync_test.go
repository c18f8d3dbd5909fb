package cmdb_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/cmdb"
	"github.com/gozzard/gozzard/internal/topology"
)

// reader makes a Reader of a function.
type reader func(ctx context.Context, biz int) (*topology.Business, error)

func (r reader) Read(ctx context.Context, biz int) (*topology.Business, error) { return r(ctx, biz) }

var admin = gozzard.Caller{App: "bk_gsekit", User: "admin"}

// TestFlush: a business that was read is applied for the caller, and an incomplete read is never applied.
func TestFlush(t *testing.T) {
	s := newStandIn(t)
	s.fill(700)
	var applied []*topology.Business
	y := cmdb.NewSync(cmdb.SyncOptions{Reader: s.client(t),
		Apply: func(_ context.Context, caller gozzard.Caller, b *topology.Business) error {
			if caller != admin {
				t.Errorf("applied by %v", caller)
			}
			applied = append(applied, b)
			return nil
		}})

	if err := y.Flush(t.Context(), admin, 2); err != nil || len(applied) != 1 || countProcesses(applied[0]) != 700 {
		t.Fatalf("%d applied, %v", len(applied), err)
	}

	s.before = func(c call, w http.ResponseWriter) bool {
		if c.start > 0 {
			answer(w, http.StatusOK, 1199014, "database", nil)
		}
		return c.start > 0
	}

	if err := y.Flush(t.Context(), admin, 2); err == nil || len(applied) != 1 {
		t.Fatalf("half a business: %d applied, %v", len(applied), err)
	}
}

// TestApplyFails: the error of Apply is the error of the flush.
func TestApplyFails(t *testing.T) {
	refused := gozzard.Errorf(gozzard.ErrConflict, "process 3 is hosted")
	y := cmdb.NewSync(cmdb.SyncOptions{
		Reader: reader(func(context.Context, int) (*topology.Business, error) { return &topology.Business{}, nil }),
		Apply:  func(context.Context, gozzard.Caller, *topology.Business) error { return refused },
	})
	if err := y.Flush(t.Context(), admin, 2); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

// TestShared: many concurrent flushes make two reads: the one in progress, and one more that sees what the first may
// have missed. Businesses do not wait for each other.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads, atOnce, most atomic.Int32
		y := cmdb.NewSync(cmdb.SyncOptions{
			Reader: reader(func(_ context.Context, biz int) (*topology.Business, error) {
				if biz != 2 {
					return &topology.Business{ID: biz}, nil
				}
				reads.Add(1)
				if n := atOnce.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Second)
				atOnce.Add(-1)
				return &topology.Business{ID: biz}, nil
			}),
			Apply: func(context.Context, gozzard.Caller, *topology.Business) error { return nil },
		})

		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := y.Flush(t.Context(), admin, 2); err != nil {
					t.Error(err)
				}
			})
		}

		synctest.Wait()
		begin := time.Now()
		if err := y.Flush(t.Context(), admin, 3); err != nil || time.Since(begin) != 0 {
			t.Errorf("another business waited: %v", err)
		}

		wg.Wait()

		if reads.Load() != 2 || most.Load() != 1 {
			t.Errorf("%d reads, %d at a time", reads.Load(), most.Load())
		}
		if err := y.Flush(t.Context(), admin, 2); err != nil || reads.Load() != 3 {
			t.Errorf("%d reads, %v", reads.Load(), err)
		}
	})
}

// TestGone: when a caller stops waiting for a read, the read goes on for the other callers.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		y := cmdb.NewSync(cmdb.SyncOptions{
			Reader: reader(func(ctx context.Context, biz int) (*topology.Business, error) {
				reads.Add(1)
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(time.Second):
					return &topology.Business{ID: biz}, nil
				}
			}),
			Apply: func(context.Context, gozzard.Caller, *topology.Business) error { return nil },
		})

		flush := func(ctx context.Context) chan error {
			done := make(chan error, 1)
			go func() { done <- y.Flush(ctx, admin, 2) }()
			synctest.Wait()
			return done
		}

		ctx, cancel := context.WithCancel(t.Context())
		first := flush(t.Context())
		second := flush(ctx) // makes the next read
		third := flush(t.Context())
		cancel()

		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("the one that left got %v", err)
		}
		if err := <-third; err != nil {
			t.Errorf("the one that waited got %v", err)
		}
		if err := <-first; err != nil || reads.Load() != 2 {
			t.Errorf("%d reads, %v", reads.Load(), err)
		}
	})
}

// TestRun: the businesses are read one after the other, spread over the interval. One that fails is tried again soon,
// then less and less often.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var mu sync.Mutex
		at := map[int][]time.Duration{}
		y := cmdb.NewSync(cmdb.SyncOptions{
			Businesses: []int{2, 3}, Interval: 10 * time.Minute, Retry: 30 * time.Second,
			Caller: gozzard.Caller{App: "gozzard"},
			Reader: reader(func(_ context.Context, biz int) (*topology.Business, error) {
				mu.Lock()
				defer mu.Unlock()
				at[biz] = append(at[biz], time.Since(begin))
				if biz == 3 && len(at[biz]) <= 6 {
					return nil, errors.New("down")
				}
				return &topology.Business{ID: biz}, nil
			}),
			Apply: func(context.Context, gozzard.Caller, *topology.Business) error { return nil },
		})

		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()

		if err := y.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if at[2][0] != 0 || at[3][0] != 5*time.Minute {
			t.Errorf("began at %v and %v", at[2][0], at[3][0])
		}
		if n := len(at[2]); n < 17 || n > 20 {
			t.Errorf("%d reads in three hours", n)
		}

		for i, secs := range []int{22, 45, 90, 180, 360, 420, 540} {
			least := time.Duration(secs) * time.Second
			if wait := at[3][i+1] - at[3][i]; wait < least || wait > 2*least {
				t.Errorf("pause %d was %v, want %v to %v", i+1, wait, least, 2*least)
			}
		}
	})
}

// TestRunSingle: Run works with one business, and ends at once without any.
func TestRunSingle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		o := cmdb.SyncOptions{
			Reader: reader(func(context.Context, int) (*topology.Business,
				error) {
				reads.Add(1)
				return &topology.Business{}, nil
			}),
			Apply: func(context.Context, gozzard.Caller, *topology.Business) error { return nil },
		}

		if err := cmdb.NewSync(o).Run(t.Context()); err != nil || reads.Load() != 0 {
			t.Errorf("%d reads, %v", reads.Load(), err)
		}

		o.Businesses = []int{2}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()

		if err := cmdb.NewSync(o).Run(ctx); err != nil || reads.Load() < 5 {
			t.Errorf("%d reads, %v", reads.Load(), err)
		}
	})
}
