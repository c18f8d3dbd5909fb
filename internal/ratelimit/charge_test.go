package ratelimit_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/ratelimit"
)

// TestChargeCountsAsSpend: what the record counts for several servers is what one server counts by itself: the same quotas, and
// the same words above them.
func TestChargeCountsAsSpend(t *testing.T) {
	const quota = 100
	caller := gozzard.Caller{App: "a", User: "u"}
	options := ratelimit.Options{Blast: ratelimit.Blast{Quota: quota, Quotas: map[string]int{"own": 1000, "free": 0}},
		RefusedQuota: quota, DefinitionQuota: 1, Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	app := gozzard.Spending{Name: "destructive_quota/a", N: 60, Quota: quota}
	user := gozzard.Spending{Name: "destructive_quota/user:u", N: 60, Quota: quota}
	forced := func(s gozzard.Spending) gozzard.Spending { s.Force = true; return s }

	for name, c := range map[string]struct {
		caller             gozzard.Caller
		n, rejected, bytes int
		confirm            int
		above              ratelimit.Above
		want               []gozzard.Spending
	}{
		"nothing":             {caller: caller},
		"destructive":         {caller: caller, n: 60, want: []gozzard.Spending{app, user}},
		"a claimed name":      {caller: gozzard.Caller{App: "a", User: "u", Asserted: true}, n: 60, want: []gozzard.Spending{app}},
		"a confirmed number":  {caller: caller, n: 60, confirm: 60, above: ratelimit.AboveConfirm, want: []gozzard.Spending{forced(app), forced(user)}},
		"part of a topology":  {caller: caller, n: 60, rejected: 60, above: ratelimit.AboveCount, want: []gozzard.Spending{forced(app), forced(user)}},
		"an admin":            {caller: gozzard.Caller{App: "a", User: "u", Rights: gozzard.Everything()}, n: 60, rejected: 60, bytes: 60, want: []gozzard.Spending{forced(app), forced(user)}},
		"a quota of its own":  {caller: gozzard.Caller{App: "own", User: "u"}, n: 60, want: []gozzard.Spending{{Name: "destructive_quota/own", N: 60, Quota: 1000}}},
		"no quota":            {caller: gozzard.Caller{App: "free", User: "u"}, n: 60},
		"rejected attempts":   {caller: caller, rejected: 60, want: []gozzard.Spending{{Name: "refused_quota/a", N: 60, Quota: quota}}},
		"definitions":         {caller: caller, bytes: 600 << 10, want: []gozzard.Spending{{Name: "definition_quota/a", N: 600 << 10, Quota: 1 << 20}}},
		"more than the quota": {caller: caller, n: 101, want: []gozzard.Spending{{Name: app.Name, N: 101, Quota: quota}, {Name: user.Name, N: 101, Quota: quota}}},
	} {
		t.Run(name, func(t *testing.T) {
			op := &gozzard.Operation{Caller: c.caller, Confirm: c.confirm,
				Items: []gozzard.Item{{Action: gozzard.ActionStop, Targets: make([]gozzard.Target, c.n)}}}
			g := ratelimit.New(options)
			charge := g.Charge(op, c.n, c.rejected, c.bytes, c.above)
			if !slices.Equal(charge.List, c.want) {
				t.Fatalf("got %+v", charge.List)
			}

			// Spend it twice on one server: the second time is above each quota that can be exceeded.
			var err error
			for range 2 {
				_, one := g.SpendDefinitions(c.caller, c.bytes)
				_, two := g.Spend(op, c.n, c.rejected, c.above)
				err = errors.Join(one, two)
			}
			exceeds := len(c.want) > 0 && !c.want[0].Force && c.want[0].Quota < 2*c.want[0].N
			if (err != nil) != exceeds {
				t.Fatalf("one server: %v", err)
			}
			if !exceeds {
				return
			}
			var e *gozzard.Error
			if !errors.As(err, &e) || e.Retry == 0 {
				t.Fatalf("one server: %v", err)
			}
			above := charge.Above(&gozzard.OverQuota{Wait: e.Retry})
			if above.Error() != e.Error() || gozzard.KindOf(above) != e.Kind {
				t.Errorf("got  %v\nwant %v", above, e)
			}
		})
	}
}
