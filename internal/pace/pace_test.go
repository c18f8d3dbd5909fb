package pace_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/pace"
)

var limits = pace.Limits{Least: time.Second, Most: 15 * time.Second}

// Pauses double from the shortest to the longest one.
func TestPauseGrows(t *testing.T) {
	var e pace.Estimate
	for i, want := range []time.Duration{1, 2, 4, 8, 15, 15, 15} {
		if d := e.Pause(i+1, limits, 0); d != want*time.Second {
			t.Errorf("after %d tries: %v, want %v s", i+1, d, want)
		}
	}
	if d := e.Pause(1<<30, limits, 0); d != limits.Most {
		t.Errorf("after very many tries: %v", d)
	}
	if d := e.Pause(1, limits, 0.999); d <= time.Second || d > 1250*time.Millisecond {
		t.Errorf("spread to %v", d)
	}
}

// Slow answers make pauses long, and quick ones make them short again.
func TestPauseFollowsAnswers(t *testing.T) {
	var e pace.Estimate
	for range 50 {
		e.Answered(4 * time.Second)
	}
	if d := e.Pause(1, limits, 0); d < 4*time.Second || d > 6*time.Second {
		t.Errorf("answers take 4 s, the pause is %v", d)
	}

	for range 100 {
		e.Answered(10 * time.Millisecond)
	}
	if d := e.Pause(1, limits, 0); d != time.Second {
		t.Errorf("answers take 10 ms, the pause is %v", d)
	}

	e.Answered(-time.Hour) // a clock that was set back
	if d := e.Expected(); d < 0 {
		t.Errorf("expected after %v", d)
	}
}

// A pause that is too short for every answer grows until an answer comes within it.
func TestPauseGrowsUntilAnAnswerIsMeasured(t *testing.T) {
	var e pace.Estimate
	e.Answered(time.Millisecond)
	took, repeats, now := 6*time.Second, 0, time.Unix(1e9, 0)
	for range 5 {
		sent := now
		now = now.Add(time.Minute)
		if e.Pause(1, limits, 0) < took {
			repeats++
			for range 100 { // they were sent together
				e.Overdue(sent, now)
			}
			continue
		}
		e.Answered(took)
	}
	if repeats != 3 {
		t.Errorf("%d messages were repeated before the pause was long enough", repeats)
	}
	if d := e.Pause(1, limits, 0); d < took {
		t.Errorf("answers take %v, the pause is %v", took, d)
	}
}
