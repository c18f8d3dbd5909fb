package ratelimit_test

import (
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/ratelimit"
)

// TestD18PlatformApps: the apps of the platform have a higher quota, for all their users together, unless a setting says
// otherwise.
func TestD18PlatformApps(t *testing.T) {
	some := &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleOperator}}}
	for name, c := range map[string]struct {
		app   string
		blast ratelimit.Blast
		quota int
	}{
		"by default":          {"nodeman", ratelimit.Default().Blast, 100_000},
		"another app":         {"other", ratelimit.Default().Blast, 10_000},
		"with a setting":      {"nodeman", ratelimit.Blast{Quota: 10_000, Quotas: map[string]int{"nodeman": 5}}, 5},
		"with a higher one":   {"nodeman", ratelimit.Blast{Quota: 200_000}, 200_000},
		"a user of that name": {"user:nodeman", ratelimit.Default().Blast, 10_000},
	} {
		t.Run(name, func(t *testing.T) {
			for n, allowed := range map[int]bool{c.quota: true, c.quota + 1: false} {
				c.blast.Platform = map[string]bool{"nodeman": true}
				g := ratelimit.New(ratelimit.Options{Blast: c.blast})
				op := &gozzard.Operation{Caller: gozzard.Caller{App: c.app, User: "admin", Rights: some},
					Items: []gozzard.Item{{Action: gozzard.ActionRestart, Targets: make([]gozzard.Target, n)}}}
				if _, err := g.Spend(op, n, 0, ratelimit.AboveReject); (err == nil) != allowed {
					t.Errorf("%d restarts: %v", n, err)
				}
			}
		})
	}
}
