package mako

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// Python's classes of characters, as the inside of a class of Go.
const (
	reWord  = `\p{L}\p{N}_`
	reDigit = `\p{Nd}`
	reSpace = `\t-\r\x1c-\x20\x{85}\p{Z}`
)

// reTranslator writes a pattern of Python as one of Go.
type reTranslator struct {
	s         string
	at        int
	b         strings.Builder
	multiline bool
	boundary  bool // \b: Go knows only words of ASCII
	dollar    bool // $ that also matches before a newline at the end: Go's does not
}

// translatePattern writes a pattern of Python as one of Go. What Go does not have is an error; the rest Go's own reader
// rejects.
func translatePattern(text string, flags int) (*reTranslator, error) {
	t := &reTranslator{s: text, multiline: flags&8 != 0}
	if flags&^(2|8|16|32) != 0 {
		return nil, raise("NotImplementedError", "this flag of a pattern is not supported")
	}
	prefix := ""
	for i, bit := range []int{2, 8, 16} {
		if flags&bit != 0 {
			prefix += "ims"[i : i+1]
		}
	}
	if prefix != "" {
		t.b.WriteString("(?" + prefix + ")")
	}

	for t.at < len(t.s) {
		if err := t.next(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *reTranslator) fault(format string, args ...any) error {
	return raise("re.error", "%s at position %d", fmt.Sprintf(format, args...), utf8.RuneCountInString(t.s[:t.at]))
}

// next writes one element outside of classes.
func (t *reTranslator) next() error {
	switch rest := t.s[t.at:]; {
	case rest[0] == '\\':
		return t.escape(false)
	case rest[0] == '[':
		return t.class()
	case rest[0] == '$':
		t.dollar = t.dollar || !t.multiline
		t.b.WriteByte('$')
		t.at++
	case strings.HasPrefix(rest, "{,"):
		t.b.WriteString("{0,")
		t.at += 2
	case strings.HasPrefix(rest, "(?"):
		return t.group(rest)
	default:
		_, n := utf8.DecodeRuneInString(rest)
		t.b.WriteString(rest[:n])
		t.at += n
	}
	return nil
}

// group writes the begin of a group with options.
func (t *reTranslator) group(rest string) error {
	end := strings.IndexAny(rest, ":)<=!#")
	if end < 0 {
		return t.fault("missing ), unterminated subpattern")
	}
	switch options := rest[2:end]; {
	case options == "P" && rest[end] == '<', options == "" && rest[end] == ':':
	case rest[end] == ')' || rest[end] == ':':
		if strings.Trim(options, "imsu") != "" || options == "" {
			return raise("NotImplementedError", "(?%s) in a pattern is not supported", options)
		}
		t.multiline = t.multiline || strings.Contains(options, "m")
		rest = strings.ReplaceAll(rest[:end+1], "u", "")
		t.b.WriteString(strings.Replace(rest, "(?)", "", 1))
		t.at += end + 1
		return nil
	default:
		return raise("NotImplementedError", "look-around, back references and comments in a pattern are not supported")
	}
	t.b.WriteString(rest[:end+1])
	t.at += end + 1
	return nil
}

// escape writes what a backslash means.
func (t *reTranslator) escape(class bool) error {
	rest := t.s[t.at+1:]
	if rest == "" {
		return t.fault("bad escape (end of pattern)")
	}
	r, n := utf8.DecodeRuneInString(rest)
	sets := map[rune]string{'d': reDigit, 'w': reWord, 's': reSpace}
	not := map[rune]string{'D': reDigit, 'W': reWord, 'S': reSpace}
	switch {
	case sets[r] != "" && class:
		t.b.WriteString(sets[r])
	case sets[r] != "":
		t.b.WriteString("[" + sets[r] + "]")
	case r == 'D' && class:
		t.b.WriteString(`\P{Nd}`)
	case not[r] != "" && class:
		return raise("NotImplementedError", "\\%c in a class of a pattern is not supported", r)
	case not[r] != "":
		t.b.WriteString("[^" + not[r] + "]")
	case r == 'b' && class:
		t.b.WriteString(`\x08`)
	case (r == 'b' || r == 'B') && !class:
		t.boundary = true
		t.b.WriteString(`\` + rest[:1])
	case r == 'A' && !class:
		t.b.WriteString(`\A`)
	case r == 'Z' && !class:
		t.b.WriteString(`\z`)
	case strings.ContainsRune("afnrtv", r):
		t.b.WriteString(`\` + rest[:1])
	case r == 'x' || r == 'u' || r == 'U':
		digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[r]
		if len(rest) <= digits || strings.Trim(rest[1:1+digits], "0123456789abcdefABCDEF") != "" {
			return t.fault("incomplete escape \\%s", rest[:min(len(rest), digits+1)])
		}
		t.b.WriteString(`\x{` + rest[1:1+digits] + "}")
		n += digits
	case r >= '0' && r <= '9':
		return raise("NotImplementedError", "back references and octal numbers in a pattern are not supported")
	case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
		return t.fault("bad escape \\%c", r)
	case r < utf8.RuneSelf && r != '_':
		t.b.WriteString(`\` + rest[:1])
	default:
		t.b.WriteString(rest[:n])
	}
	t.at += 1 + n
	return nil
}

// class writes a class of characters.
func (t *reTranslator) class() error {
	begin := t.at
	t.b.WriteByte('[')
	t.at++
	if strings.HasPrefix(t.s[t.at:], "^") {
		t.b.WriteByte('^')
		t.at++
	}
	for first := true; t.at < len(t.s); first = false {
		switch c := t.s[t.at]; {
		case c == ']' && !first:
			t.b.WriteByte(']')
			t.at++
			return nil
		case c == '\\':
			if err := t.escape(true); err != nil {
				return err
			}
		case c == '[' || c == ']': // Go reads [: as the begin of a named class
			t.b.WriteString(`\` + string(c))
			t.at++
		default:
			_, n := utf8.DecodeRuneInString(t.s[t.at:])
			t.b.WriteString(t.s[t.at : t.at+n])
			t.at += n
		}
	}
	t.at = begin
	return t.fault("unterminated character set")
}

// shortest is the least number of characters that a pattern matches.
func shortest(r *syntax.Regexp) int {
	switch r.Op {
	case syntax.OpLiteral:
		return len(r.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return shortest(r.Sub[0])
	case syntax.OpRepeat:
		return r.Min * shortest(r.Sub[0])
	case syntax.OpConcat:
		n := 0
		for _, sub := range r.Sub {
			n += shortest(sub)
		}
		return n
	case syntax.OpAlternate:
		least := shortest(r.Sub[0])
		for _, sub := range r.Sub[1:] {
			least = min(least, shortest(sub))
		}
		return least
	}
	return 0
}

// chooses reports whether a pattern may take fewer characters than it could: it has alternatives or lazy repetitions.
func chooses(r *syntax.Regexp) bool {
	return r.Op == syntax.OpAlternate || r.Flags&syntax.NonGreedy != 0 || slices.ContainsFunc(r.Sub, chooses)
}
