package mako

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// syntaxError is a fault in Python code. The messages are those of CPython where clients are likely to meet them.
type syntaxError struct {
	class   string // SyntaxError or IndentationError
	message string
	line    int
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("%s (<unknown>, line %d)", e.message, e.line)
}

func syntaxFault(line int, format string, args ...any) *syntaxError {
	return &syntaxError{"SyntaxError", fmt.Sprintf(format, args...), line}
}

type tokenKind int

const (
	tokEnd tokenKind = iota
	tokName
	tokNumber
	tokString
	tokOp
	tokNewline
	tokIndent
	tokDedent
)

type token struct {
	kind   tokenKind
	text   string // of a string: its content without the quotes
	prefix string // of a string, lower case
	line   int
}

// tokenizer splits Python code into tokens.
type tokenizer struct {
	s       string
	at      int
	line    int
	indents []int
	open    []token // brackets
	out     []token
}

// The operators, longest first.
var operators = []string{"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "<=", ">=", "==", "!=", "->", "+=", "-=",
	"*=", "/=", "%=", "&=", "|=", "^=", "@=", ":=", "+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<", ">", "(", ")", "[",
	"]", "{", "}", ",", ":", ".", ";", "="}

func tokenize(code string) ([]token, *syntaxError) {
	t := &tokenizer{s: strings.ReplaceAll(code, "\r\n", "\n"), line: 1, indents: []int{0}}
	newLine := true
	for {
		if newLine && len(t.open) == 0 {
			if err := t.indentation(); err != nil {
				return nil, err
			}
		}
		newLine = false
		t.at = skipBlanks(t.s, t.at)
		if t.at >= len(t.s) {
			break
		}
		if t.s[t.at] == '\n' {
			newLine = true
		}
		if err := t.next(); err != nil {
			return nil, err
		}
	}

	if n := len(t.open); n > 0 {
		return nil, syntaxFault(t.open[n-1].line, "'%s' was never closed", t.open[n-1].text)
	}
	if n := len(t.out); n > 0 && t.out[n-1].kind != tokNewline && t.out[n-1].kind != tokDedent {
		t.add(tokNewline, "")
	}
	for range t.indents[1:] {
		t.add(tokDedent, "")
	}
	t.add(tokEnd, "")
	return t.out, nil
}

func (t *tokenizer) add(kind tokenKind, text string) {
	t.out = append(t.out, token{kind: kind, text: text, line: t.line})
}

// indentation reads the blanks at the begin of a line with code; lines without code count for nothing.
func (t *tokenizer) indentation() *syntaxError {
	for t.at < len(t.s) {
		end := t.at
		for end < len(t.s) && strings.IndexByte(" \t\f\r", t.s[end]) >= 0 {
			end++
		}
		if end == len(t.s) || t.s[end] == '\n' || t.s[end] == '#' {
			n := strings.IndexByte(t.s[end:], '\n')
			if n < 0 {
				t.at = len(t.s)
				return nil
			}
			t.at = end + n + 1
			t.line++
			continue
		}

		width := len(expandTabs(t.s[t.at:end], 8))
		t.at = end
		top := t.indents[len(t.indents)-1]
		if width > top {
			t.indents = append(t.indents, width)
			t.add(tokIndent, "")
		}
		for width < t.indents[len(t.indents)-1] {
			t.indents = t.indents[:len(t.indents)-1]
			t.add(tokDedent, "")
		}
		if width != t.indents[len(t.indents)-1] {
			return &syntaxError{"IndentationError", "unindent does not match any outer indentation level", t.line}
		}
		return nil
	}
	return nil
}

// next reads one token, a comment, or a newline.
func (t *tokenizer) next() *syntaxError {
	s := t.s[t.at:]
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == '\n':
		if n := len(t.out); len(t.open) == 0 && n > 0 && t.out[n-1].kind != tokNewline {
			t.add(tokNewline, "")
		}
		t.line++
		t.at++
	case r == '\f' || r == '\r':
		t.at++
	case r == '#':
		if n := strings.IndexByte(s, '\n'); n >= 0 {
			t.at += n
		} else {
			t.at = len(t.s)
		}
	case r == '\\':
		if !strings.HasPrefix(s, "\\\n") {
			return syntaxFault(t.line, "unexpected character after line continuation character")
		}
		t.at += 2
		t.line++
	case t.stringStart(s) >= 0:
		return t.quoted(s)
	case r >= '0' && r <= '9' || r == '.' && len(s) > 1 && s[1] >= '0' && s[1] <= '9':
		return t.number(s)
	case r == '_' || unicode.IsLetter(r):
		n := 0
		for n < len(s) {
			c, w := utf8.DecodeRuneInString(s[n:])
			if c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.Is(unicode.Mn, c) {
				break
			}
			n += w
		}
		t.add(tokName, s[:n])
		t.at += n
	default:
		return t.operator(s, r, size)
	}
	return nil
}

func (t *tokenizer) operator(s string, r rune, size int) *syntaxError {
	op := beginsWith(s, operators)
	switch {
	case op != "":
	case r == utf8.RuneError && size <= 1:
		return syntaxFault(t.line, "invalid non-printable character U+FFFD")
	case r >= 0x80 && unicode.IsPrint(r):
		return syntaxFault(t.line, "invalid character '%c' (U+%04X)", r, r)
	case r >= 0x80 || r < 0x20:
		return syntaxFault(t.line, "invalid non-printable character U+%04X", r)
	default:
		return syntaxFault(t.line, "invalid syntax")
	}

	switch op {
	case "(", "[", "{":
		if len(t.open) >= maxNesting {
			return syntaxFault(t.line, "too many nested parentheses")
		}
		t.open = append(t.open, token{text: op, line: t.line})
	case ")", "]", "}":
		n := len(t.open)
		if n == 0 {
			return syntaxFault(t.line, "unmatched '%s'", op)
		}
		if o := t.open[n-1].text; map[string]string{"(": ")", "[": "]", "{": "}"}[o] != op {
			return syntaxFault(t.line, "closing parenthesis '%s' does not match opening parenthesis '%s'", op, o)
		}
		t.open = t.open[:n-1]
	}
	t.add(tokOp, op)
	t.at += len(op)
	return nil
}

// stringStart is the length of the prefix before a quote, or -1 if no string begins here.
func (t *tokenizer) stringStart(s string) int {
	for n := 0; n <= 2 && n < len(s); n++ {
		if s[n] == '"' || s[n] == '\'' {
			return n
		}
		if strings.IndexByte("rRbBuUfF", s[n]) < 0 {
			return -1
		}
	}
	return -1
}

func (t *tokenizer) quoted(s string) *syntaxError {
	n := t.stringStart(s)
	prefix := strings.ToLower(s[:n])
	quote := s[n : n+1]
	triple := strings.Repeat(quote, 3)
	if strings.HasPrefix(s[n:], triple) {
		quote = triple
	}

	begin := n + len(quote)
	i := begin
	for ; ; i++ {
		if i >= len(s) || len(quote) == 1 && s[i] == '\n' {
			lines := t.line + strings.Count(s[:min(i, len(s))], "\n")
			if len(quote) == 3 {
				return syntaxFault(t.line, "unterminated triple-quoted string literal (detected at line %d)", lines)
			}
			return syntaxFault(t.line, "unterminated string literal (detected at line %d)", lines)
		}
		if s[i] == '\\' {
			i++
			continue
		}
		if strings.HasPrefix(s[i:], quote) {
			break
		}
	}

	t.out = append(t.out, token{kind: tokString, text: s[begin:i], prefix: prefix, line: t.line})
	t.line += strings.Count(s[:i], "\n")
	t.at += i + len(quote)
	return nil
}

func (t *tokenizer) number(s string) *syntaxError {
	n := 0
	hex := len(s) > 1 && s[0] == '0' && strings.IndexByte("xXoObB", s[1]) >= 0
	for n < len(s) {
		c := s[n]
		switch {
		case c >= '0' && c <= '9' || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		case c == '.' && !hex:
		case (c == '+' || c == '-') && !hex && n > 0 && (s[n-1] == 'e' || s[n-1] == 'E'):
		default:
			goto end
		}
		n++
	}
end:
	text := s[:n]
	if keyword := numberBefore(text); keyword > 0 { // 1if x else y
		text = text[:keyword]
	}
	if _, ok := literal(text); !ok {
		return syntaxFault(t.line, "invalid decimal literal")
	}
	t.add(tokNumber, text)
	t.at += len(text)
	return nil
}

// numberBefore is where a keyword begins that follows a number without a blank, or 0.
func numberBefore(text string) int {
	for _, word := range []string{"if", "or", "and", "in", "is", "else", "for", "not"} {
		if strings.HasSuffix(text, word) && len(text) > len(word) && text[0] != '0' {
			return len(text) - len(word)
		}
	}
	return 0
}
