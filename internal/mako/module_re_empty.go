package mako

import (
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// After a match that is not empty, Python also takes an empty one at its end, and Go does not. Where the pattern does not look at what is
// before a match, and prefers what is not empty, both can be had: the text is searched again from the end of each match.

// emptyLast reports whether a pattern takes nothing only where it can take nothing else: all repetitions are greedy, and of
// alternatives only the last one may be empty.
func emptyLast(r *syntax.Regexp) bool {
	if r.Flags&syntax.NonGreedy != 0 {
		return false
	}
	if r.Op == syntax.OpAlternate && slices.ContainsFunc(r.Sub[:len(r.Sub)-1], func(sub *syntax.Regexp) bool { return shortest(sub) == 0 }) {
		return false
	}
	return !slices.ContainsFunc(r.Sub, func(sub *syntax.Regexp) bool { return !emptyLast(sub) })
}

// looksBack reports whether a pattern looks at what is before a match.
func looksBack(r *syntax.Regexp) bool {
	switch r.Op {
	case syntax.OpBeginLine, syntax.OpBeginText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(r.Sub, looksBack)
}

// onlyAtStart reports whether a pattern matches at the start of a text only.
func onlyAtStart(r *syntax.Regexp) bool {
	return r.Op == syntax.OpBeginText || (r.Op == syntax.OpConcat || r.Op == syntax.OpCapture) && onlyAtStart(r.Sub[0])
}

// withEmpty are the first matches in a text, the empty ones at the end of others included.
func (c *call) withEmpty(p *pattern, s string, most int) (all [][]int, err error) {
	at, advance := 0, false // whether a match at this place must not be empty
	for at <= len(s) && (most < 0 || len(all) < most) {
		if err := c.run.spend(16 * (p.NumSubexp() + 1)); err != nil {
			return nil, err
		}
		if c.run.ctx.Err() != nil {
			return nil, &limitError{errTime}
		}

		m := p.FindStringSubmatchIndex(s[at:])
		if m != nil && advance && m[1] == 0 {
			_, size := utf8.DecodeRuneInString(s[at:])
			if at += max(size, 1); at > len(s) {
				break
			}
			m = p.FindStringSubmatchIndex(s[at:])
		}
		if m == nil {
			break
		}
		for i := range m {
			if m[i] >= 0 {
				m[i] += at
			}
		}
		all = append(all, m)
		at, advance = m[1], m[1] == m[0]
	}
	return all, nil
}
