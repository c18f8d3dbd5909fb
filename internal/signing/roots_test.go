package signing_test

import (
	"slices"
	"testing"

	"github.com/gozzard/gozzard/internal/signing"
)

// A ring that many agents share rejects what the ring of one agent rejects, also when it knows the root already.
func TestSharedRootsProveNothingElse(t *testing.T) {
	s, other := signer(t, t.TempDir()), signer(t, t.TempDir())
	r := ring(t, t.TempDir(), s.Key())
	r.ShareRoots()
	all, foreign := batch(s, 5), batch(other, 5)
	for range 2 {
		for i, b := range all {
			wants(t, r, agentName(i), b, "")
			wants(t, r, agentName(i+1), b, signing.RuleAgent)
		}
	}

	for i, whole := range all {
		for at := range whole {
			changed := slices.Clone(whole)
			changed[at] ^= 1
			if _, err := r.Open(agentName(i), changed); err == nil {
				t.Fatalf("byte %d of envelope %d can be changed", at, i)
			}
		}
		wants(t, r, agentName(i), foreign[i], signing.RuleKey)

		// The right key's name, and even the right path, with the signature of another key.
		forged := slices.Clone(whole)
		copy(forged[len(forged)-64:], foreign[i][len(foreign[i])-64:])
		wants(t, r, agentName(i), forged, signing.RuleSignature)
	}
}
