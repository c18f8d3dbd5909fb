package importer

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// unitWords splits a value of a unit into words: quotes anywhere, and escapes as in C.
func unitWords(s string) ([]string, error) {
	var words []string
	var word []byte
	inWord, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\':
			n, text, err := unitEscape(s[i+1:])
			if err != nil {
				return nil, err
			}
			word = append(word, text...)
			inWord = true
			i += n
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word = append(word, c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if inWord {
				words = append(words, string(word))
				word, inWord = word[:0], false
			}
		default:
			word = append(word, c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("has a quote without an end")
	}
	if inWord {
		words = append(words, string(word))
	}
	return words, nil
}

// unitEscape reads what follows a backslash, and returns how many bytes it has.
func unitEscape(s string) (int, string, error) {
	if s == "" {
		return 0, "", errors.New("ends with a backslash")
	}
	if i := strings.IndexByte(`abfnrtv\"'s`, s[0]); i >= 0 {
		return 1, "\a\b\f\n\r\t\v\\\"' "[i : i+1], nil
	}
	digits, base := 0, 16
	switch s[0] {
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	case '0', '1', '2', '3', '4', '5', '6', '7':
		if len(s) < 3 {
			break
		}
		n, err := strconv.ParseUint(s[:3], 8, 8)
		if err != nil || n == 0 {
			return 0, "", fmt.Errorf("has the escape \\%s, which is no character", s[:3])
		}
		return 3, string([]byte{byte(n)}), nil
	}
	if digits == 0 || len(s) < 1+digits {
		return 1, `\` + s[:1], nil // systemd keeps what it does not know
	}
	n, err := strconv.ParseUint(s[1:1+digits], base, 32)
	if err != nil || n == 0 || n > utf8.MaxRune {
		return 0, "", fmt.Errorf("has the escape \\%s, which is no character", clip(s[:1+digits]))
	}
	if digits == 2 {
		return 3, string([]byte{byte(n)}), nil
	}
	return 1 + digits, string(rune(n)), nil
}

// specifiers replaces %n and the like. What depends on more than the unit and the names of the machine is an error.
func (s *service) specifiers(text string) (string, error) {
	if !strings.Contains(text, "%") {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			return "", errors.New("ends with a percent sign")
		}
		value, ok := s.specifier(text[i])
		if !ok {
			return "", fmt.Errorf("the specifier %%%c is not known here", text[i])
		}
		if b.WriteString(value); b.Len() > maxExpanded {
			return "", fmt.Errorf("is longer than %d bytes after its expansion", maxExpanded)
		}
	}
	return b.String(), nil
}

func (s *service) specifier(c byte) (string, bool) {
	u := s.unit
	switch c {
	case '%':
		return "%", true
	case 'n':
		return u.name, true
	case 'N':
		return u.plain(), true
	case 'p':
		return u.prefix(), true
	case 'P':
		return unescapeUnit(u.prefix()), true
	case 'i':
		return u.instance(), true
	case 'I':
		return unescapeUnit(u.instance()), true
	case 'j':
		return u.prefix()[strings.LastIndexByte(u.prefix(), '-')+1:], true
	case 'J':
		return unescapeUnit(u.prefix()[strings.LastIndexByte(u.prefix(), '-')+1:]), true
	case 'f':
		return "/" + strings.TrimPrefix(unescapeUnit(orElse(u.instance(), u.prefix())), "/"), true
	case 'y':
		return u.file, true
	case 'Y':
		return path.Dir(u.file), true
	case 'u':
		return "root", true // of the manager, not of User=
	case 'U':
		return "0", true
	case 'h':
		return "/root", true
	case 's':
		return "/bin/sh", true
	case 't':
		return "/run", true
	case 'S':
		return "/var/lib", true
	case 'C':
		return "/var/cache", true
	case 'L':
		return "/var/log", true
	case 'E':
		return "/etc", true
	case 'T':
		return "/tmp", true
	case 'V':
		return "/var/tmp", true
	case 'H':
		return s.w.Hostname, s.w.Hostname != ""
	case 'l':
		short, _, _ := strings.Cut(s.w.Hostname, ".")
		return short, short != ""
	}
	return "", false
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// unescapeUnit undoes the escapes of names of units: - stands for /, and \xNN for a byte.
func unescapeUnit(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '-':
			b.WriteByte('/')
		case s[i] == '\\' && i+3 < len(s) && s[i+1] == 'x':
			if n, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// seconds reads a time of systemd: a number of seconds, or numbers with units. infinity is -1.
func unitSeconds(text string) (float64, error) {
	if text == "infinity" {
		return -1, nil
	}
	total, any := 0.0, false
	rest := strings.TrimSpace(text)
	for rest != "" {
		n := len(rest) - len(strings.TrimLeft(rest, "0123456789."))
		if n == 0 || n > 20 {
			return 0, fmt.Errorf("must be a time such as 90s, is %q", clip(text))
		}
		x, err := strconv.ParseFloat(rest[:n], 64)
		if err != nil {
			return 0, fmt.Errorf("must be a time such as 90s, is %q", clip(text))
		}
		rest = strings.TrimLeft(rest[n:], " ")
		k := len(rest) - len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzM"))
		unit, known := timeUnits[rest[:k]]
		if !known {
			return 0, fmt.Errorf("must be a time such as 90s, is %q", clip(text))
		}
		total, any = total+x*unit, true
		rest = strings.TrimLeft(rest[k:], " ")
	}
	if !any {
		return 0, fmt.Errorf("must be a time such as 90s, is %q", clip(text))
	}
	return total, nil
}

var timeUnits = map[string]float64{"": 1, "s": 1, "sec": 1, "second": 1, "seconds": 1, "ms": 0.001, "msec": 0.001, "us": 1e-6, "usec": 1e-6,
	"m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400,
	"days": 86400, "w": 604800, "week": 604800, "weeks": 604800, "M": 2629800, "month": 2629800, "months": 2629800, "y": 31557600,
	"year": 31557600, "years": 31557600}

func parseInt(e entry, least, most int) (int, error) {
	n, err := strconv.Atoi(e.value)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s must be a number from %d to %d", e.key, least, most)
	}
	return n, nil
}
