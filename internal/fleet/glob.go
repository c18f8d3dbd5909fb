package fleet

import (
	"strings"

	"github.com/gozzard/gozzard"
)

// globs is a list of patterns of which one must fit; an empty list fits everything.
type globs []string

func (g globs) match(s string) bool {
	for _, p := range g {
		if gozzard.MatchGlob(p, s) {
			return true
		}
	}
	return len(g) == 0
}

// literal returns the one text that can fit, ok is false when there may be several.
func (g globs) literal() (text string, ok bool) {
	if len(g) != 1 || strings.ContainsAny(g[0], "*?") {
		return "", false
	}
	return g[0], true
}
