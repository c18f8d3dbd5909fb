package ratelimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets bounds the memory that strangers can use: an address each.
const maxBuckets = 1 << 16

// buckets are token buckets by key. One that is full says nothing and is not kept.
type buckets[K comparable] struct {
	size func(K) (rate.Limit, int)

	mu  sync.Mutex
	all map[K]*rate.Limiter
}

func newBuckets[K comparable](size func(K) (rate.Limit, int)) *buckets[K] {
	return &buckets[K]{size: size, all: map[K]*rate.Limiter{}}
}

// take takes n tokens if they are there.
func (b *buckets[K]) take(key K, n int, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.all[key]
	if l == nil {
		if len(b.all) >= maxBuckets {
			b.sweep(now)
		}
		l = rate.NewLimiter(b.size(key))
		b.all[key] = l
	}
	return l.AllowN(now, n)
}

// wait is how long it takes until n tokens are there; 0 when they are.
func (b *buckets[K]) wait(key K, n int, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.all[key]
	if l == nil {
		return 0
	}
	lack := float64(n) - l.TokensAt(now)
	if lack <= 0 || l.Limit() <= 0 {
		return 0
	}
	return time.Duration(lack / float64(l.Limit()) * float64(time.Second))
}

// sweep forgets what is full again, and when that is not enough, half of the rest: whoever has that many addresses
// is not held by this.
func (b *buckets[K]) sweep(now time.Time) {
	for key, l := range b.all {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(b.all, key)
		}
	}
	for key := range b.all {
		if len(b.all) <= maxBuckets/2 {
			return
		}
		delete(b.all, key)
	}
}
