package expression

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// matchRun matches tokens without numbers. Each star matches as little as possible. On a mismatch it is enough to
// extend the last star: a longer match of an earlier star would only leave less text for the later ones.
func matchRun(tokens []token, s string) bool {
	star, from := -1, 0 // the token after the last star, and where it was tried last
	for i, pos := 0, 0; ; {
		switch {
		case i < len(tokens) && tokens[i].kind == tokenStar:
			if i++; i == len(tokens) {
				return true
			}
			star, from = i, pos
			continue
		case i == len(tokens) && pos == len(s):
			return true
		case i < len(tokens):
			if n := tokens[i].width(s[pos:]); n >= 0 {
				pos += n
				i++
				continue
			}
		}

		// Extend the last star by one character, or to the next place where the text after it occurs.
		if star < 0 || from >= len(s) {
			return false
		}
		_, size := utf8.DecodeRuneInString(s[from:])
		from += size
		if tokens[star].kind == tokenText {
			next := strings.Index(s[from:], tokens[star].text)
			if next < 0 {
				return false
			}
			from += next
		}
		i, pos = star, from
	}
}

// places is a set of positions in the matched text.
type places []uint64

func (p places) add(i int) { p[i>>6] |= 1 << (i & 63) }

func (p places) has(i int) bool { return p[i>>6]&(1<<(i&63)) != 0 }

// next is the first position in the set at or after i, -1 if there is none.
func (p places) next(i int) int {
	w := i >> 6
	if w >= len(p) {
		return -1
	}
	for word := p[w] &^ (1<<(i&63) - 1); ; word = p[w] {
		if word != 0 {
			return w<<6 + bits.TrailingZeros64(word)
		}
		if w++; w == len(p) {
			return -1
		}
	}
}

// matchParts follows all alternatives at the same time: it computes the set of positions where the parts so far can
// end.
func matchParts(parts []part, s string) bool {
	n := len(s)>>6 + 1
	var small [16]uint64
	buf := small[:]
	if 4*n > len(buf) {
		buf = make([]uint64, 4*n)
	}

	in, out, a, b := places(buf[:n]), places(buf[n:2*n]), places(buf[2*n:3*n]), places(buf[3*n:4*n])
	in.add(0)

	for _, part := range parts {
		clear(out)
		for _, tokens := range part.choices {
			copy(a, in)
			for _, t := range tokens {
				clear(b)
				step(t, s, a, b)
				a, b = b, a
			}
			for i, w := range a {
				out[i] |= w
			}
		}
		if out.next(0) < 0 {
			return false
		}
		in, out = out, in
	}

	return in.has(len(s))
}

// step adds to the set to all positions that the token reaches from the positions in the set from.
func step(t token, s string, from, to places) {
	i := from.next(0)
	if t.kind == tokenStar && i >= 0 {
		for rest := s[i:]; rest != ""; {
			to.add(len(s) - len(rest))
			_, size := utf8.DecodeRuneInString(rest)
			rest = rest[size:]
		}
		to.add(len(s))
		return
	}

	for ; i >= 0; i = from.next(i + 1) {
		if t.kind != tokenNumber {
			if n := t.width(s[i:]); n >= 0 {
				to.add(i + n)
			}
			continue
		}
		first, last := t.numbers.widths(s[i:])
		for n := first; n <= last; n++ {
			to.add(i + n)
		}
	}
}
