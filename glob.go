package gozzard

import "unicode/utf8"

// MatchGlob reports whether a text matches a pattern: * matches any text, ? one character. It goes back to the last *
// only, so the time is bounded by the product of the lengths.
func MatchGlob(pattern, text string) bool {
	star, resume := -1, 0
	p, i := 0, 0
	for i < len(text) {
		if p < len(pattern) {
			switch c := pattern[p]; {
			case c == '*':
				star, resume = p, i
				p++
				continue
			case c == '?':
				_, n := utf8.DecodeRuneInString(text[i:])
				p++
				i += n
				continue
			case c == text[i]:
				p++
				i++
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, n := utf8.DecodeRuneInString(text[resume:])
		resume += n
		p, i = star+1, resume
	}

	for p < len(pattern) && pattern[p] == '*' {
		p++
	}

	return p == len(pattern)
}
