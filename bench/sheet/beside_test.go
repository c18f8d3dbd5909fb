package sheet_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard/bench/sheet"
)

// one is a run with one table.
func one(lines ...[2]string) *sheet.Sheet {
	s := &sheet.Sheet{}
	t := s.Table("One host", "ours", "bare")
	for _, l := range lines {
		t.Add(l[0], l[1], "", "", "")
	}
	return s
}

func TestBeside(t *testing.T) {
	run := func(rate, latency, gone string) *sheet.Sheet {
		return one([2]string{"operations a second", rate}, [2]string{"answered, p50 / p99", latency}, [2]string{"words", gone})
	}
	var s sheet.Sheet
	s.Beside([]*sheet.Sheet{run("300", "900 µs / 2 s", "no figure"), run("100", "2 ms / 3 s", ""), run("200", "3 ms", "")},
		[]*sheet.Sheet{run("100", "1 ms / 9 s", ""), one([2]string{"operations a second", "100"})})
	text := s.Markdown(sheet.Head{})
	for _, want := range []string{
		"| operations a second | 200 (100–300) | 100 (100–100) | 2.00× |  |",
		"| answered, p50 / p99 | 2 ms (900 µs–3 ms) | 1 ms | 2.00× |  |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "words") {
		t.Errorf("a line without figures is there:\n%s", text)
	}
}
