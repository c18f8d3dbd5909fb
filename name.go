package gozzard

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNameBytes bounds namespaces, names, label keys and label values.
const MaxNameBytes = 128

// IsPlainLine reports whether a text shows what it is: it has no control characters, no line separators and nothing
// that changes the direction of writing.
func IsPlainLine(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
			return false
		}
	}
	return true
}

// Clip cuts a text to at most n bytes of valid UTF-8, between two characters.
func Clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// ValidateName checks a namespace or the name of a process: letters and digits of any script, _ - . @ + and inner
// blanks, with a letter, digit or underscore first. Names become parts of paths, keys and logs, so all other
// characters are rejected here. The doors check the Unicode normal form (NFC); the standard library has no tables for
// it.
func ValidateName(s string) error {
	if s == "" {
		return fmt.Errorf("required")
	}
	if len(s) > MaxNameBytes {
		return fmt.Errorf("has %d bytes, at most %d are allowed", len(s), MaxNameBytes)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("is not valid UTF-8")
	}

	for i, r := range s {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '_':
		case i > 0 && unicode.Is(unicode.Mn, r), i > 0 && unicode.Is(unicode.Mc, r):
		case i > 0 && (r == '-' || r == '.' || r == '@' || r == '+'):
		case i > 0 && r == ' ' && i < len(s)-1:
		default:
			return fmt.Errorf("%q may not stand at byte %d of %q (letters, digits, _ - . @ + and inner blanks; first a letter, digit or _)",
				r, i, s)
		}
	}

	return nil
}
