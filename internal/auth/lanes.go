package auth

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// How many passwords wait for a check.
const (
	maxWaiting           = 64 // in total
	maxWaitingNetwork    = 4  // from one network
	maxWaitingAddress    = 2  // from one address
	maxWaitingIdentified = 16 // from one address, of callers that the server knows already
)

// claim says how good the reason is to let a caller go before others.
type claim int

const (
	claimNone  claim = iota // the network had a failed login within failureTime
	claimFresh              // the network had no failed login
	claimUsual              // the user has logged in from this network before, or the server knows the caller already
)

// turn is what a caller gets at the end of its wait.
type turn int

const (
	turnShared turn = iota // the place of all
	turnKept               // the place that is kept for callers with a claim
	turnLost               // nothing, because a caller with a better claim needed the room
)

// waiter is a caller that wants to check a password. It does not say whether a user has the name: any difference in the
// turns of known and unknown names would show to a stranger which names exist.
type waiter struct {
	from       source
	claim      claim
	identified bool // the server knows the caller by another credential
	turn       chan turn
}

// lane has the waiters of one network, the first first.
type lane struct {
	network netip.Prefix
	waiters []*waiter
}

// lanes gives two places to callers that wait: one to all, and one only to callers with a claim. Networks take turns,
// so one network has one share however many connections it has.
type lanes struct {
	mu           sync.Mutex
	order        []*lane // those that wait, the next one first
	waiting      int
	shared, kept bool // the place is taken
}

// use waits for a place and runs f. If there is no room, it fails.
func (l *lanes) use(ctx context.Context, w *waiter, f func()) error {
	// Wait.
	w.turn = make(chan turn, 1)
	if !l.enter(w) {
		return errFull()
	}
	var got turn
	select {
	case got = <-w.turn:
	case <-ctx.Done():
		if l.leave(w) {
			return ctx.Err()
		}
		got = <-w.turn
	}

	// Use the place.
	if got == turnLost {
		return errFull()
	}
	defer l.release(got)
	if err := ctx.Err(); err != nil {
		return err
	}
	f()
	return nil
}

func errFull() error {
	return &gozzard.Error{Kind: gozzard.ErrRateLimited, Retry: time.Second,
		Message: "too many logins at the same time: try again in a moment"}
}

// enter puts a caller into the lane of its network. It reports false if there is no room.
func (l *lanes) enter(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.makeRoom(w) {
		return false
	}

	at := l.of(w.from.network)
	if at == nil {
		at = &lane{network: w.from.network}
		l.order = append(l.order, at)
	}
	at.waiters = append(at.waiters, w)
	l.waiting++

	l.hand()
	return true
}

// of is the lane of a network, nil if none of its callers waits. mu is held.
func (l *lanes) of(network netip.Prefix) *lane {
	i := slices.IndexFunc(l.order, func(x *lane) bool { return x.network == network })
	if i < 0 {
		return nil
	}
	return l.order[i]
}

// makeRoom reports whether a caller may wait. Where there is no room, the caller takes the room of another one with a
// lesser claim. mu is held.
func (l *lanes) makeRoom(w *waiter) bool {
	// Find those that the caller shares its room with.
	var network, address, all []*waiter
	if at := l.of(w.from.network); at != nil {
		network = at.waiters
	}
	for _, x := range network {
		if x.from.address == w.from.address {
			address = append(address, x)
		}
	}
	for _, at := range l.order {
		all = append(all, at.waiters...)
	}

	// Compare them with the limits.
	ofAddress, ofNetwork := maxWaitingAddress, maxWaitingNetwork
	if w.identified {
		ofAddress, ofNetwork = maxWaitingIdentified, maxWaitingIdentified
	}
	switch {
	case len(address) >= ofAddress:
		return l.displace(address, w.claim)
	case len(network) >= ofNetwork:
		return l.displace(network, w.claim)
	case l.waiting >= maxWaiting:
		return l.displace(all, w.claim)
	}
	return true
}

// displace ends the wait of the last caller among those with the least claim, if that is less than c. mu is held.
func (l *lanes) displace(among []*waiter, c claim) bool {
	var victim *waiter
	for _, x := range among {
		if x.claim < c && (victim == nil || x.claim <= victim.claim) {
			victim = x
		}
	}
	if victim == nil {
		return false
	}
	l.remove(victim)
	victim.turn <- turnLost
	return true
}

// remove takes a caller out of its lane, and an empty lane out of the order. It reports false if the caller does not
// wait any more. mu is held.
func (l *lanes) remove(w *waiter) bool {
	at := l.of(w.from.network)
	if at == nil {
		return false
	}
	i := slices.Index(at.waiters, w)
	if i < 0 {
		return false
	}

	at.waiters = slices.Delete(at.waiters, i, i+1)
	l.waiting--
	if len(at.waiters) == 0 {
		l.order = slices.DeleteFunc(l.order, func(x *lane) bool { return x == at })
	}
	return true
}

// leave ends the wait of a caller that has gone. It reports false if the caller had its turn meanwhile.
func (l *lanes) leave(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remove(w)
}

// release frees a place.
func (l *lanes) release(place turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if place == turnKept {
		l.kept = false
	} else {
		l.shared = false
	}
	l.hand()
}

// hand gives free places to callers that wait. mu is held.
func (l *lanes) hand() {
	if !l.shared {
		if w := l.next(claimNone); w != nil {
			l.shared = true
			w.turn <- turnShared
		}
	}

	if l.kept {
		return
	}
	w := l.next(claimUsual)
	if w == nil {
		w = l.next(claimFresh)
	}
	if w != nil {
		l.kept = true
		w.turn <- turnKept
	}
}

// next takes a caller with at least a claim out of the first lane that has one, the best claim of that lane first. The
// lane becomes the last one. mu is held.
func (l *lanes) next(least claim) *waiter {
	for i, at := range l.order {
		var best *waiter
		for _, w := range at.waiters {
			if w.claim >= least && (best == nil || w.claim > best.claim) {
				best = w
			}
		}
		if best == nil {
			continue
		}

		l.order = append(slices.Delete(l.order, i, i+1), at)
		l.remove(best)
		return best
	}
	return nil
}

// failed takes the claim from callers of a network that wait there because it had no failed login.
func (l *lanes) failed(network netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of(network)
	if at == nil {
		return
	}
	for _, w := range at.waiters {
		if w.claim == claimFresh {
			w.claim = claimNone
		}
	}
}
