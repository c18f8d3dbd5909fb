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
	return m.get(key, now).AllowN(now, n)
}

// spend spends n tokens of a key, or all that it has if they are fewer.
func (m *limiters[K]) spend(key K, n int, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.get(key, now)
	l.AllowN(now, min(n, int(l.TokensAt(now))))
}

// has reports whether a key has n tokens.
func (m *limiters[K]) has(key K, n int, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.get(key, now).TokensAt(now) >= float64(n)
}

// giveBack returns n tokens to a key that spent them. A limiter cannot take any, so it is replaced.
func (m *limiters[K]) giveBack(key K, n int, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.get(key, now)
	have := int(l.TokensAt(now)) + n
	l = rate.NewLimiter(m.size(key))
	l.AllowN(now, max(0, l.Burst()-have))
	m.all[key] = l
}

// reserve spends one token of a key that it will have within a time, and returns how long to wait for it.
func (m *limiters[K]) reserve(key K, within time.Duration, now time.Time) (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.get(key, now).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > within {
		r.CancelAt(now)
		return 0, false
	}
	return wait, true
}

// get is the limiter of a key. mu is held.
func (m *limiters[K]) get(key K, now time.Time) *rate.Limiter {
	l := m.all[key]
	if l == nil {
		if len(m.all) >= maxLimiters {
			m.sweep(now)
		}
		l = rate.NewLimiter(m.size(key))
		m.all[key] = l
	}
	return l
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
