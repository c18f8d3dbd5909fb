package notify

import (
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes a text from outside fit for one line: no control characters, no characters that change the direction of
// text, at most max bytes.
func clean(s string, max int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
	return cut(s, max)
}

// cut shortens a text to at most max bytes, at the end of a character, and says so with three points.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	if max < 3 {
		return ""
	}
	s = s[:max-3]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "..."
}

// withoutURL removes the address from an error of package http: the addresses of robots are secrets.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
