package yamldoc

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxSize is the largest size of a file, in bytes.
const MaxSize = 64 << 20

// Limits of what is in a file.
const (
	maxDepth = 32
	maxNodes = 8 << 20
)

// Parse reads a file. The error is an *Error.
func Parse(src []byte) (_ *Node, err error) {
	if len(src) > MaxSize {
		return nil, &Error{Line: 1, Text: fmt.Sprintf("the document has %d bytes, at most %d are allowed", len(src),
			MaxSize)}
	}

	p := &parser{src: strings.TrimPrefix(string(src), "\ufeff"), line: 1}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case failure:
			err = (*Error)(&e)
		default:
			panic(e)
		}
	}()

	p.checkCharacters()
	p.start()
	root := p.document()
	p.finish()
	return &root, nil
}

// failure is the panic value with which fail ends the parser. Parse recovers it, so it never leaves the package.
type failure Error

// parser is a position in a file.
type parser struct {
	src       string
	pos       int
	line      int
	lineStart int
	depth     int
	nodes     int
}

// fail ends Parse with an error.
func (p *parser) fail(line int, format string, args ...any) {
	panic(failure{Line: line, Text: fmt.Sprintf(format, args...)})
}

// checkCharacters rejects what must not be anywhere in a file: control characters, characters that change the direction
// of writing, and bytes that are not UTF-8.
func (p *parser) checkCharacters() {
	line := 1
	for i := 0; i < len(p.src); {
		c := p.src[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '\n':
				line++
			case c == '\r' && i+1 < len(p.src) && p.src[i+1] == '\n', c == '\t':
			case c < ' ', c == 0x7f:
				p.fail(line, "control character %U", c)
			}
			i++
			continue
		}

		r, size := utf8.DecodeRuneInString(p.src[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			p.fail(line, "is not valid UTF-8")
		case unicode.IsControl(r), r == '\u2028', r == '\u2029', r == '\ufeff', unicode.Is(unicode.Bidi_Control, r):
			p.fail(line, "control or direction character %U", r)
		}
		i += size
	}
}

// start passes what may be before the document.
func (p *parser) start() {
	p.nextContent()
	if p.peek() == '%' {
		p.fail(p.line, "directives are not accepted")
	}
	if p.marker("---") {
		p.pos += len("---")
		p.expectEnd("after ---")
	}
}

// finish passes what may be after the document. Anything else is an error.
func (p *parser) finish() {
	p.nextContent()

	if p.marker("...") {
		p.pos += len("...")
		p.expectEnd("after ...")
		p.nextContent()
	}

	switch {
	case p.end():
	case p.marker("---"):
		p.fail(p.line, "only one document is accepted")
	default:
		p.fail(p.line, "does not belong to the value before it")
	}
}

// marker reports whether the current line begins with --- or another mark.
func (p *parser) marker(mark string) bool {
	return p.pos == p.lineStart && strings.HasPrefix(p.src[p.pos:], mark) && isSeparator(p.at(p.pos+len(mark)))
}

// node makes a node. It fails when there are too many.
func (p *parser) node(kind Kind, line int) Node {
	if p.nodes++; p.nodes > maxNodes {
		p.fail(line, "the document has more than %d values", maxNodes)
	}
	return Node{Kind: kind, Line: int32(line)} // cannot overflow: a file has at most MaxSize lines
}

// enter counts a level of nesting, and fails when there are too many. leave ends the level.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.line, "nested deeper than %d", maxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) end() bool { return p.pos >= len(p.src) }

// peek is the byte at the position, or 0 at the end: checkCharacters has rejected files with that byte.
func (p *parser) peek() byte { return p.at(p.pos) }

func (p *parser) at(i int) byte {
	if i < len(p.src) {
		return p.src[i]
	}
	return 0
}

// column is how many bytes of the line are before the position.
func (p *parser) column() int { return p.pos - p.lineStart }

// isSeparator reports whether a byte is white space, or the end of a line or of the file.
func isSeparator(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0 }

func isLineEnd(c byte) bool { return c == '\n' || c == '\r' || c == 0 }

// newLine passes the end of a line.
func (p *parser) newLine() {
	if p.peek() == '\r' {
		p.pos++
	}
	if p.peek() == '\n' {
		p.pos++
		p.line++
		p.lineStart = p.pos
	}
}

// skipBlanks passes spaces and tabs.
func (p *parser) skipBlanks() {
	for p.peek() == ' ' || p.peek() == '\t' {
		p.pos++
	}
}

// skipToLineEnd passes spaces and a comment, and reports whether the line ends there.
func (p *parser) skipToLineEnd() bool {
	from := p.pos
	p.skipBlanks()
	if p.pos > from || p.pos == p.lineStart {
		p.skipComment()
	}
	return isLineEnd(p.peek())
}

// skipComment passes a comment, if there is one.
func (p *parser) skipComment() {
	if p.peek() == '#' {
		for !isLineEnd(p.peek()) {
			p.pos++
		}
	}
}

// expectEnd fails if there is something else in the line. It goes to the next line.
func (p *parser) expectEnd(where string) {
	if !p.skipToLineEnd() {
		p.fail(p.line, "unexpected %s %s", p.word(), where)
	}
	p.newLine()
}

// nextContent goes to the first character that is not a space or a comment, in this line or below. It returns the
// column of that character, or -1 at the end of the document.
func (p *parser) nextContent() int {
	for !p.end() {
		for p.peek() == ' ' {
			p.pos++
		}
		column := p.column()
		tab := p.peek() == '\t'
		p.skipBlanks()
		p.skipComment()
		if !isLineEnd(p.peek()) {
			if tab {
				p.fail(p.line, "there is a tab in the indentation: use spaces")
			}
			return column
		}
		p.newLine()
	}
	return -1
}

// word is the word at the position, for messages.
func (p *parser) word() string {
	text := p.src[p.pos:]
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		text = text[:i]
	}
	return fmt.Sprintf("%.40q", text)
}
