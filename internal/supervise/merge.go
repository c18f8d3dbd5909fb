package supervise

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// A process decides by itself how often it ends, so the number of its events and of the lines about it is limited.
const (
	mergeWindow = time.Minute
	mergeAfter  = 10 // events of one kind, or equal lines, of one process in one window
)

// quota counts things of one kind within a window of time that begins with the first of them.
type quota struct {
	since time.Time
	used  int
}

// take reports whether one more is within the limit.
func (q *quota) take(now time.Time) bool {
	if now.Sub(q.since) >= mergeWindow {
		q.since, q.used = now, 0
	}
	q.used++
	return q.used <= mergeAfter
}

// merger merges the events of one process that are too many of one kind into one event with their number. That event
// has the content of the last of them, and is sent at the end of the window.
type merger struct {
	send func(gozzard.Event)

	mu    sync.Mutex
	kinds map[gozzard.EventKind]*mergedKind
}

// mergedKind is what a merger knows of one kind of events.
type mergedKind struct {
	quota
	last  gozzard.Event // of those that were not sent
	count int           // those that were not sent
	timer *time.Timer
}

// add sends an event, or counts it.
func (m *merger) add(e gozzard.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()

	// Find the kind.
	k := m.kinds[e.Kind]
	if k == nil {
		if m.kinds == nil {
			m.kinds = map[gozzard.EventKind]*mergedKind{}
		}
		k = &mergedKind{}
		m.kinds[e.Kind] = k
	}

	// Send it while there are few.
	now := time.Now()
	if now.Sub(k.since) >= mergeWindow {
		m.flushKind(k)
	}
	if k.take(now) {
		m.send(e)
		return
	}

	// Count it.
	k.last = e
	if k.count++; k.count == 1 {
		k.timer = time.AfterFunc(mergeWindow-now.Sub(k.since), m.flush)
	}
}

// flush sends the merged events of all windows that are over. With the timer of a window it is called in time.
func (m *merger) flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.kinds {
		if time.Since(k.since) >= mergeWindow {
			m.flushKind(k)
		}
	}
}

// flushAll sends all merged events now.
func (m *merger) flushAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.kinds {
		m.flushKind(k)
	}
}

// flushKind sends the merged event of a kind if there is one. The caller holds mu.
func (m *merger) flushKind(k *mergedKind) {
	if k.count == 0 {
		return
	}
	e := k.last
	if k.count > 1 {
		e.Message = clipText(mergedText(k.count, e.Message))
	}
	k.timer.Stop()
	k.last, k.count = gozzard.Event{}, 0
	m.send(e)
}

// mergedText is the message of several events that are reported as one.
func mergedText(count int, last string) string {
	return fmt.Sprintf("%d events of this kind within a minute, the last: %s", count, last)
}

// fewLines passes on the lines of the log about one process, but not more than a few equal ones a minute. The next one
// that is passed on has the number of those that were not.
type fewLines struct {
	slog.Handler
	counts *lineCounts
}

type lineCounts struct {
	mu    sync.Mutex
	lines map[string]*lineCount
}

type lineCount struct {
	quota
	left int // lines that were not passed on
}

func newFewLines(h slog.Handler) fewLines { return fewLines{h, &lineCounts{}} }

// Handle passes a line on, or counts it.
func (f fewLines) Handle(ctx context.Context, r slog.Record) error {
	left, pass := f.counts.take(r.Message)
	if !pass {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("not_logged", left))
	}
	return f.Handler.Handle(ctx, r)
}

// take reports whether a line is passed on, and how many equal ones before it were not.
func (c *lineCounts) take(message string) (left int, pass bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines == nil {
		c.lines = map[string]*lineCount{}
	}
	l := c.lines[message]
	if l == nil {
		l = &lineCount{}
		c.lines[message] = l
	}

	if !l.take(time.Now()) {
		l.left++
		return 0, false
	}
	left, l.left = l.left, 0
	return left, true
}

// WithAttrs keeps the counts: they are of the process.
func (f fewLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return fewLines{f.Handler.WithAttrs(attrs), f.counts}
}

// WithGroup keeps the counts: they are of the process.
func (f fewLines) WithGroup(name string) slog.Handler {
	return fewLines{f.Handler.WithGroup(name), f.counts}
}
