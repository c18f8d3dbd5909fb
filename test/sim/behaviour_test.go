package sim_test

import (
	"testing"

	"github.com/gozzard/gozzard/test/sim"
)

func TestChosen(t *testing.T) {
	for share, want := range map[float64]int{0: 0, 0.02: 20, 0.25: 250, 0.5: 500, 1: 1000} {
		n, longest, run := 0, 0, 0
		for i := range 1000 {
			if !sim.Chosen(i, share) {
				run = 0
				continue
			}
			n++
			run++
			longest = max(longest, run)
		}
		if n != want || share <= 0.5 && longest > 1 {
			t.Errorf("%g: %d of 1000 are chosen, %d in a row", share, n, longest)
		}
	}
}

func TestWrongBehaviour(t *testing.T) {
	for _, b := range []sim.Behaviour{{Processes: -1}, {Churn: -1}, {Reconnects: -1}, {Failing: -0.1}, {Failing: 1.1}, {Slow: 2}, {SlowBy: -1}} {
		if err := sim.RunFleet(t.Context(), sim.FleetOptions{Hosts: 1, Dir: t.TempDir(), Behaviour: b}); err == nil {
			t.Errorf("%+v is accepted", b)
		}
	}
}
