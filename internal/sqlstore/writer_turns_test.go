package sqlstore

import (
	"slices"
	"testing"
	"time"
)

// TD2: while one app has many calls waiting for the writer, the call of another app is in the next transaction. A call that
// is larger than a transaction should be is alone in its own.
func TestTD2AppsTakeTurnsAtTheWriter(t *testing.T) {
	w := &writer{queue: make(chan *job, 1)}
	wait := func(op, app string, rows int) { w.wait(&job{op: op, app: app, rows: rows}) }
	for range 300 {
		wait("a task", "many", 1000)
	}
	wait("a task", "large", 50_000)
	wait("verdicts", "", 500)
	w.queue <- &job{op: "a task", app: "small", rows: 1}
	w.collect()

	next := func() (apps []string) {
		for _, j := range w.gather() {
			apps = append(apps, j.app)
		}
		return apps
	}
	for i, want := range [][]string{{"many"}, {"large"}, {"", "small", "many", "many", "many"}} {
		if got := next(); !slices.Equal(got, want) {
			t.Errorf("transaction %d has %q, want %q", i, got, want)
		}
	}

	// What a caller cancelled is passed over.
	cancelled := &job{op: "a task", app: "gone", rows: 1}
	cancelled.state.Store(jobCancelled)
	w.wait(cancelled)
	for w.waiting.Len() > 0 {
		if slices.Contains(next(), "gone") {
			t.Error("a cancelled call runs")
		}
	}
}

// A transaction has as many rows as it can write in a short time, and more when the disk is slow.
func TestRowsOfATransaction(t *testing.T) {
	w := &writer{}
	if n := w.rowLimit(); n != maxBatchRows {
		t.Errorf("before anything is known: %d", n)
	}

	rows := func(n int, run, commit time.Duration) int {
		for range 100 {
			w.measure([]*job{{rows: n / 2}, {rows: n - n/2}}, run, commit)
		}
		return w.rowLimit()
	}
	if n := rows(1000, 50*time.Millisecond, time.Millisecond); n < 450 || n > 550 {
		t.Errorf("at 50 µs a row: %d", n)
	}
	if n := rows(1000, 50*time.Millisecond, 200*time.Millisecond); n < 3800 {
		t.Errorf("with a disk that takes 200 ms: %d", n)
	}
	if n := rows(1000, time.Hour, time.Millisecond); n != leastRows {
		t.Errorf("with rows that take seconds: %d", n)
	}
}
