package expression

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokenText tokenKind = iota
	tokenAny            // one character
	tokenStar           // any characters
	tokenClass
	tokenNumber
)

// token is one thing of a pattern.
type token struct {
	kind    tokenKind
	text    string
	class   *class
	numbers *numbers
}

func (t token) numeric() bool { return t.kind == tokenNumber }

// width is how many bytes at the beginning of s the token takes, -1 when it does not fit. A star or number has no
// single width and is not asked.
func (t token) width(s string) int {
	if t.kind == tokenText {
		if strings.HasPrefix(s, t.text) {
			return len(t.text)
		}
		return -1
	}

	if s == "" {
		return -1
	}

	r, size := utf8.DecodeRuneInString(s)
	if t.kind == tokenClass && !t.class.has(r) {
		return -1
	}

	return size
}

// class is a set of characters.
type class struct {
	negated bool
	ranges  [][2]rune
}

func (c *class) has(r rune) bool {
	for _, x := range c.ranges {
		if r >= x[0] && r <= x[1] {
			return !c.negated
		}
	}
	return c.negated
}

// compileGlob reads a shell-style pattern as Python's fnmatch does: a [ begins a class when a ] follows later than
// at the first place of the class, otherwise it is text. wrong is where a range of characters runs backwards, -1 if
// none does.
func compileGlob(pattern []rune) (tokens []token, wrong int) {
	for i := 0; i < len(pattern); {
		t := token{kind: tokenText, text: string(pattern[i])}
		next := i + 1
		switch pattern[i] {
		case '*':
			t = token{kind: tokenStar}
		case '?':
			t = token{kind: tokenAny}
		case '[':
			if end := classEnd(pattern, i+1); end >= 0 {
				c, wrong := compileClass(pattern[i+1 : end])
				if wrong >= 0 {
					return nil, i + 1 + wrong
				}
				t, next = token{kind: tokenClass, class: c}, end+1
			}
		}
		tokens = appendToken(tokens, t)
		i = next
	}
	return tokens, -1
}

func classEnd(pattern []rune, i int) int {
	if i < len(pattern) && pattern[i] == '!' {
		i++
	}
	if i >= len(pattern) {
		return -1
	}
	return index(pattern, ']', i+1)
}

func compileClass(body []rune) (c *class, wrong int) {
	c = &class{negated: body[0] == '!'}
	i := 0

	if c.negated {
		i = 1
	}

	for i < len(body) {
		if i+2 < len(body) && body[i+1] == '-' {
			if body[i] > body[i+2] {
				return nil, i
			}
			c.ranges = append(c.ranges, [2]rune{body[i], body[i+2]})
			i += 3
			continue
		}
		c.ranges = append(c.ranges, [2]rune{body[i], body[i]})
		i++
	}

	return c, -1
}

// appendToken keeps runs of text and of stars as one token.
func appendToken(tokens []token, t token) []token {
	if len(tokens) > 0 {
		switch last := &tokens[len(tokens)-1]; {
		case last.kind == tokenStar && t.kind == tokenStar:
			return tokens
		case last.kind == tokenText && t.kind == tokenText:
			last.text += t.text
			return tokens
		}
	}
	return append(tokens, t)
}

func joinTokens(a, b []token) []token {
	for _, t := range b {
		a = appendToken(a, t)
	}
	return a
}

// matchRun matches tokens without numbers. Each star takes as little as it can; going back to the last one is
// enough, since an earlier star could only give the later ones less to choose from.
func matchRun(tokens []token, s string) bool {
	star, from := -1, 0 // the last star and where the text after it was tried
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
		if star < 0 || from >= len(s) {
			return false
		}
		_, size := utf8.DecodeRuneInString(s[from:])
		from += size
		if tokens[star].kind == tokenText { // nothing fits before it comes up again
			next := strings.Index(s[from:], tokens[star].text)
			if next < 0 {
				return false
			}
			from += next
		}
		i, pos = star, from
	}
}

// places is a set of positions in the text that is matched.
type places []uint64

func (p places) add(i int) { p[i>>6] |= 1 << (i & 63) }

func (p places) has(i int) bool { return p[i>>6]&(1<<(i&63)) != 0 }

// next is the first place at or after i, -1 when there is none.
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

// matchParts follows all ways through the parts at once: the set of places where the text so far may end.
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

// step adds to the set to where the token leads from the places of the set from.
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

// maxLiterals is how many texts still count as few.
const maxLiterals = MaxAlternatives

// literals lists every text that fits, nil when they are not all written out or more than a few.
func literals(parts []part) []string {
	list := []string{""}
	for _, part := range parts {
		var next []string
		for _, tokens := range part.choices {
			ends := []string{""}
			for _, t := range tokens {
				texts, ok := t.texts(maxLiterals)
				if !ok || len(ends)*len(texts) > maxLiterals {
					return nil
				}
				ends = combine(ends, texts)
			}
			if len(next)+len(list)*len(ends) > maxLiterals {
				return nil
			}
			next = append(next, combine(list, ends)...)
		}
		list = next
	}

	return unique(list)
}

// texts lists what a token stands for, when these are at most limit.
func (t token) texts(limit int) ([]string, bool) {
	switch t.kind {
	case tokenText:
		return []string{t.text}, true
	case tokenNumber:
		return t.numbers.texts(limit)
	}
	return nil, false
}

func combine(heads, ends []string) []string {
	list := make([]string, 0, len(heads)*len(ends))
	for _, head := range heads {
		for _, end := range ends {
			list = append(list, head+end)
		}
	}
	return list
}
