package supervise_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gozzard/gozzard/internal/supervise"
)

// TestLongTextsKeepTheirEnd: what a command printed last says why it failed, as in a traceback.
func TestLongTextsKeepTheirEnd(t *testing.T) {
	if s := strings.Repeat("x", 512); supervise.ClipText(s) != s {
		t.Error("a text that is short enough was changed")
	}
	begin, end := "cannot restart web, which was not running: Traceback (most recent call last):\n", "OSError: [Errno 98] Address already in use"
	for name, line := range map[string]string{"lines": "  File \"/usr/lib/python3/server.py\", line 1\n",
		"one line": "no line feed ", "characters of several bytes": "地址已被占用", "no text": "\xff\xfe"} {
		got := supervise.ClipText(begin + strings.Repeat(line, 60) + end)
		if !strings.HasPrefix(got, begin[:40]) || !strings.HasSuffix(got, end) || len(got) > 512 || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes: %q", name, len(got), got)
		}
	}
}
