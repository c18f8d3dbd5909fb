package fleet

import (
	"strings"

	"github.com/gozzard/gozzard"
)

// globs is a list of patterns. A text matches if it matches one of them; an empty list matches everything.
type globs []string

func (g globs) match(s string) bool {
	for _, p := range g {
		if gozzard.MatchGlob(p, s) {
			return true
		}
	}
	return len(g) == 0
}

// literal returns the only text that can match; ok is false if there may be several.
func (g globs) literal() (text string, ok bool) {
	if len(g) != 1 || strings.ContainsAny(g[0], "*?") {
		return "", false
	}
	return g[0], true
}
