package history

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// TestAtOnce: measurements, queries and removals come at the same time, while the store writes.
func TestAtOnce(t *testing.T) {
	const steps = maxWaiting * blockSteps // more may be dropped: half an hour of measurements comes within milliseconds here
	s, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var clock sync.Mutex
	now := time.Unix(1_800_000_000, 0)
	s.now = func() time.Time {
		clock.Lock()
		defer clock.Unlock()
		return now
	}

	ctx, cancel := context.WithCancel(t.Context())
	var running, work sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	work.Go(func() {
		for i := range steps {
			list := []Sample{busy(1, 1), busy(2, 1), busy(3, 1)}
			for n := range list {
				list[n].Name = fmt.Sprint("p", n)
			}
			s.Add(list)
			if i%20 == 0 {
				s.Remove(list[1].Key)
			}
			clock.Lock()
			now = now.Add(10 * time.Second)
			clock.Unlock()
		}
	})
	for range 2 {
		work.Go(func() {
			for n := range 200 {
				q := gozzard.HistoryQuery{Key: gozzard.Key{Namespace: "shop", Name: fmt.Sprint("p", n%3)},
					From: 1_799_999_000, To: 1_900_000_000, Points: 100}
				if _, err := s.Read(q); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	cancel()
	running.Wait()

	// Nothing of the process that stayed is missing after the end.
	h, err := s.Read(gozzard.HistoryQuery{Key: gozzard.Key{Namespace: "shop", Name: "p0"}, From: 1_800_000_000,
		To: 1_800_000_000 + 10*steps, Points: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if n := measured(h); n != steps {
		t.Errorf("%d of %d steps", n, steps)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
