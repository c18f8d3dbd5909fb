package agentmetrics

import dto "github.com/prometheus/client_model/go"

// family collects the series of one name. Its series are in a few pieces of memory: an agent with 1,000 processes has
// 20,000 of them at every scrape.
type family struct {
	out    dto.MetricFamily
	kind   dto.MetricType
	slab   []dto.Metric
	gauges []dto.Gauge
	counts []dto.Counter
	values []float64
}

// newFamily makes a family with room for n series.
func newFamily(name, help string, kind dto.MetricType, n int) *family {
	f := &family{kind: kind, slab: make([]dto.Metric, n), values: make([]float64, n)}
	f.out.Name, f.out.Help, f.out.Type = &name, &help, &f.kind
	f.out.Metric = make([]*dto.Metric, 0, n)
	if kind == dto.MetricType_COUNTER {
		f.counts = make([]dto.Counter, n)
	} else {
		f.gauges = make([]dto.Gauge, n)
	}
	return f
}

// add adds a series. At most as many fit as the family has room for.
func (f *family) add(labels []*dto.LabelPair, v float64) {
	i := len(f.out.Metric)
	x := &f.slab[i]
	f.values[i] = v
	x.Label = labels
	if f.kind == dto.MetricType_COUNTER {
		f.counts[i].Value = &f.values[i]
		x.Counter = &f.counts[i]
	} else {
		f.gauges[i].Value = &f.values[i]
		x.Gauge = &f.gauges[i]
	}
	f.out.Metric = append(f.out.Metric, x)
}

// appendTo adds the family to a list, unless it is empty: a family without series is no valid text.
func (f *family) appendTo(list []*dto.MetricFamily) []*dto.MetricFamily {
	if len(f.out.Metric) == 0 {
		return list
	}
	return append(list, &f.out)
}
