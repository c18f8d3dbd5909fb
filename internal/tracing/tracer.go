package tracing

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/otlp"
)

// The bounds of what is followed at a time.
const (
	maxTasks    = 4096
	maxAttempts = 65536
	maxApps     = 4096
	maxAge      = time.Hour // of a task
	maxSingle   = 8         // attempts of a task that have spans of their own; above, batches have
	maxServices = time.Second
)

// Sink takes spans and never waits.
type Sink interface{ Add(...*otlp.Span) }

// Callers says what becomes of the trace context that a caller sends.
type Callers string

// What becomes of it.
const (
	Follow Callers = "follow" // the operation is a part of the caller's trace, and is traced if the caller's is
	Link   Callers = "link"   // the operation has a trace of its own, with a link to that of the caller
	Ignore Callers = "ignore" // it is not read
)

// Options are the parts and settings of a Tracer. All are required but Now and Route.
type Options struct {
	Sink    Sink
	Ratio   float64 // of operations that are traced though no caller decides about them, 0 to 1
	Callers Callers
	Rate    float64 // operations of one app that are traced in a second, at most
	Log     *slog.Logger
	Now     func() time.Time // nil: time.Now

	// Route is the pattern of a path in the table of routes, "" if it has none. nil: none has.
	Route func(path string) string
}

// Tracer follows operations.
type Tracer struct {
	o Options

	mu       sync.Mutex
	tasks    map[gozzard.TaskSeq]*task
	attempts int // of all tasks
	apps     map[string]*rate.Limiter

	followed atomic.Int64 // len(tasks), to be read without the lock

	limited, busy, aged atomic.Uint64
}

// Counts says how many operations were not followed to their end.
type Counts struct {
	Limited uint64 // their app has too many
	Busy    uint64 // too many are followed already
	Aged    uint64 // they took too long
}

// New makes a Tracer.
func New(o Options) *Tracer {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Route == nil {
		o.Route = func(string) string { return "" }
	}
	return &Tracer{o: o, tasks: map[gozzard.TaskSeq]*task{}, apps: map[string]*rate.Limiter{}}
}

// Counts says how many operations were not followed to their end.
func (t *Tracer) Counts() Counts {
	return Counts{Limited: t.limited.Load(), Busy: t.busy.Load(), Aged: t.aged.Load()}
}

// Run ends batches and forgets tasks that take too long, until ctx ends.
func (t *Tracer) Run(ctx context.Context) error {
	tick := time.NewTicker(maxServices)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			t.o.Sink.Add(t.tidy()...)
		}
	}
}

// tidy ends the batches whose time is over and forgets old tasks.
func (t *Tracer) tidy() (spans []*otlp.Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.o.Now()
	for seq, k := range t.tasks {
		if now.Sub(k.since) > maxAge {
			t.aged.Add(1)
			spans = append(spans, k.end(now)...)
			t.forget(seq, k)
			continue
		}
		if k.batch != nil && !now.Before(k.batchEnds) {
			spans = append(spans, k.endBatch()...)
		}
	}
	return spans
}

// forget removes a task. The caller holds t.mu.
func (t *Tracer) forget(seq gozzard.TaskSeq, k *task) {
	delete(t.tasks, seq)
	t.attempts -= len(k.attempts)
	t.followed.Store(int64(len(t.tasks)))
}

// allow reports whether one more operation of an app may be traced.
func (t *Tracer) allow(app string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.tasks) >= maxTasks || t.attempts >= maxAttempts {
		t.busy.Add(1)
		return false
	}

	l := t.apps[app]
	if l == nil {
		if len(t.apps) >= maxApps { // apps have accounts, so this does not happen; the limits begin anew
			clear(t.apps)
		}
		l = rate.NewLimiter(rate.Limit(t.o.Rate), max(1, int(t.o.Rate)))
		t.apps[app] = l
	}
	if !l.AllowN(t.o.Now(), 1) {
		t.limited.Add(1)
		return false
	}
	return true
}

// sampled decides about a trace by its id, as the samplers of OpenTelemetry do: all programs with the same ratio decide alike.
func (t *Tracer) sampled(id otlp.TraceID) bool {
	return t.o.Ratio >= 1 || float64(binary.BigEndian.Uint64(id[8:])>>1) < t.o.Ratio*(1<<63)
}

func newTraceID() (id otlp.TraceID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

func newSpanID() (id otlp.SpanID) {
	_, _ = rand.Read(id[:])
	return id
}

// place is a span that others are below.
type place struct {
	trace otlp.TraceID
	span  otlp.SpanID
	state string
}

// text is the place as the record and the agents have it.
func (p *place) text() gozzard.Trace {
	text := "00-" + hex.EncodeToString(p.trace[:]) + "-" + hex.EncodeToString(p.span[:]) + "-01"
	if p.state != "" {
		text += " " + p.state
	}
	return gozzard.Trace(text)
}

// below makes a span below a place.
func (p *place) below(name string, start, end time.Time, attrs ...otlp.Attr) *otlp.Span {
	return &otlp.Span{Trace: p.trace, ID: newSpanID(), Parent: p.span, State: p.state, Name: name, Start: start,
		End: latest(start, end), Attrs: attrs}
}

func (p *place) link() otlp.Link { return otlp.Link{Trace: p.trace, Span: p.span} }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
