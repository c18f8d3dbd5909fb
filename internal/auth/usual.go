package auth

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// What the server remembers about the networks of logins, in memory only.
const (
	maxUsual       = 10_000    // pairs of a user and a network
	maxUsualOfUser = 16        // networks of one user, so that one user cannot displace the pairs of all others
	maxFailures    = 1 << 16   // networks with a failed login
	failureTime    = time.Hour // how long a failed login counts
)

// source is where a request came from. It is the zero value when the connection is not TCP.
type source struct {
	address netip.Prefix // one address of IPv4, a /64 of IPv6
	network netip.Prefix // a /24 of IPv4, a /48 of IPv6
}

// sourceOf is the source of the request in a context.
func sourceOf(ctx context.Context) source {
	a, err := netip.ParseAddr(gozzard.OriginOf(ctx).Source)
	if err != nil {
		return source{}
	}

	a = a.Unmap().WithZone("")
	one, many := 32, 24
	if a.Is6() {
		one, many = 64, 48
	}
	address, _ := a.Prefix(one) // fails only for other lengths
	network, _ := a.Prefix(many)
	return source{address, network}
}

// usual remembers the networks from which users came with right credentials, and those that had failed logins. It is
// safe for concurrent use.
type usual struct {
	now func() time.Time

	mu       sync.Mutex
	networks map[string]map[netip.Prefix]time.Time // the last time, by user
	pairs    int
	failures map[netip.Prefix]time.Time // the last failed login
}

func newUsual(now func() time.Time) *usual {
	return &usual{now: now, networks: map[string]map[netip.Prefix]time.Time{}, failures: map[netip.Prefix]time.Time{}}
}

// remember adds a network of a known user. The pair that was not used for the longest time makes room.
func (u *usual) remember(user string, network netip.Prefix) {
	u.mu.Lock()
	defer u.mu.Unlock()
	mine := u.networks[user]
	if mine == nil {
		mine = map[netip.Prefix]time.Time{}
		u.networks[user] = mine
	}

	if _, ok := mine[network]; !ok {
		switch {
		case len(mine) >= maxUsualOfUser:
			u.drop(user)
		case u.pairs >= maxUsual:
			u.drop("")
		}
		u.networks[user] = mine // drop may have removed it
		u.pairs++
	}
	mine[network] = u.now()
}

// drop forgets the oldest pair of a user; of all users if the name is "". mu is held.
func (u *usual) drop(only string) {
	var user string
	var network netip.Prefix
	var oldest time.Time
	for name, mine := range u.networks {
		if only != "" && name != only {
			continue
		}
		for n, at := range mine {
			if user == "" || at.Before(oldest) {
				user, network, oldest = name, n, at
			}
		}
	}

	delete(u.networks[user], network)
	if len(u.networks[user]) == 0 {
		delete(u.networks, user)
	}
	u.pairs--
}

// fail remembers a failed login from a network.
func (u *usual) fail(network netip.Prefix) {
	now := u.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, ok := u.failures[network]; !ok && len(u.failures) >= maxFailures {
		u.sweep(now)
	}
	u.failures[network] = now
}

// sweep forgets failures that do not count any more. If that is not enough, it forgets others until half of the room
// is free. mu is held.
func (u *usual) sweep(now time.Time) {
	for n, at := range u.failures {
		if now.Sub(at) >= failureTime {
			delete(u.failures, n)
		}
	}
	for n := range u.failures {
		if len(u.failures) <= maxFailures/2 {
			return
		}
		delete(u.failures, n)
	}
}

// claim is the claim of a caller that logs in as a user.
func (u *usual) claim(user string, network netip.Prefix) claim {
	now := u.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, ok := u.networks[user][network]; ok {
		return claimUsual
	}
	if at, ok := u.failures[network]; ok && now.Sub(at) < failureTime {
		return claimNone
	}
	return claimFresh
}

// Seen remembers where a user came from with a session or a token of its own. Logins of that user from there go before
// those from other networks. A token behind an app says nothing: the network is that of the app.
func (b *Directory) Seen(ctx context.Context, c gozzard.Caller) {
	if Alone(c) {
		b.usual.remember(c.User, sourceOf(ctx).network)
	}
}
