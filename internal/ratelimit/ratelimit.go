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

// Options are the limits. 0 means no limit.
type Options struct {
	AppRate  float64 // requests per second of one app
	AppBurst int     // requests of one app at once; 0: as many as in two seconds

	// Failures is how many requests per minute with wrong credentials one address may send. Beyond that all of its
	// requests are rejected for a while.
	Failures int

	Connections int  // open connections of one address
	Proxy       bool // a client on this machine is a proxy: its X-Forwarded-For has the address of the caller
	Blast       Blast

	// Drain is how long the server reads the rest of a body that it does not use, before it answers; 0: 30 seconds.
	Drain time.Duration

	Refused func(rule string) // called for every rejected request, with one of the rules below; may be nil
	Now     func() time.Time  // nil: time.Now
}

// Default returns the default limits of a server.
func Default() Options {
	return Options{
		AppRate: 50, AppBurst: 200, Failures: 10, Connections: 1000,
		Blast: Blast{Targets: 500, Percent: 30, Quota: 10_000},
	}
}

// The rules by which requests are rejected, as the metrics count them.
const (
	RuleApp         = "app_rate"
	RuleFailures    = "failed_logins"
	RuleConnections = "connections"
	RuleBlast       = "blast_radius"
	RuleQuota       = "destructive_quota"
)

// Guard applies the limits. It is safe for concurrent use.
type Guard struct {
	o        Options
	apps     *limiters[string]
	failures *limiters[netip.Prefix]
	quotas   *limiters[string]
}

// New returns a Guard.
func New(o Options) *Guard {
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Drain <= 0 {
		o.Drain = drainTime
	}
	if o.AppBurst <= 0 {
		o.AppBurst = max(1, int(2*o.AppRate))
	}

	return &Guard{
		o:    o,
		apps: newLimiters[string](func(string) (rate.Limit, int) { return rate.Limit(o.AppRate), o.AppBurst }),
		failures: newLimiters[netip.Prefix](func(netip.Prefix) (rate.Limit, int) {
			return rate.Limit(float64(o.Failures) / time.Minute.Seconds()), o.Failures
		}),
		quotas: newLimiters[string](func(app string) (rate.Limit, int) {
			n := o.Blast.quota(app)
			return rate.Limit(float64(n) / time.Hour.Seconds()), n
		}),
	}
}

// Handler applies the limits to all requests of a handler.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header(), r)
		w = setDeadlines(w, r, g.o.Drain)
		ctx := gozzard.WithOrigin(r.Context(), gozzard.Origin{Source: g.source(r), RequestID: gozzard.NewRequestID()})
		next.ServeHTTP(w, r.WithContext(auth.WithGate(ctx, &gate{g: g, from: g.address(r)})))
	})
}

// gate applies the limits to one request.
type gate struct {
	g    *Guard
	from netip.Prefix
}

// Enter implements auth.Gate. It rejects all requests of an address with too many failures, also one with the right
// credentials: otherwise an attacker could guess on.
func (t *gate) Enter() error {
	if t.g.o.Failures <= 0 {
		return nil
	}
	wait := t.g.failures.wait(t.from, 1, t.g.o.Now())
	if wait <= 0 {
		return nil
	}
	err := t.g.reject(RuleFailures, wait, "too many requests with wrong credentials came from this address")
	return gozzard.Refused(err, gozzard.Refusal{Act: "login:locked"})
}

// Known implements auth.Gate: it counts a request of an app.
func (t *gate) Known(app string) error {
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

// Failed implements auth.Gate: it counts wrong credentials.
func (t *gate) Failed() {
	if t.g.o.Failures > 0 {
		t.g.failures.allow(t.from, 1, t.g.o.Now())
	}
}

// reject counts a rejected request. The error says when to try again.
func (g *Guard) reject(rule string, wait time.Duration, text string) error {
	g.o.Refused(rule)
	wait = max(time.Second, (wait + time.Second - 1).Truncate(time.Second))
	return &gozzard.Error{
		Kind: gozzard.ErrRateLimited, Message: fmt.Sprintf("%s: try again in %s", text, wait), Retry: wait,
	}
}

// address is the network of the caller. All IPv6 addresses of one /64 network count as one, because one machine can use
// any number of them.
func (g *Guard) address(r *http.Request) netip.Prefix {
	from, ok := g.peer(r)
	if !ok {
		return netip.Prefix{} // not TCP: all callers of such a listener count as one
	}
	return network(from)
}

// peer is the address of the caller; ok is false when the connection is not TCP.
func (g *Guard) peer(r *http.Request) (from netip.Addr, ok bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	from = peer.Addr()
	if g.o.Proxy && from.Unmap().IsLoopback() {
		if named, ok := forwarded(r.Header.Values("X-Forwarded-For")); ok {
			from = named
		}
	}
	return from.Unmap().WithZone(""), true
}

// source is the address of the caller for the audit; "" when the connection is not TCP.
func (g *Guard) source(r *http.Request) string {
	if from, ok := g.peer(r); ok {
		return from.String()
	}
	return ""
}

// forwarded is the last address of X-Forwarded-For, which the proxy has added. The caller can have written the
// addresses before it.
func forwarded(lines []string) (netip.Addr, bool) {
	if len(lines) == 0 {
		return netip.Addr{}, false
	}
	list := strings.Split(lines[len(lines)-1], ",")
	a, err := netip.ParseAddr(strings.TrimSpace(list[len(list)-1]))
	return a, err == nil
}

// network is the address itself for IPv4, and its /64 network for IPv6.
func network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // fails only for other lengths
	return p
}
