package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Behaviour is what the hosts of a fleet have and do. The zero value is hosts on which nothing runs and nothing goes wrong.
type Behaviour struct {
	Processes  int           // that run on each host from the beginning, as if started by hand: see Process
	Churn      float64       // processes of the whole fleet that end by themselves in a second
	Reconnects float64       // hosts of the whole fleet that lose their connection in a second
	Failing    float64       // share of the hosts on which every command fails
	Slow       float64       // share of the hosts on which every command takes SlowBy longer
	SlowBy     time.Duration // at least 0
}

// Process is the i-th process that runs on every host from the beginning.
func Process(i int) gozzard.Key {
	return gozzard.Key{Namespace: "sim", Name: fmt.Sprintf("process-%02d", i)}
}

func (b *Behaviour) check() error {
	switch {
	case b.Processes < 0:
		return fmt.Errorf("cannot simulate %d processes on each host: use 0 or more", b.Processes)
	case !(b.Churn >= 0 && b.Reconnects >= 0) || math.IsInf(b.Churn+b.Reconnects, 0):
		return fmt.Errorf("cannot simulate %g ends of processes and %g lost connections in a second: use 0 or more", b.Churn, b.Reconnects)
	case !(b.Failing >= 0 && b.Failing <= 1 && b.Slow >= 0 && b.Slow <= 1):
		return fmt.Errorf("cannot simulate shares of %g failing and %g slow hosts: use 0 to 1, such as 0.05", b.Failing, b.Slow)
	case b.SlowBy < 0:
		return fmt.Errorf("cannot simulate hosts that are slower by %s: use 0 or more", b.SlowBy)
	}
	return nil
}

// apply gives the i-th host its part. The same number always has the same part, so that callers know what to expect.
func (b *Behaviour) apply(i int, h *Host) {
	h.fails = Chosen(i, b.Failing)
	if Chosen(i, b.Slow) {
		h.slowBy = b.SlowBy
	}
	for n := range b.Processes {
		h.Launch(Process(n))
	}
}

// Chosen reports whether the i-th host belongs to a share of the fleet. The chosen ones are spread evenly.
func Chosen(i int, share float64) bool {
	return math.Floor(float64(i+1)*share) > math.Floor(float64(i)*share)
}

// worsen makes a command what it is on a host that fails or is slow.
func (s *script) worsen(h *Host) {
	s.takes += h.slowBy
	if h.fails {
		*s = script{takes: s.takes, inert: true, exit: 1, output: "this simulated host fails"}
	}
}

// running are the hosts of a fleet that run.
type running struct {
	mu    sync.Mutex
	hosts []*Host
	links []*nats.Link
}

func (r *running) add(h *Host, l *nats.Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hosts, r.links = append(r.hosts, h), append(r.links, l)
}

// any is a random host that runs; nil: none does yet.
func (r *running) any() (*Host, *nats.Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.hosts) == 0 {
		return nil, nil
	}
	i := rand.IntN(len(r.hosts))
	return r.hosts[i], r.links[i]
}

// disturb ends processes and connections until ctx ends.
func (r *running) disturb(ctx context.Context, b *Behaviour) {
	var wg sync.WaitGroup
	wg.Go(func() {
		every(ctx, b.Churn, func() {
			if h, _ := r.any(); h != nil {
				h.endAny()
			}
		})
	})
	wg.Go(func() {
		every(ctx, b.Reconnects, func() {
			if _, l := r.any(); l != nil {
				_ = l.Reconnect() // it has no connection to lose
			}
		})
	})
	wg.Wait()
}

// every calls f so many times in a second, at random times.
func every(ctx context.Context, perSecond float64, f func()) {
	if perSecond <= 0 {
		return
	}
	for {
		wait := time.Duration(rand.ExpFloat64() / perSecond * float64(time.Second))
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			f()
		}
	}
}

// endAny ends one of the processes of the machine as if it had failed.
func (h *Host) endAny() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.procs { // in random order
		h.end(p, supervise.Exit{Known: true, Code: 1})
		return
	}
}
