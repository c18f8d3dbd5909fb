package supervise_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// slowChecks adds processes whose health commands hang until their time is over.
func (r *rig) slowChecks(n int, account func(i int) string, namespace func(i int) string) {
	for i := range n {
		key := gozzard.Key{Namespace: namespace(i), Name: fmt.Sprint("slow_", i)}
		r.journal[key] = supervise.Record{Key: key, Hosted: true, Wanted: gozzard.StateRunning,
			Spec: checked("hang", func(s *gozzard.Spec) {
				s.Identity.User, s.Policy.HealthInterval, s.Policy.HealthTimeout = account(i), 1, 60
			})}
	}
}

// TestHealthTurns: whatever one tenant does, the checks of another run within the bound that the documentation states,
// again and again.
func TestHealthTurns(t *testing.T) {
	one := func(text string) func(int) string { return func(int) string { return text } }
	many := func(text string) func(int) string { return func(i int) string { return fmt.Sprint(text, i) } }

	for _, c := range []struct {
		what               string
		account, namespace func(int) string
		gap                time.Duration // at most between two checks of the other tenant
	}{
		{"one namespace", one("root"), one("greedy"), 2 * time.Second},
		{"many accounts", many("greedy"), one("greedy"), 2 * time.Second},
		{"many namespaces", one("greedy"), many("greedy"), 2 * time.Second},
		{"many namespaces of the same account", one("root"), many("greedy"), 65 * time.Second * (200/7 + 1)},
		{"many of both", many("greedy"), many("greedy"), 65 * time.Second * (200/7 + 1)},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil)
			r.slowChecks(200, c.account, c.namespace)
			r.up()
			defer r.down()
			r.after(time.Minute)
			r.want(gozzard.ActionStart, checked("ok", func(s *gozzard.Spec) { s.Policy.HealthInterval = 1 }),
				gozzard.CodeOK, true)

			before := r.machine.Commands(game, gozzard.ActionQuery)
			for range 3 {
				r.after(c.gap)
				now := r.machine.Commands(game, gozzard.ActionQuery)
				if now == before {
					t.Fatalf("%s: no check within %s", c.what, c.gap)
				}
				before = now
			}
			if h := r.health(); h != "ok" && !strings.HasPrefix(h, "not known since") {
				t.Errorf("%s: health %q", c.what, h)
			}
		})
	}
}

// TestHealthTurnsAreShared: of two tenants that both want more places than there are, each gets about its half, also when
// one was there first.
func TestHealthTurnsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.slowChecks(90, func(int) string { return "root" }, func(i int) string {
			return []string{"first", "first", "second"}[i%3]
		})
		r.up()
		defer r.down()
		r.after(time.Hour)

		counts := map[string]int{}
		for key := range r.journal {
			counts[key.Namespace] += r.machine.Commands(key, gozzard.ActionQuery)
		}
		if a, b := counts["first"], counts["second"]; a < 300 || b < 300 || a > 2*b || b > 2*a {
			t.Errorf("checks in an hour: %v", counts)
		}
	})
}

// TestOverdueHealth: a process whose check cannot begin says since when its health is not known, not what it was before.
func TestOverdueHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.slowChecks(60, func(int) string { return "root" }, func(int) string { return game.Namespace })
		r.up()
		defer r.down()
		r.want(gozzard.ActionStart, checked("ok", func(s *gozzard.Spec) { s.Policy.HealthInterval = 30 }),
			gozzard.CodeOK, true)
		started := time.Now()

		r.after(25 * time.Second) // due after 22.5 s
		if m, h := r.status().Message, r.health(); m != "" || h != "" {
			t.Errorf("message %q, health %q before it is overdue", m, h)
		}

		r.after(35 * time.Second)
		m, h := r.status().Message, r.health()
		if !strings.HasPrefix(m, "health not known since "+started.Format("2006-01-02 15:04")) || "health "+h != m {
			t.Errorf("message %q, health %q", m, h)
		}

		until := func(want string) {
			t.Helper()
			for range 600 {
				if h := r.health(); strings.HasPrefix(h, want) {
					return
				}
				r.after(time.Second)
			}
			t.Fatalf("health %q, want %q", r.health(), want)
		}
		until("ok") // its turn has come
		if m := r.status().Message; m != "" {
			t.Errorf("message %q after its turn", m)
		}
		until("not known since ") // it does not stay "ok"

		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
		if m, h := r.status().Message, r.health(); m != "" || h != "" {
			t.Errorf("message %q, health %q of a stopped process", m, h)
		}
	})
}
