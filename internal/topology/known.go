package topology

import (
	"fmt"
	"strings"

	"github.com/gozzard/gozzard"
)

// shown is a key that nobody knows, as far as a message has room for it.
func shown(key string) string {
	if len(key) <= 40 && gozzard.ValidateName(key) == nil {
		return key
	}
	return fmt.Sprintf("%.40q", key)
}

// unknown says that a key is none of the known ones, with the nearest of those.
func unknown(key string, known []string) string {
	best, at := "", 2

	if len(key) > 3 {
		at = 1 + max(len(key)/3, 2) // letters, when it cannot be meant any more
	}

	if len(key) <= 64 {
		for _, k := range known {
			if d := distance(strings.ToLower(key), k); d < at {
				best, at = k, d
			}
		}
	}

	if best != "" {
		return fmt.Sprintf("unknown, did you mean %q?", best)
	}

	return "unknown, known are " + strings.Join(known, ", ")
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
