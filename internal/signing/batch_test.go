package signing_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
)

// batch signs a command for each of n agents with as few signatures as possible.
func batch(s *signing.Signer, n int) [][]byte {
	all := make([][]byte, n)
	begun := make([]*[]byte, n)
	for i := range all {
		all[i] = s.Begin(nil, agentName(i), gozzard.CommandAck,
			func(b []byte) []byte { return fmt.Appendf(b, "for %d", i) })
		begun[i] = &all[i]
	}
	if err := s.Sign(begun); err != nil {
		panic(err)
	}
	return all
}

func agentName(i int) gozzard.AgentID { return gozzard.AgentID(fmt.Sprintf("agent-%d", i)) }

// In a batch of any size each envelope opens alone, for its agent only, and there are few signatures.
func TestBatches(t *testing.T) {
	s := signer(t, t.TempDir())
	r := ring(t, t.TempDir(), s.Key())
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, signing.MaxBatch - 1, signing.MaxBatch,
		signing.MaxBatch + 1, 2*signing.MaxBatch + 1} {
		signatures := map[string]bool{}
		for i, b := range batch(s, n) {
			payload, err := r.Open(agentName(i), b)
			if err != nil || string(payload) != fmt.Sprintf("for %d", i) {
				t.Fatalf("%d of %d: %q, %v", i, n, payload, err)
			}
			if _, err := r.Open(agentName(i+1), b); rule(t, err) != signing.RuleAgent {
				t.Fatalf("%d of %d: %v", i, n, err)
			}
			signatures[string(b[len(b)-64:])] = true
		}
		if want := (n + signing.MaxBatch - 1) / signing.MaxBatch; len(signatures) != want {
			t.Fatalf("%d envelopes have %d signatures, want %d", n, len(signatures), want)
		}
	}
}

// TT1: in a batch every bit counts too, and no part of one envelope proves another.
func TestTT1EveryBitOfABatchCounts(t *testing.T) {
	s := signer(t, t.TempDir())
	r := ring(t, t.TempDir(), s.Key())
	all := batch(s, 3) // an odd number, so that one has a shorter path
	for i, whole := range all {
		for at := range whole {
			for bit := range 8 {
				b := slices.Clone(whole)
				b[at] ^= 1 << bit
				if _, err := r.Open(agentName(i), b); err == nil {
					t.Fatalf("envelope %d opens with bit %d of byte %d changed", i, bit, at)
				}
			}
		}
		body := bytes.Index(whole, fmt.Appendf(nil, "for %d", i)) + len("for 0")
		for j, other := range all {
			if i == j {
				continue
			}
			end := bytes.Index(other, fmt.Appendf(nil, "for %d", j)) + len("for 0")
			if _, err := r.Open(agentName(i), append(slices.Clone(whole[:body]), other[end:]...)); err == nil {
				t.Fatalf("envelope %d opens with the way of envelope %d", i, j)
			}
		}
		steps := int(whole[body])
		for cut := range steps { // a path that ends too early or begins too late
			early := append(slices.Clone(whole[:body]), byte(cut))
			early = append(append(early, whole[body+1:body+1+33*cut]...), whole[len(whole)-64:]...)
			late := append(slices.Clone(whole[:body]), byte(cut))
			late = append(late, whole[body+1+33*(steps-cut):]...)
			for _, b := range [][]byte{early, late} {
				if _, err := r.Open(agentName(i), b); err == nil {
					t.Fatalf("envelope %d opens with %d of %d steps", i, cut, steps)
				}
			}
		}
	}
}

func BenchmarkBatch(b *testing.B) {
	s := signer(b, b.TempDir())
	for b.Loop() {
		batch(s, signing.MaxBatch)
	}
}
