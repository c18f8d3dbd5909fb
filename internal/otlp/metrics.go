package otlp

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
)

// maxPoints is how many points one request has.
const maxPoints = 5000

// Metrics pushes the metrics of a registry.
type Metrics struct {
	c        *Client
	from     prometheus.Gatherer
	every    time.Duration
	started  uint64
	failures atomic.Uint64
	down     bool // the last push failed; only Run uses it
}

// NewMetrics makes what pushes the metrics of a registry from time to time.
func NewMetrics(c *Client, from prometheus.Gatherer, every time.Duration) *Metrics {
	return &Metrics{c: c, from: from, every: every, started: uint64(c.o.Now().UnixNano())}
}

// Failures counts the pushes that failed.
func (m *Metrics) Failures() uint64 { return m.failures.Load() }

// Run pushes until ctx ends. A push that fails is not repeated: the next one has newer values of everything.
func (m *Metrics) Run(ctx context.Context) error {
	tick := time.NewTicker(m.every)
	defer tick.Stop()
	for {
		err := m.push(ctx)
		if err != nil && ctx.Err() == nil {
			m.failures.Add(1)
			if !m.down {
				m.c.o.Log.Warn("cannot push metrics", "collector", m.c.base, "err", err)
			}
		} else if m.down {
			m.c.o.Log.Info("metrics are pushed again", "collector", m.c.base)
		}
		m.down = err != nil

		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// push sends all metrics once.
func (m *Metrics) push(ctx context.Context) error {
	families, err := m.from.Gather()
	if len(families) == 0 {
		return err
	}

	var list []*metricspb.Metric
	points := 0
	for _, f := range families {
		if n := len(f.GetMetric()); points > 0 && points+n > maxPoints {
			if err := m.post(ctx, list); err != nil {
				return err
			}
			list, points = nil, 0
		}
		list, points = append(list, m.encode(f)), points+len(f.GetMetric())
	}
	return m.post(ctx, list)
}

func (m *Metrics) post(ctx context.Context, list []*metricspb.Metric) error {
	return m.c.post(ctx, "/v1/metrics", &collectorpb.ExportMetricsServiceRequest{
		ResourceMetrics: []*metricspb.ResourceMetrics{{Resource: m.c.resource,
			ScopeMetrics: []*metricspb.ScopeMetrics{{Scope: m.c.scope(), Metrics: list}}}},
	}, new(collectorpb.ExportMetricsServiceResponse))
}

// encode makes the message of a family.
func (m *Metrics) encode(f *dto.MetricFamily) *metricspb.Metric {
	out := &metricspb.Metric{Name: f.GetName(), Description: f.GetHelp(), Unit: f.GetUnit()}
	now := uint64(m.c.o.Now().UnixNano())
	const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	switch f.GetType() {
	case dto.MetricType_COUNTER:
		sum := &metricspb.Sum{AggregationTemporality: cumulative, IsMonotonic: true}
		for _, s := range f.GetMetric() {
			sum.DataPoints = append(sum.DataPoints, m.number(s, s.GetCounter().GetValue(), m.started, now))
		}
		out.Data = &metricspb.Metric_Sum{Sum: sum}
	case dto.MetricType_HISTOGRAM:
		h := &metricspb.Histogram{AggregationTemporality: cumulative}
		for _, s := range f.GetMetric() {
			h.DataPoints = append(h.DataPoints, m.histogram(s, now))
		}
		out.Data = &metricspb.Metric_Histogram{Histogram: h}
	case dto.MetricType_SUMMARY:
		sum := &metricspb.Summary{}
		for _, s := range f.GetMetric() {
			sum.DataPoints = append(sum.DataPoints, m.summary(s, now))
		}
		out.Data = &metricspb.Metric_Summary{Summary: sum}
	default:
		g := &metricspb.Gauge{}
		for _, s := range f.GetMetric() {
			v := s.GetGauge().GetValue()
			if s.Gauge == nil {
				v = s.GetUntyped().GetValue()
			}
			g.DataPoints = append(g.DataPoints, m.number(s, v, 0, now))
		}
		out.Data = &metricspb.Metric_Gauge{Gauge: g}
	}
	return out
}

func (m *Metrics) number(s *dto.Metric, v float64, since, now uint64) *metricspb.NumberDataPoint {
	return &metricspb.NumberDataPoint{Attributes: labels(s), StartTimeUnixNano: since, TimeUnixNano: now,
		Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: v}}
}

// histogram turns the cumulative buckets of Prometheus into counts of each.
func (m *Metrics) histogram(s *dto.Metric, now uint64) *metricspb.HistogramDataPoint {
	h := s.GetHistogram()
	sum := h.GetSampleSum()
	p := &metricspb.HistogramDataPoint{Attributes: labels(s), StartTimeUnixNano: m.started, TimeUnixNano: now,
		Count: h.GetSampleCount(), Sum: &sum}
	before := uint64(0)
	for _, b := range h.GetBucket() {
		if math.IsInf(b.GetUpperBound(), 1) {
			break
		}
		p.ExplicitBounds = append(p.ExplicitBounds, b.GetUpperBound())
		p.BucketCounts = append(p.BucketCounts, b.GetCumulativeCount()-before)
		before = b.GetCumulativeCount()
	}
	p.BucketCounts = append(p.BucketCounts, p.Count-min(before, p.Count))
	return p
}

func (m *Metrics) summary(s *dto.Metric, now uint64) *metricspb.SummaryDataPoint {
	p := &metricspb.SummaryDataPoint{Attributes: labels(s), StartTimeUnixNano: m.started, TimeUnixNano: now,
		Count: s.GetSummary().GetSampleCount(), Sum: s.GetSummary().GetSampleSum()}
	for _, q := range s.GetSummary().GetQuantile() {
		p.QuantileValues = append(p.QuantileValues, &metricspb.SummaryDataPoint_ValueAtQuantile{
			Quantile: q.GetQuantile(), Value: q.GetValue()})
	}
	return p
}

func labels(s *dto.Metric) []*commonpb.KeyValue {
	list := make([]*commonpb.KeyValue, len(s.GetLabel()))
	for i, l := range s.GetLabel() {
		list[i] = &commonpb.KeyValue{Key: l.GetName(), Value: &commonpb.AnyValue{
			Value: &commonpb.AnyValue_StringValue{StringValue: l.GetValue()}}}
	}
	return list
}
