package ratelimit

import (
	"context"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// lockedAct is the row of the audit about a login that had to wait.
const lockedAct = "login:locked"

// How passwords are checked for a name that had too many failures from an address: so many per second, and a login
// waits so long for its turn.
const (
	passwordPace = rate.Limit(1)
	passwordWait = 5 * time.Second
)

// named is a known name that an address used.
type named struct {
	from netip.Prefix
	name string
}

// gate applies the limits to one request.
type gate struct {
	g    *Guard
	from netip.Prefix
	held *holding
}

// Known implements auth.Gate: it counts a request of an app. The body counts as that of a known caller.
func (t *gate) Known(app string) error {
	t.held.release()
	if t.g.o.AppRate <= 0 {
		return nil
	}
	now := t.g.o.Now()
	if t.g.apps.allow(app, 1, now) {
		return nil
	}
	return t.g.reject(RuleApp, t.g.apps.wait(app, 1, now),
		"app "+app+" asks more than "+strconv.FormatFloat(t.g.o.AppRate, 'g', -1, 64)+" times a second")
}

// Failed implements auth.Gate: it counts wrong credentials. All of them count for the address, and those of a known
// name for that name and the address. An answer by either limit is the same, so it does not show whether a name is
// known. It harms no other caller: only wrong credentials get it.
func (t *gate) Failed(f auth.Failure) error {
	if t.g.o.Failures <= 0 {
		return nil
	}

	now, key := t.g.o.Now(), named{t.from, f.Name}
	within := f.Proven || t.g.failures.allow(t.from, 1, now)
	if f.Known {
		within = t.g.names.allow(key, 1, now) && within
	}
	if within {
		return nil
	}

	wait := t.g.names.wait(key, 1, now)
	if !f.Proven {
		wait = max(wait, t.g.failures.wait(t.from, 1, now))
	}
	err := t.g.reject(RuleFailures, wait, "too many requests with wrong credentials came from this address")
	return gozzard.Refused(err, gozzard.Refusal{Act: lockedAct})
}

// Password implements auth.Gate. A password of a known name that had too many failures from this address is checked in
// its turn. There is no right password for an unknown name, so it is not checked when the address had too many
// failures.
func (t *gate) Password(ctx context.Context, f auth.Failure) (skip bool, err error) {
	now, key := t.g.o.Now(), named{t.from, f.Name}
	switch {
	case t.g.o.Failures <= 0:
		return false, nil
	case !f.Known:
		return t.g.failures.wait(t.from, 1, now) > 0, nil
	case t.g.names.wait(key, 1, now) <= 0:
		return false, nil
	}

	turn, ok := t.g.paces.reserve(key, passwordWait, now)
	if !ok {
		err := t.g.reject(RuleFailures, passwordWait, "too many wrong passwords for this name came from this address")
		return false, gozzard.Refused(err, gozzard.Refusal{Act: lockedAct})
	}
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-time.After(turn):
		return false, nil
	}
}
