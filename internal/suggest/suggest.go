// Package suggest finds the known word that a misspelt one probably means.
package suggest

import (
	"fmt"
	"strings"
)

// maxWord bounds the work for a long word. Known words are shorter.
const maxWord = 64

// Unknown says that a name is not known, with the name that is probably meant or with all known names.
func Unknown(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("unknown, did you mean %q?", near)
	}
	return "unknown, known are " + strings.Join(known, ", ")
}

// Nearest is the known word that needs the fewest changed letters, "" when all need too many: more than one for words
// of up to three letters, more than a third of the letters (but two at least) for longer ones.
func Nearest(word string, known []string) string {
	if len(word) > maxWord {
		return ""
	}

	tooMany := 2
	if len(word) > 3 {
		tooMany = 1 + max(len(word)/3, 2)
	}

	best, fewest := "", tooMany
	for _, k := range known {
		if d := distance(strings.ToLower(word), k); d < fewest {
			best, fewest = k, d
		}
	}

	return best
}

// distance counts the letters to insert, remove or replace between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}

	return row[len(b)]
}
