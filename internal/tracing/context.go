package tracing

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/gozzard/gozzard"
)

// remote reads the trace context that a caller sent. A malformed or repeated traceparent counts as none, and a malformed
// or long tracestate as no state, as W3C Trace Context says.
func remote(h http.Header) (trace.SpanContext, string) {
	parents := h.Values("traceparent")
	if len(parents) != 1 || len(parents[0]) > gozzard.MaxTrace {
		return trace.SpanContext{}, ""
	}
	return parse(parents[0], strings.Join(h.Values("tracestate"), ","))
}

// parse reads a traceparent and a tracestate.
func parse(parent, state string) (trace.SpanContext, string) {
	c := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(),
		propagation.MapCarrier{"traceparent": parent}))
	if !c.IsValid() {
		return trace.SpanContext{}, ""
	}
	if len(state) > gozzard.MaxTraceState {
		return c, ""
	}
	s, err := trace.ParseTraceState(state)
	if err != nil {
		return c, ""
	}
	if state = s.String(); len(state) > gozzard.MaxTraceState {
		return c, ""
	}
	return c, state
}

// placeOf reads what place.text wrote.
func placeOf(t gozzard.Trace) (place, bool) {
	c, state := parse(t.Parent(), t.State())
	if !c.IsValid() || !c.IsSampled() {
		return place{}, false
	}
	return place{trace: [16]byte(c.TraceID()), span: [8]byte(c.SpanID()), state: state}, true
}
