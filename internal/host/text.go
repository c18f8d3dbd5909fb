package host

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of stored command output and of a command line.
const (
	outputBytes  = 4 << 10
	outputLines  = 20
	cmdlineBytes = 1 << 10
)

// cleanOutput makes the end of a command's output safe to store and show: valid UTF-8, no control characters except
// line breaks and tabs, the last lines only. cut means that text before b was left out.
func cleanOutput(b []byte, cut bool) string {
	// Drop the rest of a character that was cut.
	if cut {
		for len(b) > 0 && !utf8.RuneStart(b[0]) {
			b = b[1:]
		}
	}

	// Replace what is not safe. Replacements are longer than what they replace, so limit the text again.
	s := strings.Trim(printable(string(b), true), "\n")
	if len(s) > outputBytes {
		s = s[len(s)-outputBytes:]
		for s != "" && !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
	}

	// Keep the last lines.
	for at, n := len(s), 0; ; {
		if at = strings.LastIndexByte(s[:at], '\n'); at < 0 {
			return s
		}
		if n++; n == outputLines {
			return s[at+1:]
		}
	}
}

// cleanCmdline joins arguments with spaces, up to a limit.
func cleanCmdline(args []string) string {
	s := printable(strings.Join(args, " "), false)
	if len(s) <= cmdlineBytes {
		return s
	}
	cut := cmdlineBytes
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

// printable drops characters that could forge lines, colours or reading order in a log or terminal.
func printable(s string, lines bool) string {
	return strings.Map(func(r rune) rune {
		switch {
		case lines && (r == '\n' || r == '\t'):
			return r
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r), r == '\u2028', r == '\u2029', unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
