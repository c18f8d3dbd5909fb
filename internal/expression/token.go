package expression

import (
	"strings"
	"unicode/utf8"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokenText tokenKind = iota
	tokenAny            // one character
	tokenStar           // any characters
	tokenClass
	tokenNumber
)

// token is one element of a pattern.
type token struct {
	kind    tokenKind
	text    string
	class   *class
	numbers *numbers
}

func (t token) numeric() bool { return t.kind == tokenNumber }

// width is how many bytes at the beginning of s the token matches, -1 if it does not match. It must not be called for a
// star or a number, which have no single width.
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

// compileGlob parses a shell-style pattern as Python's fnmatch does: a [ begins a class if a ] follows after the first
// character of the class, otherwise it is text. wrong is the position of a range of characters that runs backwards, -1
// if there is none.
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

// compileClass parses the body of a class. wrong is as in compileGlob.
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

// appendToken appends a token. It merges adjacent texts and adjacent stars into one token.
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
