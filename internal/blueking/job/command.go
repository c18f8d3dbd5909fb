package job

import (
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// script says how to run a kind of script that is beside the program. The shell sees paths and names as plain text
// only.
type script struct {
	command   func(path, verb, name string) string
	unsayable string // characters that have a meaning to the shell even in quotes
}

// scriptOf is the script for a cmd_shell_ext. A sh script runs in the background, so only the check of the process
// decides whether it succeeded. The PowerShell of Windows has no &&.
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

// check rejects a text that cannot be quoted.
func (s script) check(v strictjson.Value, text string) {
	if i := strings.IndexAny(text, s.unsayable); i >= 0 {
		v.Fault("has %q, which its shell cannot be told as text", text[i])
	}
}

// quoteSh quotes a text if it needs quotes, so that usual commands look as usual.
func quoteSh(s string) string {
	if plainWord(s, "_-./:@%+=,") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// quoteBat quotes a text that has no unsayable characters.
func quoteBat(s string) string {
	if plainWord(s, `_-./:@+\`) {
		return s
	}
	return `"` + s + `"`
}

// quotePS1 always quotes a text, because PowerShell gives words without quotes a meaning. PowerShell has several
// characters for a single quote.
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
