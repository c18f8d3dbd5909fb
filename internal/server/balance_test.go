package server

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// fleetOf is a list of servers with these numbers of agents.
func fleetOf(agents ...int) (list []record.Server) {
	for i, n := range agents {
		list = append(list, record.Server{ID: fmt.Sprint(i), AgentAddress: fmt.Sprintf("10.0.0.%d:4230", i),
			URL: fmt.Sprintf("https://10.0.0.%d:8443", i), Agents: n})
	}
	return list
}

// TestHeard: agents are moved to servers only that are heard, and at once when they are heard again.
func TestHeard(t *testing.T) {
	for _, c := range []struct {
		lag map[string]time.Duration
		to  string
	}{
		{map[string]time.Duration{"1": time.Second, "2": 0}, "12"},
		{map[string]time.Duration{"1": balanceLag + 1, "2": 0}, "2"}, // it was lost a moment ago
		{map[string]time.Duration{"2": 0}, "2"},                      // it was never heard
		{nil, ""},
	} {
		_, to := surplus(heard(fleetOf(9, 0, 0), "0", c.lag), "0")
		got := ""
		for _, a := range to {
			got += a.Agents[len("10.0.0."):][:1]
		}
		if got != c.to {
			t.Errorf("%v: agents go to %q, want %q", c.lag, got, c.to)
		}
	}
}

// TestSurplus: a server moves agents only if it has clearly too many, and to servers that have too few.
func TestSurplus(t *testing.T) {
	for _, c := range []struct {
		list    []record.Server
		n       int
		targets int
	}{
		{fleetOf(5), 0, 0},
		{fleetOf(0, 0), 0, 0},
		{fleetOf(1, 0, 0), 0, 0}, // it would only change places
		{fleetOf(2, 1), 0, 0},
		{fleetOf(2, 0), 1, 1},
		{fleetOf(5, 4, 0), 1, 1},
		{fleetOf(9, 0, 0), 1, 2},
		{fleetOf(10_000, 9_200), 0, 0}, // small differences stay
		{fleetOf(15_000, 15_000, 0), 1_500, 1},
		{fleetOf(10_500, 9_000), 750, 1},
		{fleetOf(0, 30_000), 0, 0}, // the other one moves
	} {
		if n, to := surplus(c.list, "0"); n != c.n || len(to) != c.targets {
			t.Errorf("%v: moves %d to %v, want %d to %d servers", c.list, n, to, c.n, c.targets)
		}
	}

	// Servers that are drained, silent, or not reachable for agents.
	for name, change := range map[string]func(*record.Server){
		"drained": func(v *record.Server) { v.Drained = true },
		"silent":  func(v *record.Server) { v.Ago = time.Minute },
		"closed":  func(v *record.Server) { v.AgentAddress = "" },
	} {
		for i := range 2 {
			list := fleetOf(9, 0)
			change(&list[i])
			if n, to := surplus(list, "0"); n != 0 || len(to) > 0 {
				t.Errorf("server %d is %s: moves %d to %v", i, name, n, to)
			}
		}
	}
}

// TestBalanceEnds: whatever the numbers are, all servers together come to a state in which none moves agents.
func TestBalanceEnds(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		agents := make([]int, 2+r.IntN(6))
		for i := range agents {
			agents[i] = r.IntN(1 << r.IntN(14))
		}
		begin := fmt.Sprint(agents)
		for round := 0; moveSome(t, r, agents); round++ {
			if round == 300 {
				t.Fatalf("%s: after %d rounds some of %v are still moved", begin, round, agents)
			}
		}
	}
}

// moveSome is a round of all servers at once. It reports whether any agent was moved.
func moveSome(t *testing.T, r *rand.Rand, agents []int) (moved bool) {
	t.Helper()
	list := fleetOf(agents...)
	for i := range list {
		n, to := surplus(list, fmt.Sprint(i))
		agents[i] -= n
		for range n { // each agent chooses one
			var k int
			if _, err := fmt.Sscanf(to[r.IntN(len(to))].Agents, "10.0.0.%d:", &k); err != nil {
				t.Fatal(err)
			}
			agents[k]++
			moved = true
		}
	}
	return moved
}
