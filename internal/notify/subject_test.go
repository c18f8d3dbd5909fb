package notify

import (
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// TestFailedFiles: an alert about a file names it as a file, not as a process.
func TestFailedFiles(t *testing.T) {
	a := record.Alert{Kind: kindTaskFailed, Key: gozzard.FileKey("shop", "/srv/a.conf"), Task: "7"}
	for language, want := range map[string]string{english: "file /srv/a.conf (shop), task 7", chinese: "文件 /srv/a.conf (shop)，任务 7"} {
		if got := subject(wordsIn(language), &a); got != want {
			t.Errorf("%s: %q, want %q", language, got, want)
		}
	}
}
