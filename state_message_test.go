package gozzard_test

import (
	"testing"

	"github.com/gozzard/gozzard"
)

func TestStateMessage(t *testing.T) {
	for _, tt := range []struct {
		found        gozzard.Found
		name, detail string
		want         string
	}{
		{gozzard.FoundAlreadyRunning, "nginx", "", "already running: nginx"},
		{gozzard.FoundStillRunning, "nginx", "pid 7; last output: x", "still running: nginx; pid 7; last output: x"},
		{gozzard.FoundNotRunning, "网关: 1", "the process exited with 3", "not running: 网关: 1; the process exited with 3"},
	} {
		text := gozzard.StateMessage(tt.found, tt.name, tt.detail)
		if text != tt.want {
			t.Errorf("message is %q, want %q", text, tt.want)
		}

		found, name, detail, ok := gozzard.SplitStateMessage(text)
		if !ok || found != tt.found || name != tt.name || detail != tt.detail {
			t.Errorf("%q is read as %q, %q, %q (%v)", text, found, name, detail, ok)
		}
	}

	for _, text := range []string{"", "not running", "not running: ", "not running; x", "Not running: x",
		"no need to stop the process(nginx) that is not running", "bind: address in use"} {
		if found, name, detail, ok := gozzard.SplitStateMessage(text); ok {
			t.Errorf("%q is read as %q, %q, %q", text, found, name, detail)
		}
	}
}
