package ratelimit

import (
	"net/netip"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// How the budget is given out: in steps, and a body that finds nothing left waits for a moment.
const (
	budgetStep  = 4 << 10
	budgetSmall = 80 << 10 // bodies above this size share one half of the budget, so that short requests find room
	budgetWait  = 2 * time.Second
)

// budget is the memory for the bodies of callers that are not identified yet. A body takes from it as it arrives. When
// nothing is left for some time, the oldest body of the address that holds most is dropped: callers that send slowly
// cannot keep others out.
type budget struct {
	mu    sync.Mutex
	left  int64
	spare int64 // for small bodies only
	held  map[netip.Prefix]int64
	open  map[*holding]struct{}
	freed chan struct{} // closed when something is given back

	refused func(rule string)
}

// newBudget makes a budget of a number of bytes. It is nil for 0: no limit.
func newBudget(bytes int64, refused func(rule string)) *budget {
	if bytes <= 0 {
		return nil
	}
	return &budget{left: bytes, spare: bytes / 2, held: map[netip.Prefix]int64{}, open: map[*holding]struct{}{}, freed: make(chan struct{}),
		refused: refused}
}

// errNoRoom rejects a body.
func errNoRoom(why string) error {
	return &gozzard.Error{Kind: gozzard.ErrRateLimited, Retry: 5 * time.Second,
		Message: why + ": send the credentials in a header, or try again later"}
}

// holding is what one body has of the budget.
type holding struct {
	b     *budget // nil: no limit
	from  netip.Prefix
	since time.Time
	bytes int64
	read  int64  // bytes that were read
	ended bool   // the caller is identified, or the request is over
	drop  func() // makes the present read fail; nil if the body is not read
}

// hold begins a holding without any bytes. A nil budget holds nothing.
func (b *budget) hold(from netip.Prefix) *holding {
	return &holding{b: b, from: from, since: time.Now()}
}

// grow makes room for n more bytes of a body. drop ends the body when others need the room.
func (h *holding) grow(n int64, drop func()) error {
	if h.b == nil {
		return nil
	}
	h.b.mu.Lock()
	defer h.b.mu.Unlock()

	for end := time.Now().Add(budgetWait); ; {
		need := h.read + n - h.bytes
		if h.ended || need <= 0 {
			return nil
		}
		need = (need + budgetStep - 1) / budgetStep * budgetStep
		room := h.b.left
		if h.bytes+need > budgetSmall {
			room -= h.b.spare
		}
		if room >= need {
			h.take(need, drop)
			return nil
		}

		// Wait for others, then drop one of them.
		if wait := time.Until(end); wait > 0 {
			h.b.await(wait)
		} else if !h.b.dropOldest(h) {
			h.b.refused(RuleUnknown)
			return errNoRoom("too many callers send bodies before they are identified")
		}
	}
}

// take gives bytes to the holding. mu is held.
func (h *holding) take(n int64, drop func()) {
	h.b.left -= n
	h.b.held[h.from] += n
	h.bytes += n
	h.drop = drop
	h.b.open[h] = struct{}{}
}

// add counts bytes that were read.
func (h *holding) add(n int) {
	if h.b == nil {
		return
	}
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	h.read += int64(n)
}

// await waits until something is given back, for a time. mu is held, but not while it waits.
func (b *budget) await(d time.Duration) {
	freed := b.freed
	b.mu.Unlock()
	defer b.mu.Lock()
	select {
	case <-freed:
	case <-time.After(d):
	}
}

// dropOldest drops the oldest body of the address that holds most, unless it is the one of the caller or began a
// moment ago. mu is held.
func (b *budget) dropOldest(caller *holding) bool {
	var from netip.Prefix
	for a, n := range b.held {
		if n > b.held[from] {
			from = a
		}
	}

	var oldest *holding
	for h := range b.open {
		if h.from == from && (oldest == nil || h.since.Before(oldest.since)) {
			oldest = h
		}
	}
	if oldest == nil || oldest == caller || time.Since(oldest.since) < budgetWait {
		return false
	}

	b.refused(RuleUnknown)
	drop := oldest.drop
	oldest.giveBack()
	drop()
	return true
}

// release gives everything back: the caller is identified, or what was read is not kept.
func (h *holding) release() {
	if h.b == nil {
		return
	}
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	h.giveBack()
}

// giveBack is release. mu is held.
func (h *holding) giveBack() {
	h.ended = true
	if h.bytes == 0 {
		return
	}
	h.b.left += h.bytes
	if h.b.held[h.from] -= h.bytes; h.b.held[h.from] == 0 {
		delete(h.b.held, h.from)
	}
	h.bytes = 0
	delete(h.b.open, h)
	close(h.b.freed)
	h.b.freed = make(chan struct{})
}
