package ratelimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// Options are the limits. A limit of 0 is none.
type Options struct {
	AppRate  float64 // requests a second of one app
	AppBurst int     // requests of one app at once; 0 is two seconds' worth
	// requests with wrong credentials in a minute from one address, then every request from there is refused for a
	// while
	Failures    int
	Connections int  // of one address at a time
	Proxy       bool // a peer on this machine is a proxy: its X-Forwarded-For says who asks
	Blast       Blast

	Refused func(rule string) // told of every refusal, by the names of the rules below; may be nil
	Now     func() time.Time  // time.Now
}

// Default is what a server begins with.
func Default() Options {
	return Options{AppRate: 50, AppBurst: 200, Failures: 10, Connections: 1000,
		Blast: Blast{Targets: 500, Percent: 30, Quota: 10_000}}
}

// The rules, as they are counted.
const (
	RuleApp         = "app_rate"
	RuleFailures    = "failed_logins"
	RuleConnections = "connections"
	RuleBlast       = "blast_radius"
	RuleQuota       = "destructive_quota"
)

// Guard keeps count.
type Guard struct {
	o        Options
	apps     *buckets[string]
	failures *buckets[netip.Prefix]
	quotas   *buckets[string]
}

// New makes a guard.
func New(o Options) *Guard {
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.AppBurst <= 0 {
		o.AppBurst = max(1, int(2*o.AppRate))
	}

	return &Guard{
		o:    o,
		apps: newBuckets[string](func(string) (rate.Limit, int) { return rate.Limit(o.AppRate), o.AppBurst }),
		failures: newBuckets[netip.Prefix](func(netip.Prefix) (rate.Limit, int) {
			return rate.Limit(float64(o.Failures) / time.Minute.Seconds()), o.Failures
		}),
		quotas: newBuckets[string](func(app string) (rate.Limit, int) {
			n := o.Blast.quota(app)
			return rate.Limit(float64(n) / time.Hour.Seconds()), n
		}),
	}
}

// Handler puts the guard before everything that is served.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header(), r)
		pace(w, r)
		next.ServeHTTP(w, r.WithContext(auth.WithGate(r.Context(), &gate{g: g, from: g.address(r)})))
	})
}

// gate is the guard before one request.
type gate struct {
	g    *Guard
	from netip.Prefix
}

// Enter implements auth.Gate: an address that keeps failing is not listened to, whatever it says now. Otherwise the
// one right guess would be let in.
func (t *gate) Enter() error {
	if t.g.o.Failures <= 0 {
		return nil
	}
	wait := t.g.failures.wait(t.from, 1, t.g.o.Now())
	if wait <= 0 {
		return nil
	}
	return t.g.refuse(RuleFailures, wait, "too many requests with wrong credentials came from this address")
}

// Known implements auth.Gate.
func (t *gate) Known(app string) error {
	if t.g.o.AppRate <= 0 {
		return nil
	}
	now := t.g.o.Now()
	if t.g.apps.take(app, 1, now) {
		return nil
	}
	return t.g.refuse(RuleApp, t.g.apps.wait(app, 1, now),
		"app "+app+" asks more than "+strconv.FormatFloat(t.g.o.AppRate, 'g', -1, 64)+" times a second")
}

// Failed implements auth.Gate.
func (t *gate) Failed() {
	if t.g.o.Failures > 0 {
		t.g.failures.take(t.from, 1, t.g.o.Now())
	}
}

// refuse says when it is worth asking again.
func (g *Guard) refuse(rule string, wait time.Duration, text string) error {
	g.o.Refused(rule)
	wait = max(time.Second, (wait + time.Second - 1).Truncate(time.Second))
	return &gozzard.Error{Kind: gozzard.ErrRateLimited, Message: fmt.Sprintf("%s: try again in %s", text, wait),
		Retry: wait}
}

// address is who asks. Of IPv6 the network counts: everybody there has as many addresses as he likes.
func (g *Guard) address(r *http.Request) netip.Prefix {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{} // a listener that is no TCP one: all of its callers are one
	}
	from := peer.Addr()
	if g.o.Proxy && from.Unmap().IsLoopback() {
		if named, ok := forwarded(r.Header.Values("X-Forwarded-For")); ok {
			from = named
		}
	}
	return network(from)
}

// forwarded is the last address of X-Forwarded-For, the one that our own proxy has added: those before it are the
// caller's word.
func forwarded(lines []string) (netip.Addr, bool) {
	if len(lines) == 0 {
		return netip.Addr{}, false
	}
	list := strings.Split(lines[len(lines)-1], ",")
	a, err := netip.ParseAddr(strings.TrimSpace(list[len(list)-1]))
	return a, err == nil
}

func network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // fails for other lengths only
	return p
}
