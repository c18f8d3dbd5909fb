package gozzard

import (
	"context"
	"strings"
)

// Trace is the place of an operation in a distributed trace, in the words of W3C Trace Context: a traceparent, then, after a
// space, a tracestate if there is one. "" is an operation that is not traced. Nothing decides by it: an operation with a
// trace is carried out as one without.
type Trace string

// The sizes of a traceparent of version 00 and of the longest tracestate.
const (
	TraceParentBytes = 55
	MaxTraceState    = 512
)

// MaxTrace is the size of the longest Trace.
const MaxTrace = TraceParentBytes + 1 + MaxTraceState

// Parent is the traceparent.
func (t Trace) Parent() string {
	parent, _, _ := strings.Cut(string(t), " ")
	return parent
}

// State is the tracestate.
func (t Trace) State() string {
	_, state, _ := strings.Cut(string(t), " ")
	return state
}

// ID is the id of the trace in 32 hexadecimal digits, for logs. It is "" for anything that is not a traceparent: what
// comes from outside is never logged as an id.
func (t Trace) ID() string {
	parent := t.Parent()
	if len(parent) != TraceParentBytes || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' {
		return ""
	}
	id := parent[3:35]
	if strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}

type traceKey struct{}

// WithTrace adds the trace to a context in which operations are accepted later than in the request that asked for them, as
// those of jobs are.
func WithTrace(ctx context.Context, t Trace) context.Context {
	if t == "" {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceOf is the trace in a context.
func TraceOf(ctx context.Context) Trace {
	t, _ := ctx.Value(traceKey{}).(Trace)
	return t
}
