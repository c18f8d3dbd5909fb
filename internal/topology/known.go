package topology

import (
	"fmt"
	"strings"

	"github.com/gozzard/gozzard"
)

// shown is an unknown key in a form and length that fit into a message.
func shown(key string) string {
	if len(key) <= 40 && gozzard.ValidateName(key) == nil {
		return key
	}
	return fmt.Sprintf("%.40q", key)
}

// unknown is the text of the fault for an unknown key. It suggests the most similar known key.
func unknown(key string, known []string) string {
	best, at := "", 2

	if len(key) > 3 {
		at = 1 + max(len(key)/3, 2) // from that distance on, a known key is not similar
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
