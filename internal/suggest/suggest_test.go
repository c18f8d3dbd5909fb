package suggest_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/suggest"
)

func TestNearest(t *testing.T) {
	known := []string{"start", "stop", "restart", "ip"}
	for word, want := range map[string]string{
		"strat": "start", "STOP": "stop", "restrat": "restart", "stpo": "stop", "i": "ip", "id": "ip",
		"": "", "xy": "", "banana": "", strings.Repeat("start", 20): "",
	} {
		if got := suggest.Nearest(word, known); got != want {
			t.Errorf("nearest of %.20q is %q, want %q", word, got, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	known := []string{"start", "stop"}
	for word, want := range map[string]string{
		"strt":   `unknown, did you mean "start"?`,
		"banana": "unknown, known are start, stop",
	} {
		if got := suggest.Unknown(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
