package gozzard_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

// TestExitCode: a code is known if the agent says so. Events of earlier versions have no such word, so their 0 may mean
// that nobody saw the end.
func TestExitCode(t *testing.T) {
	for _, test := range []struct {
		event gozzard.Event
		code  int
		known bool
	}{
		{gozzard.Event{Known: true}, 0, true},
		{gozzard.Event{Known: true, Code: 3}, 3, true},
		{gozzard.Event{Code: 3}, 3, true}, // of an earlier version
		{gozzard.Event{}, 0, false},
		{gozzard.Event{Code: -1, Signal: "SIGKILL"}, 0, false},
		{gozzard.Event{Known: true, Code: 9, Signal: "SIGKILL"}, 0, false},
		{gozzard.Event{Code: -1}, 0, false},
	} {
		if code, known := test.event.ExitCode(); code != test.code || known != test.known {
			t.Errorf("%+v: %d, %v", test.event, code, known)
		}
	}
}

// TestEventInJournal: events of earlier versions are readable, and the cause of an event is kept.
func TestEventInJournal(t *testing.T) {
	e := gozzard.Event{Seq: 4, Kind: gozzard.EventExited, Known: true,
		Cause: gozzard.Cause{Op: gozzard.OpID{1, 2, 15: 9}, Ref: gozzard.AttemptRef{Task: 17, Index: 3}}}
	b, err := json.Marshal(&e)
	if err != nil {
		t.Fatal(err)
	}
	var back gozzard.Event
	if err := json.Unmarshal(b, &back); err != nil || back != e {
		t.Errorf("%s is read as %+v: %v", b, back, err)
	}

	old := `{"seq":4,"key":{"namespace":"a","name":"b"},"kind":"exited","at":5,"code":3}`
	if err := json.Unmarshal([]byte(old), &back); err != nil || back.Code != 3 {
		t.Errorf("%+v: %v", back, err)
	}
	for _, bad := range []string{"", "x:1:2", "00:1:2", "00000000000000000000000000000000:x:2",
		"00000000000000000000000000000000:1:99999999999", "00000000000000000000000000000000:1"} {
		if new(gozzard.Cause).UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is read as a cause", bad)
		}
	}
}

// TestEventKinds: the list has every kind once, with its meaning.
func TestEventKinds(t *testing.T) {
	var words []gozzard.EventKind
	for _, k := range gozzard.EventKinds() {
		if k.Meaning == "" || slices.Contains(words, k.Kind) {
			t.Errorf("%+v", k)
		}
		words = append(words, k.Kind)
	}
	for _, k := range []gozzard.EventKind{gozzard.EventStarted, gozzard.EventStartFailed, gozzard.EventExited,
		gozzard.EventRestarted, gozzard.EventRestartFailed, gozzard.EventRestartCancelled, gozzard.EventLimitExceeded,
		gozzard.EventGroupLimitExceeded, gozzard.EventHealth, gozzard.EventRan, gozzard.EventOrphaned, gozzard.EventCrashLoop, gozzard.EventHostLost,
		gozzard.EventHostBack, gozzard.EventTaskFailed,
		gozzard.EventForeignAddress, gozzard.EventPolicyChanged, gozzard.EventLeftOut} {
		if !slices.Contains(words, k) {
			t.Errorf("the list does not have %s", k)
		}
	}

	for _, name := range []string{"docs/monitor.md", "docs/zh/monitor.md"} {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range words {
			if !strings.Contains(string(page), "`"+string(k)+"`") {
				t.Errorf("%s does not have %s", name, k)
			}
		}
	}
}
