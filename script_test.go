package gozzard_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

// TestScriptSpec: what a script may have, without a host.
func TestScriptSpec(t *testing.T) {
	step := func(id int, after ...int) gozzard.ScriptStep {
		return gozzard.ScriptStep{ID: id, Command: "true", Seconds: 1, After: after}
	}
	text := func(path string) gozzard.ScriptText { return gozzard.ScriptText{Path: path, Content: []byte("x")} }
	for want, s := range map[string]gozzard.ScriptSpec{
		"":                     {Steps: []gozzard.ScriptStep{step(0), step(1, 0)}, Texts: []gozzard.ScriptText{text("/a/b")}},
		"needs 1 to 16 steps":  {},
		"comes twice":          {Steps: []gozzard.ScriptStep{step(0), step(0)}},
		"does not come before": {Steps: []gozzard.ScriptStep{step(0, 1), step(1)}},
		"has no command":       {Steps: []gozzard.ScriptStep{{Command: " ", Seconds: 1}}},
		"NUL character":        {Steps: []gozzard.ScriptStep{{Command: "a\x00b", Seconds: 1}}},
		"time limit":           {Steps: []gozzard.ScriptStep{{Command: "a"}}},
		"is not absolute":      {Steps: []gozzard.ScriptStep{step(0)}, Texts: []gozzard.ScriptText{text("a")}},
		"is the beginning of":  {Steps: []gozzard.ScriptStep{step(0)}, Texts: []gozzard.ScriptText{text("/a"), text("/ab")}},
		"24h0m0s are allowed": {Steps: []gozzard.ScriptStep{{ID: 0, Command: "a", Seconds: 80_000},
			{ID: 1, Command: "a", Seconds: 80_000}}},
		"at most 262144 are allowed": {Steps: []gozzard.ScriptStep{{Command: strings.Repeat("a", 256<<10+1), Seconds: 1}}},
	} {
		s.Output = gozzard.ScriptOutput(1)
		if err := s.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	for hosts, want := range map[int]int{0: 64 << 10, 1: 64 << 10, 256: 64 << 10, 1024: 16 << 10, 4096: 4 << 10, 100_000: 4 << 10} {
		if got := gozzard.ScriptOutput(hosts); got != want {
			t.Errorf("%d hosts: %d", hosts, got)
		}
	}
}
