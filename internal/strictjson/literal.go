package strictjson

import (
	"unicode/utf16"
	"unicode/utf8"
)

func (s *scanner) number() error {
	at, err := s.add(kindNumber, s.pos)
	if err != nil {
		return err
	}

	from := s.pos

	if s.src[s.pos] == '-' {
		s.pos++
	}

	lead := s.pos
	whole := s.digits()
	if whole == 0 || whole > 1 && s.src[lead] == '0' {
		return s.fail(from, "a number that JSON does not know")
	}

	if s.pos < len(s.src) && s.src[s.pos] == '.' {
		s.pos++
		if s.digits() == 0 {
			return s.fail(from, "a number that JSON does not know")
		}
	}

	if s.pos < len(s.src) && (s.src[s.pos] == 'e' || s.src[s.pos] == 'E') {
		s.pos++
		if s.pos < len(s.src) && (s.src[s.pos] == '+' || s.src[s.pos] == '-') {
			s.pos++
		}
		if s.digits() == 0 {
			return s.fail(from, "a number that JSON does not know")
		}
	}

	s.end(at, s.pos)
	return nil
}

func (s *scanner) digits() int {
	from := s.pos
	for s.pos < len(s.src) && s.src[s.pos] >= '0' && s.src[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - from
}

func (s *scanner) str() error {
	at, err := s.add(kindString, s.pos+1)
	if err != nil {
		return err
	}

	open, src, i := s.pos, s.src, s.pos+1
	for i < len(src) {
		switch c := src[i]; {
		case c == '"':
			s.end(at, i)
			s.pos = i + 1
			return nil
		case c == '\\':
			s.nodes[at].esc = true
			s.pos = i
			if err := s.escape(); err != nil {
				return err
			}
			i = s.pos
		case c < 0x20:
			return s.fail(i, "control character 0x%02x inside a string", c)
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && n == 1 {
				return s.fail(i, "not valid UTF-8")
			}
			i += n
		}
	}

	return s.fail(open, "a string without end")
}

// escape reads one escape. A surrogate must be followed by its second half.
func (s *scanner) escape() error {
	rest := s.src[s.pos:]
	if len(rest) < 2 {
		return s.fail(s.pos, "the body ends inside a string")
	}

	switch rest[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return nil
	case 'u':
		r, ok := hex4(rest)
		if !ok {
			return s.fail(s.pos, "an escape that JSON does not know")
		}
		if !utf16.IsSurrogate(r) {
			s.pos += 6
			return nil
		}
		if low, ok := hex4(rest[6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			s.pos += 12
			return nil
		}
		return s.fail(s.pos, "half of a surrogate pair")
	}

	return s.fail(s.pos, "an escape that JSON does not know")
}

// hex4 reads \uXXXX at the beginning of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}

	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}

	return r, true
}

// text is the content of a string node, or the literal of a number. It is a copy, so that a stored name does not keep
// a body of 40 MiB in memory.
func (d *Document) text(i int) string {
	n := d.nodes[i]
	raw := d.src[n.from:n.to]

	if !n.esc {
		return string(raw)
	}

	out := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		if raw[0] != '\\' {
			out = append(out, raw[0])
			raw = raw[1:]
			continue
		}
		if raw[1] != 'u' {
			out = append(out, unescape(raw[1]))
			raw = raw[2:]
			continue
		}
		r, _ := hex4(raw)
		raw = raw[6:]
		if utf16.IsSurrogate(r) {
			low, _ := hex4(raw)
			r = utf16.DecodeRune(r, low)
			raw = raw[6:]
		}
		out = utf8.AppendRune(out, r)
	}

	return string(out)
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}
