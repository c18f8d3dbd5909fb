package agentmetrics

import (
	dto "github.com/prometheus/client_model/go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// The series of process-exporter that an agent can answer from what it measures. Others of its names are left out.
var groupSeries = []struct {
	name, help    string
	kind          dto.MetricType
	label, values string // one more label and its value; "" for none
	value         func(l *supervise.Life) (v float64, known bool)
}{
	{"namedprocess_namegroup_num_procs", "Processes of the group: a process of Gozzard and its descendants.",
		dto.MetricType_GAUGE, "", "",
		func(l *supervise.Life) (float64, bool) {
			return float64(l.Usage.Procs), l.Measured || l.State != gozzard.StateRunning
		}},
	{"namedprocess_namegroup_cpu_seconds_total", "Processor time in user and system mode.", dto.MetricType_COUNTER, "mode",
		"user",
		func(l *supervise.Life) (float64, bool) { return l.Usage.UserTime.Seconds(), l.Measured }},
	{"namedprocess_namegroup_cpu_seconds_total", "", dto.MetricType_COUNTER, "mode", "system",
		func(l *supervise.Life) (float64, bool) { return l.Usage.SystemTime.Seconds(), l.Measured }},
	{"namedprocess_namegroup_memory_bytes", "Memory in use.", dto.MetricType_GAUGE, "memtype", "resident",
		func(l *supervise.Life) (float64, bool) { return float64(l.Usage.MemKB << 10), l.Measured }},
	{"namedprocess_namegroup_open_filedesc", "Open descriptors.", dto.MetricType_GAUGE, "", "",
		func(l *supervise.Life) (float64, bool) { return float64(l.Usage.FD), l.Measured && l.Usage.FD > 0 }},
	{"namedprocess_namegroup_oldest_start_time_seconds", "When the process started, in Unix seconds.",
		dto.MetricType_GAUGE, "", "",
		func(l *supervise.Life) (float64, bool) {
			return float64(l.StartedAt), l.StartedAt > 0 && l.State == gozzard.StateRunning
		}},
}

// appendGroups adds the families of process-exporter. The name of a group is NAMESPACE:NAME.
func appendGroups(families []*dto.MetricFamily, lives []supervise.Life) []*dto.MetricFamily {
	names := make([]*dto.LabelPair, len(lives))
	for i := range lives {
		names[i] = pair("groupname", lives[i].Key.String())
	}

	var f *family
	for n, s := range groupSeries {
		if n == 0 || groupSeries[n-1].name != s.name {
			if f != nil {
				families = f.appendTo(families)
			}
			f = newFamily(s.name, s.help, s.kind, 2*len(lives))
		}
		var more *dto.LabelPair
		if s.label != "" {
			more = pair(s.label, s.values)
		}
		for i := range lives {
			v, known := s.value(&lives[i])
			switch {
			case !known:
			case more == nil:
				f.add([]*dto.LabelPair{names[i]}, v)
			default:
				f.add([]*dto.LabelPair{names[i], more}, v)
			}
		}
	}
	return f.appendTo(families)
}
