package expression_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/expression"
)

// TestTD6ExpressionBombs: expressions that take exponential time in other matchers are rejected or matched at once. The
// time limit is generous, for busy machines: exponential time would be hours.
func TestTD6ExpressionBombs(t *testing.T) {
	long := strings.Repeat("a", 4096)
	start := time.Now()

	for _, text := range []string{
		strings.Repeat("*", 1000), strings.Repeat("*a", 500) + "b", strings.Repeat("a*", 500),
		strings.Repeat("?*", 500), strings.Repeat("[a,b]", 200), strings.Repeat("[a,aa]", 9) + "*b",
		strings.Repeat("[", 1000), "[" + strings.Repeat("a,", 500) + "]", "[1-99999999999999999999999999]",
		strings.Repeat("[1-999999999]", 40), strings.Repeat("[!a]*", 200),
		strings.Repeat("[[a,b]]", 140), strings.Repeat("*", 1<<20), strings.Repeat("[0-9]*", 150) + "x",
	} {
		e, err := expression.Parse(text)
		if err != nil {
			continue
		}
		for range 100 {
			e.Match(long)
		}
	}

	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %v", took)
	}
}
