package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

// TestTextLog: a log for people is one harmless line for each entry, whatever callers put into its values.
func TestTextLog(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(newTextLog(&b, slog.LevelInfo, false)).With("agent", "a1")
	log.Debug("not shown")
	log.Warn("rejected a request", "name", "x\n12:00:00 INFO forged \x1b[2J", "count", 3)
	log.WithGroup("disk").Info("full", "msg", "kept")
	want := regexp.MustCompile(`^\d\d:\d\d:\d\d WARN  rejected a request agent=a1 name="x\\n12:00:00 INFO forged \\x1b\[2J" count=3
\d\d:\d\d:\d\d INFO  full agent=a1 disk\.msg=kept
$`)
	if !want.MatchString(b.String()) {
		t.Errorf("the log is\n%s", b.String())
	}

	b.Reset()
	slog.New(newTextLog(&b, slog.LevelInfo, true)).Error("broken", "err", "x")
	if !strings.Contains(b.String(), painter(true).paint(red, "ERROR")+" broken "+painter(true).paint(faint, "err=x")) {
		t.Errorf("with colours: %q", b.String())
	}
}

// TestLogFormat: json and auto elsewhere than on a terminal are JSON, text is text, and other words are rejected.
func TestLogFormat(t *testing.T) {
	for format, isJSON := range map[string]bool{"auto": true, "json": true, "text": false} {
		var b bytes.Buffer
		log, err := (&logFlags{level: "info", format: format}).logger(&b)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("hello", "a", 1)
		if json.Valid(b.Bytes()) != isJSON || !strings.Contains(b.String(), "hello") {
			t.Errorf("%s writes %q", format, b.String())
		}
	}
	if _, err := (&logFlags{level: "info", format: "xml"}).logger(&bytes.Buffer{}); err == nil {
		t.Error("the format xml is accepted")
	}
}
