package yamldoc

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scalar reads a text or null. flow says whether it is inside of brackets.
func (p *parser) scalar(flow bool) Node {
	if c := p.peek(); c == '"' || c == '\'' {
		n := p.node(Quoted, p.line)
		n.Text = p.quoted()
		return n
	}

	n := p.node(Plain, p.line)
	n.Text = p.plainText(flow)
	switch n.Text {
	case "":
		p.fail(p.line, "expected a value, found %s", p.word())
	case "~", "null", "Null", "NULL":
		n.Kind, n.Text = Null, ""
	}

	return n
}

// key reads the key of a mapping and the spaces after it.
func (p *parser) key(flow bool) string {
	var key string
	if c := p.peek(); c == '"' || c == '\'' {
		key = p.quoted()
	} else if key = p.plainText(flow); key == "" {
		p.fail(p.line, "expected a key, found %s", p.word())
	}
	p.skipBlanks()
	return key
}

// plainText reads a text without quotes, up to what ends it, and leaves out the spaces before that. It returns ""
// where no text can begin.
func (p *parser) plainText(flow bool) string {
	p.checkStart(flow)
	from, to := p.pos, p.pos
	for ; !isLineEnd(p.peek()); p.pos++ {
		c := p.peek()
		next := p.at(p.pos + 1)
		if c == ':' && (isSeparator(next) || flow && isFlowSign(next)) || flow && isFlowSign(c) ||
			c == '#' && p.pos > from && isSeparator(p.src[p.pos-1]) {
			break
		}
		if c != ' ' && c != '\t' {
			to = p.pos + 1
		}
	}

	p.pos = to
	return p.src[from:to]
}

// checkStart rejects what a text without quotes cannot begin with. The error says what it would mean in YAML.
func (p *parser) checkStart(flow bool) {
	switch c := p.peek(); c {
	case '&':
		p.fail(p.line, "anchors are not accepted; put a text that begins with & in quotes")
	case '*':
		p.fail(p.line, "aliases are not accepted; put a text that begins with * in quotes")
	case '!':
		p.fail(p.line, "tags are not accepted; put a text that begins with ! in quotes")
	case '%', '@', '`', '|', '>', '"', '\'', '#':
		p.fail(p.line, "a text that begins with %c must be in quotes", c)
	case ',', '[', ']', '{', '}':
		p.fail(p.line, "unexpected %q", string(c))
	case '-', '?':
		if next := p.at(p.pos + 1); isSeparator(next) || flow && isFlowSign(next) {
			p.fail(p.line, "unexpected %q", string(c))
		}
	}
}

// quoted reads a text in quotes, which must end on its line.
func (p *parser) quoted() string {
	quote := p.peek()
	from := p.pos + 1
	i := from
	escaped := false
	for {
		switch c := p.at(i); {
		case isLineEnd(c):
			p.fail(p.line, "the quotes are not closed on their line")
		case c == '\\' && quote == '"':
			escaped = true
			i++
			if isLineEnd(p.at(i)) {
				p.fail(p.line, "the quotes are not closed on their line")
			}
		case c == quote && quote == '\'' && p.at(i+1) == quote:
			escaped = true
			i++
		case c == quote:
			p.pos = i + 1
			text := p.src[from:i]
			switch {
			case !escaped:
				return text
			case quote == '\'':
				return strings.ReplaceAll(text, "''", "'")
			}
			return p.unescape(text)
		}
		i++
	}
}

// unescape replaces the escapes in a text that was between double quotes.
func (p *parser) unescape(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		c := after[0]
		text = after[1:]
		if size := hexSize(c); size > 0 {
			text = p.codePoint(&b, text, size)
			continue
		}
		i := strings.IndexByte(escapes, c)
		if i < 0 {
			p.fail(p.line, "unknown escape \\%c", c)
		}
		b.WriteRune(meanings[i])
	}
}

// escapes are the characters that may follow a backslash, in the order of meanings.
const escapes = `0abtnvfre"/\N_LP` + " \t"

var meanings = [...]rune{0, 7, 8, 9, 10, 11, 12, 13, 27, '"', '/', '\\', 0x85, 0xa0, 0x2028, 0x2029, ' ', '\t'}

// hexSize is how many hexadecimal digits follow an escape, or 0.
func hexSize(c byte) int {
	switch c {
	case 'x':
		return 2
	case 'u':
		return 4
	case 'U':
		return 8
	}
	return 0
}

// codePoint reads the number of a character, of size hexadecimal digits, and writes the character to b. JSON writes
// characters beyond 16 bits as two numbers. It returns the rest of the text.
func (p *parser) codePoint(b *strings.Builder, text string, size int) string {
	r := p.hex(text, size)
	text = text[size:]
	if utf16.IsSurrogate(r) && strings.HasPrefix(text, `\u`) {
		r = utf16.DecodeRune(r, p.hex(text[2:], 4))
		text = text[6:]
		if r == utf8.RuneError {
			p.fail(p.line, "an escape is only half of a character")
		}
	}

	if !utf8.ValidRune(r) {
		p.fail(p.line, "an escape is not a valid character")
	}

	b.WriteRune(r)
	return text
}

func (p *parser) hex(text string, size int) rune {
	if len(text) < size {
		p.fail(p.line, "an escape is too short")
	}
	n, err := strconv.ParseUint(text[:size], 16, 32)
	if err != nil || n > utf8.MaxRune {
		p.fail(p.line, "an escape is not a valid character")
	}
	return rune(n) // at most MaxRune
}
