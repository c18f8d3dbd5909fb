package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
)

// TestChartOfValues: holes are empty, small values are visible, and the largest one reaches the top of a round axis.
func TestChartOfValues(t *testing.T) {
	got := draw([]float64{hole, 0, 0.01, 50, 100, hole, 100}, 4, percentText)
	want := `    100.0% │    █ █
           │    █ █
     50.0% │   ██ █
           │  ▁██ █
      0.0% └───────
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestAxis(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, hole: 1, 1: 1, 1.1: 2, 3: 4, 4.5: 5, 7: 8, 9: 10, 123: 200, 0.03: 0.04} {
		if got := roundUp(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("the axis of %v ends at %v, want %v", v, got, want)
		}
	}

	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	for step, want := range map[time.Duration]string{
		10 * time.Second: "03:04:05       03:06:35       03:09:05       03:11:35",
		time.Minute:      "03:04          03:19          03:34          03:49",
		time.Hour:        "01-02 03:04      01-02 20:04      01-03 13:04",
	} {
		if got := strings.TrimSpace(timeAxis(from, step, 60)); got != want {
			t.Errorf("%v: %s, want %s", step, got, want)
		}
	}
}

// TestChartOfAnyAnswer: a chart of what a server may answer, too few or strange values, does not fail.
func TestChartOfAnyAnswer(t *testing.T) {
	one, huge, bytes := new(float64(1)), new(math.MaxFloat64), new(int64(math.MaxInt64))
	for _, h := range []client.History{
		{}, {Step: -5, From: -1, CPU: []*float64{one}, Mem: []*int64{bytes}, Restarts: []*int64{bytes}},
		{Step: math.MaxInt64, CPU: []*float64{nil, huge, one}, Mem: []*int64{nil}, Restarts: []*int64{nil, bytes}},
	} {
		var out, errs strings.Builder
		env := &cliEnv{out: &out, errs: &errs, now: time.Now}
		if err := env.drawHistory("a:b\x1b[2J", &h); err != nil {
			t.Error(err)
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("%q", out.String())
		}
	}
}
