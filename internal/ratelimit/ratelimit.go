package ratelimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// Options are the limits. 0 means no limit.
type Options struct {
	AppRate  float64 // requests per second of one app
	AppBurst int     // requests of one app at once; 0: as many as in two seconds

	// Failures is how many requests per minute with wrong credentials one address may send, and how many one address
	// may send for one known name. Beyond that wrong credentials are answered with an error of this limit, and
	// passwords are checked slowly. Right credentials are accepted all the same.
	Failures int

	Connections      int // open connections of one address
	TotalConnections int // open connections of all addresses

	// UnknownBytes is how many bytes of bodies the server holds for callers that are not identified yet, all together.
	UnknownBytes int64

	Proxy   bool           // a client on this machine is a proxy, as in Proxies
	Proxies []netip.Prefix // proxies: their X-Forwarded-For has the address of the caller
	Blast   Blast

	// RefusedQuota is how many attempts of one app are recorded per hour although they were rejected at once, such as
	// attempts on unknown hosts.
	RefusedQuota int

	// DefinitionQuota is how many MiB of definitions that are new or changed one app may bring per hour. The audit keeps
	// definitions for ever, so without a quota one app fills the disk of the server.
	DefinitionQuota int

	// Drain is how long the server reads the rest of a body that it does not use, before it answers; 0: 30 seconds.
	Drain time.Duration

	Refused func(rule string) // called for every rejected request, with one of the rules below; may be nil
	Now     func() time.Time  // nil: time.Now
}

// Default returns the default limits of a server.
func Default() Options {
	return Options{
		AppRate: 50, AppBurst: 200, Failures: 10, Connections: 1000, TotalConnections: 4000, UnknownBytes: 32 << 20,
		Blast: Blast{Targets: 500, Percent: 30, Quota: 10_000}, RefusedQuota: 50_000,
		DefinitionQuota: 256,
	}
}

// The rules by which requests are rejected, as the metrics count them.
const (
	RuleApp         = "app_rate"
	RuleFailures    = "failed_logins"
	RuleConnections = "connections"
	RuleBlast       = "blast_radius"
	RuleQuota       = "destructive_quota"
	RuleUnknown     = "unknown_bodies"
	RuleRefused     = "refused_quota"
	RuleDefinitions = "definition_quota"
	RuleFraming     = "request_framing"
)

// Guard applies the limits. It is safe for concurrent use.
type Guard struct {
	o        Options
	apps     *limiters[string]
	failures *limiters[netip.Prefix]
	names    *limiters[named] // failures of one name from one address
	paces    *limiters[named] // passwords that are checked although there were too many failures
	quotas   *limiters[holder]
	spending sync.Mutex // held while an operation counts against two quotas
	refused  *limiters[string]
	defined  *limiters[string] // bytes of new definitions
	unknown  *budget           // nil: no limit
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

	if o.Proxy {
		o.Proxies = append(slices.Clone(o.Proxies), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	}

	failures := rate.Limit(float64(o.Failures) / time.Minute.Seconds())
	return &Guard{
		o:        o,
		apps:     newLimiters[string](func(string) (rate.Limit, int) { return rate.Limit(o.AppRate), o.AppBurst }),
		failures: newLimiters[netip.Prefix](func(netip.Prefix) (rate.Limit, int) { return failures, o.Failures }),
		names:    newLimiters[named](func(named) (rate.Limit, int) { return failures, o.Failures }),
		paces:    newLimiters[named](func(named) (rate.Limit, int) { return passwordPace, 1 }),
		quotas:   newLimiters[holder](func(h holder) (rate.Limit, int) { return perHour(o.Blast.quota(h)) }),
		refused:  newLimiters[string](func(string) (rate.Limit, int) { return perHour(o.RefusedQuota) }),
		defined:  newLimiters[string](func(string) (rate.Limit, int) { return perHour(o.definitionBytes()) }),
		unknown:  newBudget(o.UnknownBytes, o.Refused),
	}
}

// perHour is the limit of n in an hour.
func perHour(n int) (rate.Limit, int) { return rate.Limit(float64(n) / time.Hour.Seconds()), n }

// Handler applies the limits to all requests of a handler.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header(), r)
		from := g.address(r)
		held := g.unknown.hold(from)
		defer held.release()

		w = setDeadlines(w, r, g.o.Drain, held)
		ctx := gozzard.WithOrigin(r.Context(), gozzard.Origin{Source: g.source(r), RequestID: gozzard.NewRequestID()})
		next.ServeHTTP(w, r.WithContext(auth.WithGate(ctx, &gate{g: g, from: from, held: held})))
	})
}

// reject counts a rejected request. The error says when to try again.
func (g *Guard) reject(rule string, wait time.Duration, text string) error {
	g.o.Refused(rule)
	wait = max(time.Second, (wait + time.Second - 1).Truncate(time.Second))
	return &gozzard.Error{
		Kind: gozzard.ErrRateLimited, Message: fmt.Sprintf("%s: try again in %s", text, wait), Retry: wait,
	}
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
