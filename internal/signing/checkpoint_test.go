package signing_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/test/fuzztest"
)

func checkpoint(t testing.TB) (signing.Checkpoint, signing.Key) {
	t.Helper()
	s, err := signing.OpenSigner(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Checkpoint(gozzard.AuditHead{Seq: 4711, Hash: gozzard.AuditHash{1, 2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	return c, s.Key()
}

// TR1: a checkpoint is valid only with its signature.
func TestTR1CheckpointEveryCharacterCounts(t *testing.T) {
	c, key := checkpoint(t)
	text := c.String()

	if err := c.Verify([]signing.Key{key}); err != nil {
		t.Fatal(err)
	}
	if _, other := checkpoint(t); c.Verify([]signing.Key{other}) == nil || c.Verify(nil) == nil {
		t.Error("it counts for another server")
	}

	for i := range text {
		for _, r := range "0aZ." {
			changed := text[:i] + string(r) + text[i+1:]
			if changed == text {
				continue
			}
			if got, err := signing.ParseCheckpoint(changed); err == nil && got.Verify([]signing.Key{key}) == nil {
				t.Fatalf("changed at %d: %s", i, changed)
			}
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	c, key := checkpoint(f)
	z := fuzztest.New(f)
	z.Add(c.String())
	z.Add(strings.Replace(c.String(), "4711", "-1", 1))
	z.Add("gzc1.1.2.3.4.5")

	z.Fuzz(func(t *testing.T, text string) {
		got, err := signing.ParseCheckpoint(text)
		if err != nil {
			return
		}
		if got.String() != text {
			t.Fatalf("%q is read as %q", text, got)
		}
		if got.Verify([]signing.Key{key}) == nil && text != c.String() {
			t.Fatalf("%q is proven", text)
		}
	})
}
