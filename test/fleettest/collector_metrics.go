//go:build linux

package fleettest

import (
	"slices"

	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	metricspb "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
)

// Metrics are all metrics that came.
func (c *Collector) Metrics() []*collectorpb.ExportMetricsServiceRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.metrics)
}

// Metric is the newest metric of a name; nil if none came.
func (c *Collector) Metric(name string) *metricspb.Metric {
	for _, m := range slices.Backward(c.named(name)) {
		return m
	}
	return nil
}

// Point is the newest point of a metric that has all of the given labels; nil if none came.
func (c *Collector) Point(name string, labels map[string]string) *metricspb.NumberDataPoint {
	for _, m := range slices.Backward(c.named(name)) {
		for _, p := range slices.Concat(m.GetGauge().GetDataPoints(), m.GetSum().GetDataPoints()) {
			if hasLabels(p, labels) {
				return p
			}
		}
	}
	return nil
}

// named are all metrics of a name, the newest at the end.
func (c *Collector) named(name string) (list []*metricspb.Metric) {
	for _, m := range c.Metrics() {
		for _, r := range m.GetResourceMetrics() {
			for _, s := range r.GetScopeMetrics() {
				for _, m := range s.GetMetrics() {
					if m.GetName() == name {
						list = append(list, m)
					}
				}
			}
		}
	}
	return list
}

// Label is the value of a label of a point.
func Label(p *metricspb.NumberDataPoint, name string) string {
	for _, a := range p.GetAttributes() {
		if a.GetKey() == name {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

func hasLabels(p *metricspb.NumberDataPoint, labels map[string]string) bool {
	for name, value := range labels {
		if Label(p, name) != value {
			return false
		}
	}
	return true
}
