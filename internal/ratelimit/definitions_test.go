package ratelimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/ratelimit"
)

// TestDefinitionQuota: bytes of definitions count for the app, fill up over an hour, and are remembered.
func TestDefinitionQuota(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	rules := map[string]int{}
	g := ratelimit.New(ratelimit.Options{DefinitionQuota: 1, Now: func() time.Time { return now },
		Refused: func(rule string) { rules[rule]++ }})
	bring := func(app, user string, bytes int) error {
		_, err := g.SpendDefinitions(gozzard.Caller{App: app, User: user}, bytes)
		return err
	}

	// Two users share the quota of their app.
	for _, user := range []string{"u", "v"} {
		if err := bring("a", user, 1<<19); err != nil {
			t.Fatal(err)
		}
	}
	err := bring("a", "w", 1<<10)
	if gozzard.KindOf(err) != gozzard.ErrRateLimited || !strings.Contains(err.Error(), "1 KiB of new") ||
		!strings.Contains(err.Error(), "1 MiB an hour: try again in 4s") {
		t.Errorf("above the quota: %v", err)
	}
	if err := bring("b", "u", 1<<20+1); err == nil || strings.Contains(err.Error(), "try again") {
		t.Errorf("more than the quota at once: %v", err)
	}
	if rules[ratelimit.RuleDefinitions] != 2 {
		t.Errorf("rejected: %v", rules)
	}

	// Nothing costs nothing, other apps have their own quota, and all rights have none.
	if err := bring("a", "u", 0); err != nil {
		t.Error(err)
	}
	if err := bring("b", "u", 1<<20); err != nil {
		t.Error(err)
	}
	if _, err := g.SpendDefinitions(gozzard.Caller{App: "a", Rights: gozzard.Everything()}, 1<<30); err != nil {
		t.Error(err)
	}

	// The quota comes back with time, and what was not recorded does not count.
	now = now.Add(30 * time.Minute)
	undo, err := g.SpendDefinitions(gozzard.Caller{App: "a"}, 1<<19)
	if err != nil {
		t.Fatal(err)
	}
	undo()
	if err := bring("a", "u", 1<<19-16); err != nil {
		t.Error(err)
	}

	g.RememberDefinitions("c", 1<<20, now)
	if bring("c", "u", 1<<10) == nil {
		t.Error("a restart gave the quota back")
	}
}
