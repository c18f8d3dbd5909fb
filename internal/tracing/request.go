package tracing

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/otlp"
)

// request is a request that may hand in operations. It gets a span with the first of them, so a caller without an account,
// and one that only asks, makes none.
type request struct {
	began  time.Time
	http   *http.Request
	origin gozzard.Origin

	mu      sync.Mutex
	decided bool
	span    *otlp.Span // nil: it is not traced
	place   place
}

type requestKey struct{}

// Handler makes the requests of a handler known.
func (t *Tracer) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &request{began: t.o.Now(), http: r, origin: gozzard.OriginOf(r.Context())}
		rec := &statusRecorder{ResponseWriter: w, code: http.StatusOK}
		defer t.finish(q, rec)
		next.ServeHTTP(rec, r.WithContext(context.WithValue(r.Context(), requestKey{}, q)))
	})
}

// finish ends the span of a request.
func (t *Tracer) finish(q *request, rec *statusRecorder) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.decided = true // an operation that comes later is not a part of it
	if q.span == nil {
		return
	}
	s := q.span
	s.End = latest(s.Start, t.o.Now())
	s.Attrs = append(s.Attrs, otlp.Int("http.response.status_code", int64(rec.code)))
	s.Failed = rec.code >= 500
	t.o.Sink.Add(s)
}

// join is the place of a request in its trace; ok is false if it is not traced. The first operation decides, with the app
// that hands it in.
func (t *Tracer) join(q *request, app, door string) (p place, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.decided {
		q.decided = true
		t.decide(q, app, door)
	}
	return q.place, q.span != nil
}

// decide makes the span of a request, if it is traced. The caller holds q.mu.
func (t *Tracer) decide(q *request, app, door string) {
	// Read what the caller sent.
	s := &otlp.Span{ID: newSpanID(), Kind: otlp.ServerKind, Start: q.began}
	sampled := false
	if t.o.Callers != Ignore {
		c, state := remote(q.http.Header)
		switch {
		case !c.IsValid():
		case t.o.Callers == Link:
			s.Links = []otlp.Link{{Trace: otlp.TraceID(c.TraceID()), Span: otlp.SpanID(c.SpanID())}}
		default:
			s.Trace, s.Parent, s.State, s.Remote = otlp.TraceID(c.TraceID()), otlp.SpanID(c.SpanID()), state, true
			sampled = c.IsSampled()
		}
	}

	// Decide.
	if s.Trace == (otlp.TraceID{}) {
		s.Trace = newTraceID()
		sampled = t.sampled(s.Trace)
	}
	if !sampled || !t.allow(app) {
		return
	}

	// Name it.
	route := t.o.Route(q.http.URL.Path)
	s.Name = q.http.Method + " " + route
	if route == "" {
		s.Name = q.http.Method
	}
	s.Attrs = []otlp.Attr{otlp.String("http.request.method", q.http.Method), otlp.String("http.route", route),
		otlp.String("gozzard.door", door), otlp.String("gozzard.app", app),
		otlp.String("gozzard.request_id", q.origin.RequestID)}
	q.span, q.place = s, place{trace: s.Trace, span: s.ID, state: s.State}
}

// Of is the trace of a request that hands in a job: its operations come later.
func (t *Tracer) Of(ctx context.Context, caller gozzard.Caller) gozzard.Trace {
	q, ok := ctx.Value(requestKey{}).(*request)
	if !ok {
		return gozzard.TraceOf(ctx)
	}
	p, ok := t.join(q, caller.App, gozzard.OriginOf(ctx).Door)
	if !ok {
		return ""
	}
	return p.text()
}

// statusRecorder remembers the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	code    int
	written bool
}

func (s *statusRecorder) WriteHeader(code int) {
	if !s.written && code >= 200 {
		s.code, s.written = code, true
	}
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap gives http.ResponseController access to the connection.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
