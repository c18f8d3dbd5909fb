package live

import (
	"strings"
	"unicode/utf8"
)

// globs is a list of patterns of which one must fit; an empty list fits everything.
type globs []string

func (g globs) match(s string) bool {
	for _, p := range g {
		if glob(p, s) {
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

// glob matches * with any text and ? with one character. It goes back to the last * only, so the time is bounded by the product of the lengths.
func glob(pattern, s string) bool {
	star, resume := -1, 0
	p, i := 0, 0
	for i < len(s) {
		if p < len(pattern) {
			switch c := pattern[p]; {
			case c == '*':
				star, resume = p, i
				p++
				continue
			case c == '?':
				_, n := utf8.DecodeRuneInString(s[i:])
				p++
				i += n
				continue
			case c == s[i]:
				p++
				i++
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, n := utf8.DecodeRuneInString(s[resume:])
		resume += n
		p, i = star+1, resume
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
