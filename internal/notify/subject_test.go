package notify

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// TestFailedProcesses: an alert about several processes of a task names their namespace.
func TestFailedProcesses(t *testing.T) {
	a := record.Alert{Kind: kindTaskFailed, Key: gozzard.Key{Namespace: "shop"}, Task: "7"}
	for language, want := range map[string]string{english: "namespace shop, task 7", chinese: "命名空间 shop，任务 7"} {
		if got := subject(wordsIn(language), &a); got != want {
			t.Errorf("%s: %q, want %q", language, got, want)
		}
	}
}

// TestFailedFiles: an alert about a file names it as a file, not as a process.
func TestFailedFiles(t *testing.T) {
	a := record.Alert{Kind: kindTaskFailed, Key: gozzard.FileKey("shop", "/srv/a.conf"), Task: "7"}
	for language, want := range map[string]string{english: "file /srv/a.conf (shop), task 7", chinese: "文件 /srv/a.conf（shop），任务 7"} {
		if got := subject(wordsIn(language), &a); got != want {
			t.Errorf("%s: %q, want %q", language, got, want)
		}
	}
}

// TestWhyFailed: an alert about a task says in words why attempts failed, without those that had nothing to do.
func TestWhyFailed(t *testing.T) {
	start, restart := []record.TaskItem{{Action: gozzard.ActionStart}}, []record.TaskItem{{Action: gozzard.ActionRestart}}
	for _, c := range []struct {
		outcome string
		items   []record.TaskItem
		want    string
	}{
		{"already_running=1,ok=3,unreachable=2", start, "2 on an unreachable host"},
		{"command_failed=4,not_running=1", restart, "4 with a failed command; 1 not running"},
		{"unreachable=1", nil, "1 on an unreachable host"},
		{"ok=3,a_new_code=1,refused=x", restart, ""},
		{"", nil, ""},
	} {
		if got := whyFailed(c.outcome, c.items); got != c.want {
			t.Errorf("%s: %q, want %q", c.outcome, got, c.want)
		}
	}
}

// TestTitleCountsAlerts: the first line of a message says how many alerts it is about, as a person would.
func TestTitleCountsAlerts(t *testing.T) {
	m := Message{Firing: 1, Alerts: []record.Alert{{Kind: kindPolicy}}, Group: map[string]string{}}
	for language, want := range map[string]string{english: "[Gozzard] firing 1: ", chinese: "【Gozzard】1 条告警："} {
		if got := title(wordsIn(language), &m, 200); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", language, got, want)
		}
	}
}
