package sheet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
)

func TestMarkdown(t *testing.T) {
	s := &sheet.Sheet{At: time.Date(2026, 3, 4, 23, 0, 0, 0, time.FixedZone("", -8*3600)), Took: 61 * time.Second}
	s.Table("Speed", "ours", "theirs").Add("starts", "2", "1", "2.0", "1.5")
	s.Table("Size", "ours", "").Add("file", "3 MB", "", "", "")
	s.Note("%d hosts", 7)

	got := s.Markdown(sheet.Head{Title: "Bench", Command: "make bench", Versions: sheet.Versions("also", "example.com/none")})
	for _, want := range []string{
		"# Bench\n",
		"Made by `make bench` on 2026-03-05 in 1m1s, ", // the day is that of UTC
		", also, example.com/none of unknown version.\n",
		"\n## Speed\n\n| | ours | theirs | ratio | goal |\n|---|---|---|---|---|\n| starts | 2 | 1 | 2.0 | 1.5 |\n",
		"\n## Size\n\n| | ours |\n|---|---|\n| file | 3 MB |\n",
		"\n## Notes\n\n- 7 hosts\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "What went wrong") || s.Fault() != nil {
		t.Errorf("a run without faults has some: %v\n%s", s.Fault(), got)
	}
}

func TestFaults(t *testing.T) {
	var s sheet.Sheet
	s.AddFault("host %d is away", 1)
	s.AddFault("no answer")
	if err := s.Fault(); err == nil || err.Error() != "the run had faults:\n  host 1 is away\n  no answer" {
		t.Error(err)
	}
	if got := s.Markdown(sheet.Head{}); !strings.HasSuffix(got, "\n## What went wrong\n\n- host 1 is away\n- no answer\n") {
		t.Error(got)
	}
}
