package sqlstore

import (
	"math/rand/v2"
	"testing"
)

// TestSurplusEvents: for random numbers of events of processes, as many are given up as necessary; no host has to give up
// events while another one keeps two more than it, and so for the namespaces of a host and the processes of a namespace.
func TestSurplusEvents(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var list []sourceCount
		var total int64
		for i := range 1 + rnd.IntN(30) {
			n := sourceCount{src: int64(i), events: 1 + int64(rnd.IntN(1+rnd.IntN(200))), host: rnd.IntN(4), namespace: rnd.IntN(3)}
			list = append(list, n)
			total += n.events
		}
		keep := rnd.Int64N(total + 1)

		gone := map[int64]int64{}
		left := total
		for _, s := range surplusEvents(append([]sourceCount(nil), list...), keep) {
			if s.events <= 0 || gone[s.src] > 0 {
				t.Fatalf("seed %d: %+v", seed, s)
			}
			gone[s.src] = s.events
			left -= s.events
		}
		if left != keep {
			t.Fatalf("seed %d: %d events are left of %d, want %d", seed, left, total, keep)
		}

		type owner struct{ kept, gone int64 }
		for level, key := range []func(sourceCount) [3]int{
			func(n sourceCount) [3]int { return [3]int{n.host} },
			func(n sourceCount) [3]int { return [3]int{n.host, n.namespace} },
			func(n sourceCount) [3]int { return [3]int{n.host, n.namespace, int(n.src)} },
		} {
			owners := map[[3]int]owner{}
			for _, n := range list {
				o := owners[key(n)]
				o.kept, o.gone = o.kept+n.events-gone[n.src], o.gone+gone[n.src]
				owners[key(n)] = o
			}
			for a, poor := range owners {
				for b, rich := range owners {
					same := level == 0 || level == 1 && a[0] == b[0] || a[0] == b[0] && a[1] == b[1]
					if same && poor.gone > 0 && rich.kept > poor.kept+1 {
						t.Fatalf("seed %d: %v gives up %d and keeps %d, %v keeps %d", seed, a, poor.gone, poor.kept, b, rich.kept)
					}
				}
			}
		}
	}
}
