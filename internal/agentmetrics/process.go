package agentmetrics

import (
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// states are the values of the label state: those that an agent can report. A process that the agent does not know has no
// series at all.
func states() []gozzard.Condition {
	all := gozzard.Conditions()
	return all[:len(all)-1] // without unregistered
}

// The series of one process. What is not known is left out.
var processSeries = []struct {
	name, help string
	kind       dto.MetricType
	value      func(l *supervise.Life) (v float64, known bool)
}{
	{"gozzard_process_wanted", "1 if the process should run.", dto.MetricType_GAUGE,
		func(l *supervise.Life) (float64, bool) { return number(l.Wanted == gozzard.StateRunning), true }},
	{"gozzard_process_supervised", "1 if the agent starts the process again when it ends.", dto.MetricType_GAUGE,
		func(l *supervise.Life) (float64, bool) { return number(l.Hosted), true }},
	{"gozzard_process_healthy", "1 if the health check passes, 0 if it fails; absent without a check or a result.",
		dto.MetricType_GAUGE,
		func(l *supervise.Life) (float64, bool) {
			return number(l.Health == gozzard.HealthPassing), l.Health != gozzard.HealthNone
		}},
	{"gozzard_process_restarts_total",
		"Starts without a request since an operation last started or stopped the process.", dto.MetricType_COUNTER,
		func(l *supervise.Life) (float64, bool) { return float64(l.Restarts), true }},
	{"gozzard_process_limit_exceeded_total",
		"How often the process was over a limit of its definition, since the agent started.", dto.MetricType_COUNTER,
		func(l *supervise.Life) (float64, bool) { return float64(l.Exceeded), true }},
	{"gozzard_process_cpu_seconds_total", "Processor time of the process and its descendants.", dto.MetricType_COUNTER,
		func(l *supervise.Life) (float64, bool) {
			return (l.Usage.UserTime + l.Usage.SystemTime).Seconds(), l.Measured
		}},
	{"gozzard_process_resident_memory_bytes", "Resident memory of the process and its descendants.",
		dto.MetricType_GAUGE,
		func(l *supervise.Life) (float64, bool) { return float64(l.Usage.MemKB << 10), l.Measured }},
	{"gozzard_process_open_fds", "Open descriptors of the process and its descendants; absent if the agent may not count them.",
		dto.MetricType_GAUGE,
		func(l *supervise.Life) (float64, bool) { return float64(l.Usage.FD), l.Measured && l.Usage.FD > 0 }},
	{"gozzard_process_start_time_seconds", "When the process that runs now started, in Unix seconds.", dto.MetricType_GAUGE,
		func(l *supervise.Life) (float64, bool) {
			return float64(l.StartedAt), l.StartedAt > 0 && l.State == gozzard.StateRunning
		}},
}

// processes are the families of all processes.
func (m *Metrics) processes() (families []*dto.MetricFamily) {
	lives, total := m.o.Processes(maxProcesses)
	labels := make([][]*dto.LabelPair, len(lives))
	for i := range lives {
		labels[i] = m.labels(&lives[i])
	}

	// One series for each process.
	for _, s := range processSeries {
		f := newFamily(s.name, s.help, s.kind, len(lives))
		for i := range lives {
			if v, known := s.value(&lives[i]); known {
				f.add(labels[i], v)
			}
		}
		families = f.appendTo(families)
	}

	// One series for each process and state.
	words := states()
	pairs := make([]*dto.LabelPair, len(words))
	for i, w := range words {
		pairs[i] = pair("state", w.String())
	}
	f := newFamily("gozzard_process_state", "1 for the state of the process, 0 for all others.", dto.MetricType_GAUGE,
		len(lives)*len(words))
	for i := range lives {
		is := lives[i].ConditionOf()
		for n, w := range words {
			f.add(append(labels[i][:len(labels[i]):len(labels[i])], pairs[n]), number(w == is))
		}
	}
	families = f.appendTo(families)

	// The agent as a whole.
	own := func(name, help string, v int) {
		f := newFamily(name, help, dto.MetricType_GAUGE, 1)
		f.add(nil, float64(v))
		families = f.appendTo(families)
	}
	own("gozzard_agent_processes", "Processes that the agent manages.", total)
	own("gozzard_agent_processes_left_out", "Managed processes that have no series, because there are too many.",
		total-len(lives))

	if m.o.Groups {
		families = appendGroups(families, lives)
	}
	return families
}

// labels are those of all series of a process, in the order of their names.
func (m *Metrics) labels(l *supervise.Life) []*dto.LabelPair {
	all := make([]*dto.LabelPair, 0, 7) // with room for one more
	of := func(name string) {
		if v := l.Labels[name]; v != "" {
			all = append(all, pair(name, v))
		}
	}

	of(gozzard.LabelBusiness)
	all = append(all, pair("host", m.o.Host))
	of(gozzard.LabelModule)
	all = append(all, pair("name", l.Name), pair("namespace", l.Namespace))
	of(gozzard.LabelSet)
	return all
}

func pair(name, value string) *dto.LabelPair {
	value = clean(value)
	return &dto.LabelPair{Name: &name, Value: &value}
}

// clean makes a text fit for a label: the value of a label is valid UTF-8. What else it has is escaped when it is written.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
