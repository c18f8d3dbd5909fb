package otlp

import (
	"time"

	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/gozzard/gozzard"
)

// The sizes of what is in a span, whatever it was made of.
const (
	maxText  = 256 // bytes of a name or of the value of an attribute
	maxAttrs = 32
	maxLinks = 64
)

// Kind is the role of a span.
type Kind uint8

// The kinds.
const (
	Internal Kind = iota
	ServerKind
)

// SpanID names a span within its trace.
type SpanID [8]byte

// TraceID names a trace.
type TraceID [16]byte

// Span is a piece of work that has ended.
type Span struct {
	Trace  TraceID
	ID     SpanID
	Parent SpanID // zero: it begins the trace
	State  string // tracestate
	Remote bool   // the parent is in another program

	Name       string
	Kind       Kind
	Start, End time.Time
	Attrs      []Attr
	Links      []Link
	Failed     bool
	Why        string // of Failed
}

// Link connects a span with one of another trace.
type Link struct {
	Trace TraceID
	Span  SpanID
}

// Attr is an attribute: a text or a number.
type Attr struct {
	name string
	text string
	num  int64
	kind attrKind
}

type attrKind uint8

const (
	attrText attrKind = iota
	attrInt
	attrBool
)

// String is an attribute with a text. It is cut to 256 bytes.
func String(name, value string) Attr { return Attr{name: name, text: value} }

// Int is an attribute with a number.
func Int(name string, value int64) Attr { return Attr{name: name, num: value, kind: attrInt} }

// Bool is an attribute that is true.
func Bool(name string) Attr { return Attr{name: name, num: 1, kind: attrBool} }

// keyValues encodes attributes. Texts that are empty are left out.
func keyValues(list []Attr) []*commonpb.KeyValue {
	out := make([]*commonpb.KeyValue, 0, len(list))
	for _, a := range list[:min(len(list), maxAttrs)] {
		v := &commonpb.AnyValue{}
		switch {
		case a.kind == attrInt:
			v.Value = &commonpb.AnyValue_IntValue{IntValue: a.num}
		case a.kind == attrBool:
			v.Value = &commonpb.AnyValue_BoolValue{BoolValue: a.num != 0}
		case a.text == "":
			continue
		default:
			v.Value = &commonpb.AnyValue_StringValue{StringValue: gozzard.Clip(a.text, maxText)}
		}
		out = append(out, &commonpb.KeyValue{Key: a.name, Value: v})
	}
	return out
}

// The flags of a span: it is sampled, and whether its parent is in another program is known.
const (
	flagSampled     = 0x01
	flagRemoteKnown = 0x100
	flagRemote      = 0x200
)

// encode makes the message of a span.
func (s *Span) encode() *tracepb.Span {
	p := &tracepb.Span{
		TraceId: s.Trace[:], SpanId: s.ID[:], TraceState: gozzard.Clip(s.State, gozzard.MaxTraceState),
		Name: gozzard.Clip(s.Name, maxText), Kind: tracepb.Span_SPAN_KIND_INTERNAL, Flags: flagSampled | flagRemoteKnown,
		StartTimeUnixNano: uint64(s.Start.UnixNano()), EndTimeUnixNano: uint64(s.End.UnixNano()),
		Attributes: keyValues(s.Attrs),
	}
	if s.Parent != (SpanID{}) {
		p.ParentSpanId = s.Parent[:]
	}
	if s.Remote {
		p.Flags |= flagRemote
	}
	if s.Kind == ServerKind {
		p.Kind = tracepb.Span_SPAN_KIND_SERVER
	}
	if s.Failed {
		p.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: gozzard.Clip(s.Why, maxText)}
	}
	for i := range s.Links[:min(len(s.Links), maxLinks)] {
		l := &s.Links[i]
		p.Links = append(p.Links, &tracepb.Span_Link{TraceId: l.Trace[:], SpanId: l.Span[:], Flags: flagSampled})
	}
	return p
}
