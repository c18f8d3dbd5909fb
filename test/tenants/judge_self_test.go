//go:build linux

package tenants_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestJudgeFindsForeignEffects plants each kind of foreign effect, and the judge finds it. What a tenant does itself is
// none.
func TestJudgeFindsForeignEffects(t *testing.T) {
	g := newGround(t)
	shop, pay, vault := g.party("shop"), g.party("pay"), g.party("vault")
	j := newJudge(t, g.dir, g.parties...)

	// A process of each, which nothing touches.
	for _, p := range g.parties {
		g.as(p, "start", p.mark+"-api-1", g.pidFile(p, "v"))
	}
	j.look()
	if got := j.found(); len(got) > 0 {
		t.Fatalf("the judge accuses without a reason: %q", got)
	}
	if j.counted["shop api"] != 2 || j.counted["event run"] != len(g.parties) { // the call and the process
		t.Fatalf("the judge does not count: %v", j.counted)
	}

	plant := func(what, want string, calm []*party, f func()) {
		t.Helper()
		j.begin(calm...)
		if got := j.found(); len(got) > 0 {
			t.Fatalf("%s: the judge accuses before: %q", what, got)
		}
		f()
		j.look()
		got := j.found()
		if want == "" && len(got) > 0 || want != "" && !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s: the judge says %q, not %q", what, got, want)
		}
		j.calm, j.before, j.files = nil, nil, nil // what was planted stays
	}

	plant("nothing", "", g.parties, func() {})
	plant("an own command", "", []*party{pay, vault},
		func() { g.as(shop, "stop", shop.mark+"-gse-1", g.pidFile(shop, "v")) })
	plant("a command as another account", "a command of shop ran as uid 1 ", nil,
		func() { g.as(pay, "reload", shop.mark+"-gse-1", "") })
	plant("a command as root", "a command of pay ran as uid 0 ", nil,
		func() { g.as(g.party("root"), "reload", pay.mark+"-job-1", "") })
	plant("a mark of no tenant", "of no party", nil, func() { g.as(pay, "reload", "other-1", "") })
	plant("a command of a calm tenant", "pay did nothing, and its command ran: reload", []*party{pay},
		func() { g.as(pay, "reload", pay.mark+"-api-1", "") })
	j.agents[os.Getpid()] = 2
	plant("a command on a foreign host", "a command of pay ran on host 2, which is not its own", nil,
		func() { g.as(pay, "reload", pay.mark+"-api-1", "") })
	plant("a command on an own host", "", nil, func() { g.as(shop, "reload", shop.mark+"-api-1", "") })
	delete(j.agents, os.Getpid())
	plant("a process that was killed", "and its tenant did nothing", []*party{vault}, func() {
		l, ok := lifeOf(g.pidFile(vault, "v"))
		if !ok || syscall.Kill(l.pid, syscall.SIGKILL) != nil {
			t.Fatal("there is no process to kill")
		}
		ft.Until(t, time.Minute, func() string { return "it does not end" },
			func() bool { return ft.CommOf(l.pid) == "" })
	})
	plant("a process that was replaced", "and its tenant did nothing", []*party{pay}, func() {
		g.as(pay, "restart", pay.mark+"-api-1", g.pidFile(pay, "v"))
	})
	plant("a changed file", "keep/secret was", nil, func() { g.write(filepath.Join(shop.dir, "keep", "secret"), "x") })
	plant("a file of another account", "belongs to uid 1", nil, func() {
		g.write(filepath.Join(shop.dir, "foreign"), "x")
		ft.Chown(t, filepath.Join(shop.dir, "foreign"), "daemon")
	})
	if err := os.Remove(filepath.Join(shop.dir, "foreign")); err != nil {
		t.Fatal(err)
	}
	plant("a new file of root", "keep/new is new", nil, func() { g.write(filepath.Join(shop.dir, "keep", "new"), "x") })
	if err := os.Remove(filepath.Join(shop.dir, "keep", "new")); err != nil {
		t.Fatal(err)
	}

	// Answers.
	pid := pay.pids(t)[0]
	plant("an answer about a tenant itself", "", nil, func() { j.answer(pay, "GET", pay.mark+` "pid":`+pid) })
	plant("a foreign row", "shop is shown what belongs to pay", nil, func() { j.answer(shop, "GET", "x"+pay.mark+"-1") })
	plant("a foreign pid", "is shown the pid", nil, func() { j.answer(shop, "GET", `{"pid": `+pid+`}`) })
}
