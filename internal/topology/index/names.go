package index

import (
	"slices"

	"github.com/gozzard/gozzard/internal/expression"
)

// nameTest is a condition on names: one of a list, and an expression. Each name is tested once.
type nameTest struct {
	asks  bool
	in    []string // sorted; nil: all
	e     *expression.Expression
	names []string
	memo  []memo // of each in names
}

// newNameTest prepares a condition on a list of names. Without a list only matchesText can be used, which remembers
// nothing.
func newNameTest(s *scratch, about int, names, in []string, e *expression.Expression) nameTest {
	if e != nil && e.All() {
		e = nil
	}
	t := nameTest{asks: len(in) > 0 || e != nil, e: e, names: names}
	if len(in) > 0 {
		t.in = slices.Compact(slices.Sorted(slices.Values(in)))
	}
	if t.asks && names != nil {
		t.memo = s.newMemos(about, len(names))
	}
	return t
}

// matches tests a name by its position in the list.
func (t *nameTest) matches(name uint32) bool {
	if !t.asks {
		return true
	}
	if t.memo[name] == unknown {
		t.memo[name] = memoOf(t.matchesText(t.names[name]))
	}
	return t.memo[name] == yes
}

func (t *nameTest) matchesText(s string) bool {
	if t.in != nil {
		if _, ok := slices.BinarySearch(t.in, s); !ok {
			return false
		}
	}
	return t.e == nil || t.e.Match(s)
}

// literals returns the only names that can match, if the query has no wildcards.
func (t *nameTest) literals() ([]string, bool) {
	if t.in != nil {
		return t.in, true
	}
	if t.e != nil {
		return t.e.Literals()
	}
	return nil, false
}
