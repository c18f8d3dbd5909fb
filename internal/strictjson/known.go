package strictjson

import (
	"fmt"
	"slices"
	"strings"
)

// Only notes every member of an object that is none of the known ones, with the nearest of those.
func (v *Value) Only(known ...string) {
	v.Members(func(name string, m Value) {
		if !slices.Contains(known, name) {
			m.Fault("%s", Unknown(name, known))
		}
	})
}

// Unknown says that a name is none of the known ones, with the nearest of those.
func Unknown(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("unknown, did you mean %q?", near)
	}
	return "unknown, known are " + strings.Join(known, ", ")
}

// Nearest finds the known word that a misspelt one probably means, "" when none is near.
func Nearest(word string, known []string) string {
	if len(word) > 64 {
		return ""
	}

	far := 2 // letters, when it cannot be meant any more

	if len(word) > 3 {
		far = 1 + max(len(word)/3, 2)
	}

	best, at := "", far
	for _, k := range known {
		if d := distance(strings.ToLower(word), k); d < at {
			best, at = k, d
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
