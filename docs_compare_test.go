package gozzard_test

import (
	"slices"
	"strings"
	"testing"
)

// TestComparison: in the comparison with the peers every cell has a proof. Those of Gozzard are in this project, where TestLinks
// follows them; those of the peers are public sources, the same in both languages.
func TestComparison(t *testing.T) {
	all := pages(t)
	var sources []string
	for _, page := range []string{"docs/compare.md", "docs/zh/compare.md"} {
		var found []string
		for n, row := range comparison(t, page, all[page]) {
			for column, cell := range row[1:] {
				m := link.FindStringSubmatch(cell)
				switch {
				case m == nil:
					t.Errorf("%s: row %d, %q has no link to its proof", page, n+1, cell)
				case strings.Contains(m[1], "://") != (column > 0):
					t.Errorf("%s: row %d, column %d: %s: Gozzard is proven by this project, a peer by a public source", page, n+1, column+1, m[1])
				case column > 0:
					found = append(found, m[1])
				}
			}
		}

		if sources != nil && !slices.Equal(found, sources) {
			t.Errorf("%s has other sources than the page before it", page)
		}
		sources = found
	}
}

// comparison returns the rows of the table with the peers, cell by cell, without its head.
func comparison(t *testing.T, page, text string) (rows [][]string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if len(cells) != 7 {
			t.Errorf("%s: a row of %d cells: %s", page, len(cells), line)
			continue
		}
		rows = append(rows, cells)
	}

	if len(rows) < 13 { // a dozen, and the head
		t.Fatalf("%s: the table has %d rows", page, len(rows))
	}
	return rows[1:]
}
