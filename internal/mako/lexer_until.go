package mako

import (
	"strings"
)

// maxUnclosed limits how far the lexer looks for the ends of strings and tags that have none, because that takes quadratic
// time.
const maxUnclosed = 64 << 20

// until takes Python up to one of the ends, which are not inside of strings or comments, and with watch not inside of
// brackets. It gives the text before the end.
func (l *lexer) until(watch bool, ends ...string) (text, end string, err error) {
	begin := l.at
	depth := [3]int{}
	count := func(s string) {
		for i, pair := range []string{"{}", "()", "[]"} {
			depth[i] += strings.Count(s, pair[:1]) - strings.Count(s, pair[1:])
		}
	}

	for {
		s := l.rest()
		if n := commentLength(s); n > 0 {
			l.take(n)
			continue
		}
		if n := quotedLength(s); n == 0 && s != "" && (s[0] == '"' || s[0] == '\'') {
			if l.unclosed += len(s); l.unclosed > maxUnclosed {
				return "", "", l.fail("too many unclosed strings")
			}
		} else if n > 0 {
			l.take(n)
			continue
		}
		if e := beginsWith(s, ends); e != "" {
			l.take(len(e))
			if !watch || depth[0] <= 0 && depth[1] <= 0 && depth[2] <= 0 {
				return l.text[begin : l.at-len(e)], e, nil
			}
			count(e)
			continue
		}

		n := nextMark(s, ends)
		if n < 0 {
			return "", "", l.fail("Expected: %s", strings.ReplaceAll(strings.Join(ends, ","), "|", `\|`))
		}
		l.take(n)
		count(s[:n])
	}
}

func beginsWith(s string, ends []string) string {
	for _, e := range ends {
		if strings.HasPrefix(s, e) {
			return e
		}
	}
	return ""
}

// nextMark is where the next quote, comment or end is, or -1.
func nextMark(s string, ends []string) int {
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\'' || s[i] == '#' || beginsWith(s[i:], ends) != "" {
			return i
		}
	}
	return -1
}

// commentLength is how long a Python comment with its newline is, or 0.
func commentLength(s string) int {
	if !strings.HasPrefix(s, "#") {
		return 0
	}
	return strings.IndexByte(s, '\n') + 1
}

// quotedLength is how long a quoted Python text is, or 0 if none begins here or it is not closed.
func quotedLength(s string) int {
	for _, quote := range []string{`"""`, `'''`, `"`, `'`} {
		if !strings.HasPrefix(s, quote) {
			continue
		}
		for i := len(quote); i < len(s); i++ {
			if s[i] == '\\' {
				i++
			} else if strings.HasPrefix(s[i:], quote) {
				return i + len(quote)
			}
		}
	}
	return 0
}

// dedent removes the indentation of the first line with code from all lines that are not inside of a string, as Mako
// does.
func dedent(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	state := marginState{}
	margin, known := "", false

	for i, line := range lines {
		if state.inside(line) {
			continue
		}
		line = expandTabs(line, 8)
		if n := skipBlanks(line, 0); !known && n < len(line) && line[n] != '#' {
			margin, known = line[:n], true
		}
		lines[i] = strings.TrimPrefix(line, margin)
	}
	return strings.Join(lines, "\n")
}

// marginState follows whether a line begins inside of a string or after a backslash.
type marginState struct {
	backslash bool
	quote     string
}

func (m *marginState) inside(line string) bool {
	inside := m.backslash || m.quote != ""
	m.backslash = strings.HasSuffix(line, `\`)

	for line != "" {
		if m.quote != "" {
			_, after, closed := strings.Cut(line, m.quote)
			if !closed {
				break
			}
			m.quote, line = "", after
			continue
		}
		i := strings.IndexAny(line, `#"'`)
		if i < 0 || line[i] == '#' {
			break
		}
		if q := beginsWith(line[i:], []string{`"""`, `'''`}); q != "" {
			m.quote, line = q, line[i+3:]
			continue
		}
		line = line[i+1:]
	}
	return inside
}

// expandTabs replaces tabs by blanks up to the next column that is a multiple of size.
func expandTabs(s string, size int) string {
	if !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	column := 0
	for _, r := range s {
		switch r {
		case '\t':
			n := 0
			if size > 0 {
				n = size - column%size
			}
			b.WriteString(strings.Repeat(" ", n))
			column += n
		case '\n', '\r':
			b.WriteRune(r)
			column = 0
		default:
			b.WriteRune(r)
			column++
		}
	}
	return b.String()
}
