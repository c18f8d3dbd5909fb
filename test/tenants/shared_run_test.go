//go:build linux

package tenants_test

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var sharedRequests = flag.Int("shared.requests", 150, "how many random requests tenants of a real shared host send")

// TestTI3SharedHostTwoAccounts: tenants without networks share a host of the built program, each with an account and
// real processes. Two of them send random requests to every route of all doors, about what is their own, another
// tenant's, a third tenant's and root's, first in turn and then both at once, while processes of their accounts swap
// links. A judge that knows only records, processes, files and answers looks for commands as a foreign account,
// foreign effects and foreign rows.
func TestTI3SharedHostTwoAccounts(t *testing.T) {
	w := newShared(t)
	shop, pay, vault := w.g.party("shop"), w.g.party("pay"), w.g.party("vault")
	streams := map[*party]func() string{shop: w.listen(shop), pay: w.listen(pay)}
	w.restore(shop, pay, vault)
	endSwaps := w.swapLinks()

	// In each round one attacks and the other only reads, and then both attack.
	rounds := max(1, *sharedRequests/1000)
	share := *sharedRequests / rounds
	for round := range rounds {
		attacker, reader := shop, pay
		if round%2 == 1 {
			attacker, reader = pay, shop
		}
		if round > 0 {
			w.restore(reader)
		}
		name := fmt.Sprintf("round %d, seed %d", round, *seed)
		first := *seed + uint64(round)*1000
		w.judged(name, []*party{vault, reader}, func() {
			w.atOnce(attacker, share*3/8, first, false, reader, share/8, true)
		})
		w.judged(name, []*party{vault}, func() { w.atOnce(shop, share/4, first+100, false, pay, share/4, false) })
		if t.Failed() {
			return
		}
	}

	// What the streams said.
	swaps := endSwaps()
	for p, end := range streams {
		text := end()
		w.j.answer(p, "the event stream", text)
		if !strings.Contains(text, p.mark+"-hidden") {
			t.Errorf("the event stream of %s does not have its own events: nothing is proven: %.300s", p.name, text)
		}
	}
	for _, fault := range w.j.found() {
		t.Error(fault)
	}
	w.proven(t, swaps)
}

// judged judges what happens while f runs. The calm tenants, and root, do nothing meanwhile.
func (w *shared) judged(name string, calm []*party, f func()) {
	w.t.Helper()
	w.learn()
	w.j.begin(append(calm, w.g.party("root"))...)
	before := map[*party]string{}
	for _, p := range calm {
		before[p] = w.picture(p)
	}

	f()
	w.settle()

	w.j.look()
	for _, p := range calm {
		if diff := cmp.Diff(before[p], w.picture(p)); diff != "" {
			w.t.Errorf("%s: what the server knows of %s changed, which did nothing:\n%s", name, p.name, diff)
		}
	}
	for _, fault := range w.j.found() {
		w.t.Errorf("%s: %s", name, fault)
	}
}

// atOnce lets two tenants send requests at the same time, each by two callers.
func (w *shared) atOnce(a *party, n int, seed uint64, aReads bool, b *party, m int, bReads bool) {
	var busy sync.WaitGroup
	for k := range uint64(2) {
		busy.Go(func() { w.attack(a, n/2, seed+k, aReads) })
		busy.Go(func() { w.attack(b, m/2, seed+10+k, bReads) })
	}
	busy.Wait()
}

// proven checks that enough was permitted and had effects, and prints the figures.
func (w *shared) proven(t *testing.T, swaps int) {
	t.Helper()
	commands, want := 0, 2+*sharedRequests/1000
	for _, door := range []string{"api", "gse", "gateway", "job", "gsekit"} {
		for _, p := range w.g.parties[:2] {
			n := w.j.counted[p.name+" "+door]
			commands += n
			if n < want {
				t.Errorf("only %d calls of %s by the door %s had an effect, not %d: nothing is proven", n, p.name, door, want)
			}
		}
		if w.asked[door+" refused"] == 0 || w.asked[door+" accepted"] == 0 {
			t.Errorf("the door %s refused everything or nothing: %v", door, w.asked)
		}
	}
	if swaps < 100 {
		t.Errorf("only %d swaps of links: nothing is proven", swaps)
	}
	fmt.Printf("threat TI3, real processes: %d requests to %d paths %v; %d commands of two tenants %v; "+
		"%d swaps of links\n", w.sent, len(w.paths), w.asked, commands, w.j.counted, swaps)
}
