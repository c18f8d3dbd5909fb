package gozzard

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNameBytes bounds names of accounts, apps, groups and labels.
const MaxNameBytes = 128

// MaxProcessNameBytes bounds namespaces, names of processes and values of labels: an alias of BlueKing CMDB, with the
// number of its instance, is all three.
const MaxProcessNameBytes = 256

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

// ValidateName checks the name of an account, an app or a label: letters and digits of any script, _ - . @ + and inner
// blanks, with a letter, digit or underscore first. Such names become parts of paths and commands, so all other
// characters are rejected here. The doors check the Unicode normal form (NFC); the standard library has no tables for
// it.
func ValidateName(s string) error {
	if err := checkNameText(s, MaxNameBytes); err != nil {
		return err
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

func checkNameText(s string, most int) error {
	switch {
	case s == "":
		return fmt.Errorf("required")
	case len(s) > most:
		return fmt.Errorf("has %d bytes, at most %d are allowed", len(s), most)
	case !utf8.ValidString(s):
		return fmt.Errorf("is not valid UTF-8")
	}
	return nil
}

// ProcessNameMarks are the characters of ASCII that a namespace and the name of a process may have beside letters and
// digits: what BlueKing CMDB allows in the aliases of processes. Those that even quotes do not make harmless in every
// shell are not among them, nor is the backslash.
const ProcessNameMarks = "_-.@+:/()#[],&'=*~$% "

// wideBlank is the blank of Chinese and Japanese texts.
const wideBlank = '\u3000'

// ValidateProcessName checks a namespace or the name of a process: letters and digits of any script, visible characters
// beyond ASCII, ProcessNameMarks, and blanks inside. The first character is neither a blank nor a dot, so that a name never
// looks like a hidden file or a path upwards.
//
// Such a name may have a slash, a dollar or quotes in it. It is therefore never a part of a path or of a command: hosts
// name their files by digests, and topology.Check rejects commands that mention a name which a shell could obey. The
// doors check the Unicode normal form (NFC).
func ValidateProcessName(s string) error {
	if err := checkNameText(s, MaxProcessNameBytes); err != nil {
		return err
	}

	for i, r := range s {
		inner := i > 0 && i+utf8.RuneLen(r) < len(s)
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r):
		case i > 0 && unicode.In(r, unicode.Mn, unicode.Mc):
		case inner && (r == ' ' || r == wideBlank):
		case r != ' ' && (i > 0 || r != '.') && strings.ContainsRune(ProcessNameMarks, r):
		case r >= utf8.RuneSelf && unicode.In(r, unicode.P, unicode.S, unicode.N):
		default:
			return fmt.Errorf("%q may not stand at byte %d of %q (letters, digits, _ - . @ + : / ( ) # [ ] , & ' = * ~ $, "+
				"the percent sign and inner blanks; first no dot)", r, i, s)
		}
	}

	return nil
}
