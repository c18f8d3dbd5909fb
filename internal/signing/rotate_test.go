package signing_test

import (
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
)

// TestTT10CommandsAcrossARotation: a command that was begun before a rotation is valid after it, and the next command of
// any kind introduces the new key. From then on the old key is rejected.
func TestTT10CommandsAcrossARotation(t *testing.T) {
	s := signer(t, t.TempDir())
	r := ring(t, t.TempDir(), s.Key())
	begin := func() []byte {
		return s.Begin(nil, "a", gozzard.CommandAck, func(b []byte) []byte { return append(b, "x"...) })
	}

	before, late := begin(), begin()
	old, next, err := s.Rotate(func(signing.Key) error { return nil })
	if err != nil || next.Epoch != old.Epoch+1 || s.Key() != next {
		t.Fatalf("rotated from %v to %v: %v", old, next, err)
	}
	after := begin()
	if err := s.Sign([]*[]byte{&before, &after, &late}); err != nil {
		t.Fatal(err)
	}

	for _, b := range [][]byte{before, after} {
		if _, err := r.Open("a", b); err != nil {
			t.Fatal(err)
		}
	}
	if r.Key() != next {
		t.Errorf("the ring has %v", r.Key())
	}
	if _, err := r.Open("a", late); rule(t, err) != signing.RuleEpoch {
		t.Errorf("the old key after the new one: %v", err)
	}
}
