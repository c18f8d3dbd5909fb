package mako

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// partKind is what a part of a template is.
type partKind int

const (
	partText partKind = iota
	partComment
	partExpression // ${...}
	partCode       // <% %> and <%! %>
	partControl    // a line that begins with %
	partTag        // <%name ...>
)

// part is one part of a template, as Mako's lexer splits it.
type part struct {
	kind      partKind
	text      string
	filters   string // of an expression and of <%text>
	keyword   string // of a control line and of a tag
	end       bool   // a control line that ends a block
	module    bool   // <%! %>
	line, pos int
	tree      *node   // the Python of an expression, code or control line
	parts     []*part // inside a tag
}

// ParseError says why a text is no template.
type ParseError struct {
	Message   string
	Line, Pos int
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("%s at line: %d char: %d", e.Message, e.Line, e.Pos)
}

// lexer follows Mako's lexer of 1.2 to the letter, because texts depend on its oddities. One of them: where a pattern
// matches nothing, one character is skipped. That is how %% becomes % on all lines but the first.
type lexer struct {
	text         string
	at           int
	line, column int // at the position
	matchedLine  int // of the last match
	matchedPos   int
	tags         []*part
	controls     []*part
	parts        []*part
	unclosed     int // bytes that were searched in vain for the end of a string or tag
}

var codingLine = regexp.MustCompile(`^#.*coding[:=][ \t]*[-\w.]+.*\r?\n`)

// lex splits a text into parts and parses the Python in them.
func lex(text string) ([]*part, error) {
	l := &lexer{text: text, line: 1, column: 1, matchedLine: 1, matchedPos: 1}
	if first := codingLine.FindString(text); first != "" {
		l.take(len(first))
	}

	for l.at < len(l.text) {
		done := false
		for _, match := range []func() (bool, error){l.expression, l.control, l.comment, l.tagStart, l.tagEnd, l.code} {
			found, err := match()
			if err != nil {
				return nil, err
			}
			if found {
				done = true
				break
			}
		}
		if done {
			continue
		}
		if err := l.plain(); err != nil {
			return nil, err
		}
	}

	if n := len(l.tags); n > 0 {
		return nil, l.fail("Unclosed tag: <%%%s>", l.tags[n-1].keyword)
	}
	if n := len(l.controls); n > 0 {
		open := l.controls[n-1]
		return nil, &ParseError{fmt.Sprintf("Unterminated control keyword: '%s'", open.keyword), open.line, open.pos}
	}
	return l.parts, nil
}

// take moves past a match that ends n bytes after the position.
func (l *lexer) take(n int) {
	begin := l.at
	if n == 0 {
		_, n = utf8.DecodeRuneInString(l.text[l.at:])
		n = max(n, 1)
	}
	l.at = min(begin+n, len(l.text))
	l.matchedLine, l.matchedPos = l.line, l.column

	taken := l.text[begin:l.at]
	if i := strings.LastIndexByte(taken, '\n'); i >= 0 {
		l.line += strings.Count(taken, "\n")
		l.column = 1
		taken = taken[i+1:]
	}
	l.column += utf8.RuneCountInString(taken)
}

func (l *lexer) rest() string { return l.text[l.at:] }

func (l *lexer) fail(format string, args ...any) error {
	return &ParseError{fmt.Sprintf(format, args...), l.matchedLine, l.matchedPos}
}

// add appends a part where it belongs, and follows which tags and blocks are open.
func (l *lexer) add(p *part) error {
	if p.line == 0 {
		p.line, p.pos = l.matchedLine, l.matchedPos
	}
	if err := p.parse(); err != nil {
		return err
	}

	if n := len(l.tags); n > 0 {
		l.tags[n-1].parts = append(l.tags[n-1].parts, p)
	} else {
		l.parts = append(l.parts, p)
	}

	switch {
	case p.kind == partTag:
		l.tags = append(l.tags, p)
	case p.kind != partControl:
	case p.end:
		l.controls = l.controls[:len(l.controls)-1]
	case primary[p.keyword] && len(l.controls) >= maxNesting:
		return l.fail("too many nested blocks")
	case primary[p.keyword]:
		l.controls = append(l.controls, p)
	case len(l.controls) > 0:
		open := l.controls[len(l.controls)-1].keyword
		if !strings.Contains(ternaries[open], p.keyword+" ") {
			return l.fail("Keyword '%s' not a legal ternary for keyword '%s'", p.keyword, open)
		}
	}
	return nil
}

// The keywords that open a block, and those that may go on with it.
var (
	primary   = map[string]bool{"for": true, "if": true, "while": true, "try": true, "with": true}
	ternaries = map[string]string{"if": "else elif ", "try": "except finally ", "for": "else "}
)

func (l *lexer) expression() (bool, error) {
	if !strings.HasPrefix(l.rest(), "${") {
		return false, nil
	}
	l.take(2)
	p := &part{kind: partExpression, line: l.matchedLine, pos: l.matchedPos}

	text, end, err := l.until(true, "|", "}")
	if err != nil {
		return false, err
	}
	if end == "|" {
		if p.filters, _, err = l.until(true, "}"); err != nil {
			return false, err
		}
		p.filters = strings.TrimSpace(p.filters)
	}

	p.text = strings.ReplaceAll(text, "\r\n", "\n")
	return true, l.add(p)
}

func (l *lexer) code() (bool, error) {
	if !strings.HasPrefix(l.rest(), "<%") {
		return false, nil
	}
	p := &part{kind: partCode, module: strings.HasPrefix(l.rest(), "<%!")}
	if p.module {
		l.take(3)
	} else {
		l.take(2)
	}

	p.line, p.pos = l.matchedLine, l.matchedPos
	text, _, err := l.until(false, "%>")
	if err != nil {
		return false, err
	}
	p.text = dedent(text) + "\n"
	return true, l.add(p)
}

func (l *lexer) comment() (bool, error) {
	const begin, end = "<%doc>", "</%doc>"
	if !strings.HasPrefix(l.rest(), begin) {
		return false, nil
	}
	n := strings.Index(l.rest(), end)
	if n < 0 {
		return false, nil
	}
	text := l.rest()[len(begin):n]
	l.take(n + len(end))
	return true, l.add(&part{kind: partComment, text: text})
}

// lineStart reports whether the position is the begin of a line.
func (l *lexer) lineStart() bool { return l.at == 0 || l.text[l.at-1] == '\n' }

var controlText = regexp.MustCompile(`(?s)^(end)?([\p{L}\p{N}_]+)\s*(.*)`)

func (l *lexer) control() (bool, error) {
	text, comment, n := l.controlLine()
	if n == 0 {
		return false, nil
	}
	l.take(n)
	if comment {
		return true, l.add(&part{kind: partComment, text: text})
	}

	m := controlText.FindStringSubmatch(text)
	if m == nil {
		return false, l.fail("Invalid control line: '%s'", text)
	}
	p := &part{kind: partControl, text: text, keyword: m[2], end: m[1] != ""}
	if p.end {
		if len(l.controls) == 0 {
			return false, l.fail("No starting keyword '%s' for '%s'", p.keyword, text)
		}
		if open := l.controls[len(l.controls)-1].keyword; open != p.keyword {
			return false, l.fail("Keyword '%s' doesn't match keyword '%s'", text, open)
		}
	}
	return true, l.add(p)
}

// controlLine is the text of a control line or of a comment line at the position, and how long the line is.
func (l *lexer) controlLine() (text string, comment bool, n int) {
	if !l.lineStart() {
		return "", false, 0
	}
	s := l.rest()
	i := skipBlanks(s, 0)
	switch {
	case strings.HasPrefix(s[i:], "##"):
		comment = true
		i += 2
	case strings.HasPrefix(s[i:], "%") && !strings.HasPrefix(s[i:], "%%"):
		i++
	default:
		return "", false, 0
	}

	begin := skipBlanks(s, i)
	for i = begin; i < len(s); i++ {
		if joined := escapedNewline(s[i:]); joined > 0 {
			i += joined - 1
			continue
		}
		if s[i] == '\r' || s[i] == '\n' {
			break
		}
	}

	text = s[begin:i]
	switch {
	case i == len(s):
		return text, comment, i
	case s[i] == '\n':
		return text, comment, i + 1
	case strings.HasPrefix(s[i:], "\r\n"):
		return text, comment, i + 2
	}
	return "", false, 0
}

func skipBlanks(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

// escapedNewline is the length of a backslash with a newline at the begin of a text, or 0.
func escapedNewline(s string) int {
	switch {
	case strings.HasPrefix(s, "\\\n"):
		return 2
	case strings.HasPrefix(s, "\\\r\n"):
		return 3
	}
	return 0
}

// plain takes the text up to the next thing that may be no text.
func (l *lexer) plain() error {
	s := l.text
	i, skip := l.at, 0
scan:
	for ; i < len(s); i++ {
		switch s[i] {
		case '$':
			if strings.HasPrefix(s[i:], "${") {
				break scan
			}
		case '<':
			if rest := strings.TrimPrefix(s[i+1:], "/"); rest != "" && (rest[0] == '%' || rest[0] == '&') {
				break scan
			}
		case '\\':
			if skip = escapedNewline(s[i:]); skip > 0 {
				break scan
			}
		case '%', '#', ' ', '\t':
			if i > 0 && s[i-1] == '\n' {
				j := skipBlanks(s, i)
				if strings.HasPrefix(s[j:], "%") || strings.HasPrefix(s[j:], "##") {
					break scan
				}
			}
		}
	}

	text := s[l.at:i]
	l.take(i - l.at + skip)
	if text == "" {
		return nil
	}
	return l.add(&part{kind: partText, text: text})
}
