package ratelimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxLimiters limits the memory: an unknown client can use one limiter for each of its addresses.
const maxLimiters = 1 << 16

// limiters has one rate limiter for each key. A limiter with its full burst is the same as a new one, so it can be
// removed.
type limiters[K comparable] struct {
	size func(K) (rate.Limit, int)

	mu  sync.Mutex
	all map[K]*rate.Limiter
}

func newLimiters[K comparable](size func(K) (rate.Limit, int)) *limiters[K] {
	return &limiters[K]{size: size, all: map[K]*rate.Limiter{}}
}

// allow spends n tokens of a key and reports whether there were enough. It spends none otherwise.
func (m *limiters[K]) allow(key K, n int, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	l := m.all[key]
	if l == nil {
		if len(m.all) >= maxLimiters {
			m.sweep(now)
		}
		l = rate.NewLimiter(m.size(key))
		m.all[key] = l
	}
	return l.AllowN(now, n)
}

// wait is how long it takes until a key has n tokens; 0 if it has them.
func (m *limiters[K]) wait(key K, n int, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()

	l := m.all[key]
	if l == nil {
		return 0
	}
	missing := float64(n) - l.TokensAt(now)
	if missing <= 0 || l.Limit() <= 0 {
		return 0
	}
	return time.Duration(missing / float64(l.Limit()) * float64(time.Second))
}

// sweep removes limiters with a full burst. If that is not enough, it removes others until half of the room is free:
// these limits cannot stop a client with that many addresses anyway. mu is held.
func (m *limiters[K]) sweep(now time.Time) {
	for key, l := range m.all {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(m.all, key)
		}
	}
	for key := range m.all {
		if len(m.all) <= maxLimiters/2 {
			return
		}
		delete(m.all, key)
	}
}
