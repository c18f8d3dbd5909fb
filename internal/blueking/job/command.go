package job

import (
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// script is how a kind of script beside the program is called. Nothing of a path or a name reaches the shell as
// anything but text.
type script struct {
	command   func(path, verb, name string) string
	unsayable string // characters that the shell gives a meaning wherever they stand
}

// scriptOf knows the kinds by cmd_shell_ext. With sh the script goes into the background, so that only a look for
// the process decides whether it went well. The PowerShell that comes with Windows has no &&.
func scriptOf(shell gozzard.Shell) (s script, known bool) {
	switch shell {
	case gozzard.ShellSh:
		s.command = func(path, verb, name string) string {
			return "cd " + quoteSh(path) + " && ./" + verb + ".sh " + quoteSh(name) + " &"
		}
	case gozzard.ShellBat:
		s.unsayable = `"%!`
		s.command = func(path, verb, name string) string {
			return "cd " + quoteBat(path) + " && " + verb + ".bat " + quoteBat(name) + " "
		}
	case gozzard.ShellPS1:
		s.command = func(path, verb, name string) string {
			return "cd -LiteralPath " + quotePS1(path) + `; if ($?) { .\` + verb + ".ps1 " + quotePS1(name) + " }"
		}
	default:
		return script{}, false
	}
	return s, true
}

// check refuses texts that no quotes keep from being read as something else.
func (s script) check(v strictjson.Value, text string) {
	if i := strings.IndexAny(text, s.unsayable); i >= 0 {
		v.Fault("has %q, which its shell cannot be told as text", text[i])
	}
}

// quoteSh leaves a plain word as it is, so that commands read as people know them.
func quoteSh(s string) string {
	if plainWord(s, "_-./:@%+=,") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// quoteBat quotes a text without unsayable characters.
func quoteBat(s string) string {
	if plainWord(s, `_-./:@+\`) {
		return s
	}
	return `"` + s + `"`
}

// quotePS1 always quotes: words without quotes are numbers and more to PowerShell. It takes several characters for
// a single quote.
func quotePS1(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, c := range s {
		if strings.ContainsRune("'\u2018\u2019\u201a\u201b", c) {
			b.WriteRune(c)
		}
		b.WriteRune(c)
	}
	b.WriteByte('\'')
	return b.String()
}

func plainWord(s, also string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte(also, c) < 0 {
			return false
		}
	}
	return s != ""
}
