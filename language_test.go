package gozzard_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// riddles are words and phrases that readers stumble over. STYLE.md says what to write instead.
var riddles = regexp.MustCompile(`(?i)\b(` + strings.Join([]string{
	"who", "whom", "whoever", "he", "him", "his", "himself", "somebody", "nobody",
	"tell", "tells", "told", "telling", "lets? be", "letting be", "puts? out", "laid down", "lays? down", "lay down",
	"lacks?", "lacking", "let(s|ting)? go", "went away", "may everything", "the keeping", "is the most", "of (its|their|one's) own",
}, "|") + `)\b`)

// TestPlainEnglish: help texts, errors and log messages use the usual words of the field. The sentences of BlueKing's
// own answers are fixed by its clients.
func TestPlainEnglish(t *testing.T) {
	for _, s := range parseAll(t) {
		if s.isTest() || !isProduct(s.folder) {
			continue
		}
		for _, text := range sentences(s.file) {
			if word := riddles.FindString(text); word != "" {
				t.Errorf("%s: %q has %q: see STYLE.md for a plainer way to say it", s.path, text, word)
			}
		}
	}
}

func isProduct(folder string) bool {
	for _, other := range []string{"test", "bench", "tools", "internal/blueking"} {
		if folder == other || strings.HasPrefix(folder, other+"/") {
			return false
		}
	}
	return true
}

// sentences lists the string literals of a file that people read: those of several words.
func sentences(f *ast.File) (list []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(lit.Value)
		if err == nil && strings.Contains(strings.TrimSpace(text), " ") {
			list = append(list, text)
		}
		return true
	})
	return list
}

// TestRiddles: the check finds what it is for, and nothing else.
func TestRiddles(t *testing.T) {
	for text, want := range map[string]bool{
		"Have agents let be processes":             true,
		"there are 10000 apps, which is the most":  true,
		"the agent is told about it":               true,
		"whoever has the key":                      true,
		"Stop supervising processes":               false,
		"the limit of 10000 apps is reached":       false,
		"the shell is the whole story, hello here": false,
	} {
		if got := riddles.MatchString(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
