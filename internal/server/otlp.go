package server

import (
	"context"
	"fmt"
	"time"

	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/otlp"
	"github.com/gozzard/gozzard/internal/tracing"
)

// OTLPOptions say which OpenTelemetry collector gets traces and metrics. Without an endpoint nothing is traced or sent.
type OTLPOptions struct {
	Endpoint string // URL
	Headers  string // file with headers of the requests
	CA       string // file of authorities

	Ratio   float64 // of operations that are traced though no caller decides about them
	Callers string  // what becomes of the trace of a caller
	Rate    float64 // operations of one app that are traced in a second, at most

	Metrics time.Duration // how often metrics are pushed; 0: never
}

// maxTraceRate is how many operations of one app may be traced in a second, at most.
const maxTraceRate = 10_000

// check rejects settings that cannot work.
func (o *OTLPOptions) check() error {
	if o.Endpoint == "" {
		return nil
	}
	if !(o.Ratio >= 0 && o.Ratio <= 1) { // also no number
		return fmt.Errorf("--otlp-ratio %v: use 0 to 1", o.Ratio)
	}
	switch tracing.Callers(o.Callers) {
	case tracing.Follow, tracing.Link, tracing.Ignore:
	default:
		return fmt.Errorf("--otlp-callers %q: use follow, link or ignore", o.Callers)
	}
	if !(o.Rate > 0 && o.Rate <= maxTraceRate) {
		return fmt.Errorf("--otlp-rate %v: use more than 0, up to %d", o.Rate, maxTraceRate)
	}
	if o.Metrics != 0 && (o.Metrics < otlp.MinPush || o.Metrics > otlp.MaxPush) {
		return fmt.Errorf("--otlp-metrics %s: use 1s to 24h, or 0 for none", o.Metrics)
	}
	return nil
}

// telemetry is what goes to a collector. The zero value sends nothing.
type telemetry struct {
	tracer  *tracing.Tracer
	spans   *otlp.Spans
	metrics *otlp.Metrics
}

// openTelemetry makes what sends traces and metrics to a collector.
func (s *Server) openTelemetry(context.Context) error {
	o := &s.options.OTLP
	if o.Endpoint == "" {
		return nil
	}

	// Make the client.
	if err := o.check(); err != nil {
		return err
	}
	client, err := otlp.New(otlp.Options{Endpoint: o.Endpoint, HeadersFile: o.Headers, CA: o.CA, Service: "gozzard",
		Version: s.options.Version, Log: s.options.Log})
	if err != nil {
		return err
	}
	client.Identify(s.id)
	s.onClose("cannot close the connections to the collector", client.Close)

	// Make what uses it.
	routes, err := Routes()
	if err != nil {
		return err
	}
	t := &s.telemetry
	t.spans = otlp.NewSpans(client)
	t.tracer = tracing.New(tracing.Options{Sink: t.spans, Ratio: o.Ratio, Callers: tracing.Callers(o.Callers), Rate: o.Rate,
		Log: s.options.Log, Now: s.options.Now, Route: newPatterns(routes).find})
	s.metrics.WatchTraces(t.counts)
	if o.Metrics > 0 {
		t.metrics = otlp.NewMetrics(client, s.metrics.Registry(), o.Metrics, s.metrics.Registry())
	}
	return nil
}

// counts says what became of traces.
func (t *telemetry) counts() api.TraceCounts {
	s, o := t.spans.Counts(), t.tracer.Counts()
	return api.TraceCounts{Sent: s.Sent, Full: s.Full, Refused: s.Refused, Failures: s.Failures,
		Limited: o.Limited, Busy: o.Busy, Aged: o.Aged}
}

// parts are what runs as long as the server.
func (t *telemetry) parts() (parts []func(context.Context) error) {
	if t.tracer != nil {
		parts = append(parts, t.tracer.Run, t.spans.Run)
	}
	if t.metrics != nil {
		parts = append(parts, t.metrics.Run)
	}
	return parts
}
