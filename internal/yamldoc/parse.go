package yamldoc

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a file.
const (
	MaxSize  = 64 << 20
	maxDepth = 32
	maxNodes = 8 << 20
)

// Parse reads a file. Its error is an *Error.
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

	p.check()
	p.open()
	root := p.document()
	p.finish()
	return &root, nil
}

// failure unwinds the parser: there is one first error, wherever it is found. It never leaves Parse.
type failure Error

// parser stands at one place of a file.
type parser struct {
	src   string
	pos   int
	line  int
	begin int // of the line
	depth int
	nodes int
}

func (p *parser) fail(line int, format string, args ...any) {
	panic(failure{Line: line, Text: fmt.Sprintf(format, args...)})
}

// check refuses what no part of a file may have.
func (p *parser) check() {
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

// open passes what may stand before the document.
func (p *parser) open() {
	p.content()
	if p.peek() == '%' {
		p.fail(p.line, "directives are not accepted")
	}
	if p.marker("---") {
		p.pos += len("---")
		p.endLine("after ---")
	}
}

// finish passes what may stand behind it.
func (p *parser) finish() {
	p.content()

	if p.marker("...") {
		p.pos += len("...")
		p.endLine("after ...")
		p.content()
	}

	switch {
	case p.end():
	case p.marker("---"):
		p.fail(p.line, "only one document is accepted")
	default:
		p.fail(p.line, "does not belong to the value before it")
	}
}

// marker reports whether a line begins with a mark of documents.
func (p *parser) marker(mark string) bool {
	return p.pos == p.begin && strings.HasPrefix(p.src[p.pos:], mark) && blank(p.at(p.pos+len(mark)))
}

// node makes a node and counts it.
func (p *parser) node(kind Kind, line int) Node {
	if p.nodes++; p.nodes > maxNodes {
		p.fail(line, "the document has more than %d values", maxNodes)
	}
	return Node{Kind: kind, Line: int32(line)} // at most MaxSize
}

// enter goes one level deeper, leave comes back.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.line, "nested deeper than %d", maxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) end() bool { return p.pos >= len(p.src) }

// peek is the byte at the place, 0 at the end: no file has that byte.
func (p *parser) peek() byte { return p.at(p.pos) }

func (p *parser) at(i int) byte {
	if i < len(p.src) {
		return p.src[i]
	}
	return 0
}

// column is how many bytes stand before the place in its line.
func (p *parser) column() int { return p.pos - p.begin }

// blank reports whether a byte separates: white space, a line's end or the file's.
func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0 }

func lineEnd(c byte) bool { return c == '\n' || c == '\r' || c == 0 }

// newLine passes a line's end.
func (p *parser) newLine() {
	if p.peek() == '\r' {
		p.pos++
	}
	if p.peek() == '\n' {
		p.pos++
		p.line++
		p.begin = p.pos
	}
}

// blanks passes white space inside a line.
func (p *parser) blanks() {
	for p.peek() == ' ' || p.peek() == '\t' {
		p.pos++
	}
}

// rest passes white space and a comment, and reports whether the line ends there.
func (p *parser) rest() bool {
	from := p.pos
	p.blanks()
	if p.pos > from || p.pos == p.begin {
		p.comment()
	}
	return lineEnd(p.peek())
}

// comment passes a comment, if one begins here.
func (p *parser) comment() {
	if p.peek() == '#' {
		for !lineEnd(p.peek()) {
			p.pos++
		}
	}
}

// endLine demands that nothing more stands in the line.
func (p *parser) endLine(where string) {
	if !p.rest() {
		p.fail(p.line, "unexpected %s %s", p.word(), where)
	}
	p.newLine()
}

// content goes to the first sign of the next line that has one, and tells its column, -1 at the end of the document.
func (p *parser) content() int {
	for !p.end() {
		for p.peek() == ' ' {
			p.pos++
		}
		column := p.column()
		tab := p.peek() == '\t'
		p.blanks()
		p.comment()
		if !lineEnd(p.peek()) {
			if tab {
				p.fail(p.line, "a tab stands in the indentation: use blanks")
			}
			return column
		}
		p.newLine()
	}
	return -1
}

// word is what stands at the place, for messages.
func (p *parser) word() string {
	text := p.src[p.pos:]
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		text = text[:i]
	}
	return fmt.Sprintf("%.40q", text)
}
