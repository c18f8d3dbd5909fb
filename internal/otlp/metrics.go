package otlp

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
)

// The limits of a push.
const (
	MinPush = time.Second // from one push to the next
	MaxPush = 24 * time.Hour

	maxPoints = 5000             // of one request: a collector takes 20 MiB by default
	firstPush = 30 * time.Second // the longest time until the first push: agents that start at once do not all push at once
)

// Metrics pushes the metrics of a registry.
type Metrics struct {
	c        *Client
	from     prometheus.Gatherer
	every    time.Duration
	started  uint64
	ok, lost prometheus.Counter // pushes
	down     bool               // the last push failed; only Run uses it
}

// NewMetrics makes what pushes the metrics of a registry from time to time. It counts its own pushes there.
func NewMetrics(c *Client, from prometheus.Gatherer, every time.Duration, counts prometheus.Registerer) *Metrics {
	pushes := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "gozzard", Name: "metric_pushes_total",
		Help: "Pushes of metrics to the OpenTelemetry collector, by result."}, []string{"result"})
	counts.MustRegister(pushes)
	return &Metrics{c: c, from: from, every: every, started: uint64(c.o.Now().UnixNano()),
		ok: pushes.WithLabelValues("ok"), lost: pushes.WithLabelValues("failed")}
}

// Run pushes until ctx ends. A push that fails is not repeated: the next one has newer values of everything.
func (m *Metrics) Run(ctx context.Context) error {
	next := time.NewTimer(rand.N(min(m.every, firstPush)))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}

		begun := time.Now()
		err := m.push(ctx)
		if ctx.Err() != nil {
			return nil
		}
		m.note(err)
		var p *postError
		wait := m.every - time.Since(begun)
		if errors.As(err, &p) {
			wait = max(wait, p.wait) // that the collector asks for
		}
		next.Reset(max(wait, 0))
	}
}

// note counts a push, and logs when the collector fails and when it is back.
func (m *Metrics) note(err error) {
	switch {
	case err == nil:
		m.ok.Inc()
		if m.down {
			m.c.o.Log.Info("metrics are pushed again", "collector", m.c.base)
		}
	case !m.down:
		m.c.o.Log.Warn("cannot push metrics; everything else goes on", "collector", m.c.base, "err", err)
		fallthrough
	default:
		m.lost.Inc()
	}
	m.down = err != nil
}

// push sends all metrics once. A family with more series than a request has points goes in several.
func (m *Metrics) push(ctx context.Context) error {
	families, err := m.from.Gather()
	if len(families) == 0 {
		return err
	}

	now := uint64(m.c.o.Now().UnixNano())
	var list []*metricspb.Metric
	points := 0
	for _, f := range families {
		for rest := f.GetMetric(); len(rest) > 0; {
			n := min(len(rest), maxPoints-points)
			list, points, rest = append(list, m.encode(f, rest[:n], now)), points+n, rest[n:]
			if points < maxPoints {
				continue
			}
			if err := m.post(ctx, list); err != nil {
				return err
			}
			list, points = nil, 0
		}
	}
	if points == 0 {
		return nil
	}
	return m.post(ctx, list)
}

func (m *Metrics) post(ctx context.Context, list []*metricspb.Metric) error {
	return m.c.post(ctx, "/v1/metrics", &collectorpb.ExportMetricsServiceRequest{
		ResourceMetrics: []*metricspb.ResourceMetrics{{Resource: m.c.resource,
			ScopeMetrics: []*metricspb.ScopeMetrics{{Scope: m.c.scope(), Metrics: list}}}},
	}, new(collectorpb.ExportMetricsServiceResponse))
}

// encode makes the message of some series of a family.
func (m *Metrics) encode(f *dto.MetricFamily, series []*dto.Metric, now uint64) *metricspb.Metric {
	out := &metricspb.Metric{Name: f.GetName(), Description: f.GetHelp(), Unit: f.GetUnit()}
	const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	switch f.GetType() {
	case dto.MetricType_COUNTER:
		sum := &metricspb.Sum{AggregationTemporality: cumulative, IsMonotonic: true}
		for _, s := range series {
			sum.DataPoints = append(sum.DataPoints, m.number(s, s.GetCounter().GetValue(), m.started, now))
		}
		out.Data = &metricspb.Metric_Sum{Sum: sum}
	case dto.MetricType_HISTOGRAM:
		h := &metricspb.Histogram{AggregationTemporality: cumulative}
		for _, s := range series {
			h.DataPoints = append(h.DataPoints, m.histogram(s, now))
		}
		out.Data = &metricspb.Metric_Histogram{Histogram: h}
	case dto.MetricType_SUMMARY:
		sum := &metricspb.Summary{}
		for _, s := range series {
			sum.DataPoints = append(sum.DataPoints, m.summary(s, now))
		}
		out.Data = &metricspb.Metric_Summary{Summary: sum}
	default:
		g := &metricspb.Gauge{}
		for _, s := range series {
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
