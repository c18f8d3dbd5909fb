package api

import "github.com/prometheus/client_golang/prometheus"

// TraceCounts says what became of spans, and how many operations were not followed to their end.
type TraceCounts struct {
	Sent, Full, Refused, Failures uint64 // spans; Failures are requests
	Limited, Busy, Aged           uint64 // operations
}

// WatchTraces adds the counts of traces. They are read when the metrics are. It must be called at most once.
func (m *Metrics) WatchTraces(read func() TraceCounts) {
	counter := func(name, help, reason string, value func(c TraceCounts) uint64) prometheus.Collector {
		o := prometheus.CounterOpts{Namespace: "gozzard", Name: name, Help: help}
		if reason != "" {
			o.ConstLabels = prometheus.Labels{"reason": reason}
		}
		return prometheus.NewCounterFunc(o, func() float64 { return float64(value(read())) })
	}

	const spans, operations = "trace_spans_dropped_total", "trace_operations_dropped_total"
	const dropped = "Spans that were dropped, by reason."
	const untraced = "Operations that were not traced, or not to their end, by reason."
	m.registry.MustRegister(
		counter("trace_spans_sent_total", "Spans that the collector took.", "", func(c TraceCounts) uint64 { return c.Sent }),
		counter(spans, dropped, "queue_full", func(c TraceCounts) uint64 { return c.Full }),
		counter(spans, dropped, "refused", func(c TraceCounts) uint64 { return c.Refused }),
		counter("trace_exports_failed_total", "Requests with spans that failed.", "", func(c TraceCounts) uint64 { return c.Failures }),
		counter(operations, untraced, "rate", func(c TraceCounts) uint64 { return c.Limited }),
		counter(operations, untraced, "busy", func(c TraceCounts) uint64 { return c.Busy }),
		counter(operations, untraced, "age", func(c TraceCounts) uint64 { return c.Aged }))
}
