package enrol_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzToken: a text that is a token has one spelling, and no error repeats a part of one that is not.
func FuzzToken(f *testing.F) {
	z := fuzztest.New(f)
	part := strings.Repeat("A", 43)
	for _, s := range []string{"gz1.abc." + part + "." + part, "gz1..." + part, "gz2.abc." + part + "." + part,
		"\ngz1.abc234." + part + "." + part + "\n", ""} {
		z.Add(s)
	}

	z.Fuzz(func(t *testing.T, text string) {
		token, err := enrol.ParseToken(text)
		if err != nil {
			if parts := strings.Split(text, "."); len(parts) > 2 && len(parts[2]) > 16 &&
				strings.Contains(err.Error(), parts[2]) {
				t.Fatalf("a secret in %v", err)
			}
			return
		}
		again, err := enrol.ParseToken(token.String())
		if err != nil || again != token || token.String() != strings.TrimSpace(text) {
			t.Fatalf("%q is %v, then %v, %v", text, token, again, err)
		}
	})
}
