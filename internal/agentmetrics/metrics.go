package agentmetrics

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// maxProcesses bounds the processes that have series, as the server bounds those that it stores of a host.
const maxProcesses = 5000

// Options are what the metrics of an agent are made from. Host and Processes are required.
type Options struct {
	Host    string // the label of all series of processes: the first address of the host, as lists show it
	Agent   gozzard.AgentID
	Version string
	Mode    string

	// Processes returns the first processes and how many there are in total. It measures nothing.
	Processes func(most int) ([]supervise.Life, int)
	// Connected reports whether the server has opened a session. Unwritable reports whether the state folder cannot be
	// written. Either may be nil.
	Connected  func() bool
	Unwritable func() bool

	// Groups adds the series of process-exporter, so that dashboards made for it work.
	Groups bool
}

// Metrics are the metrics of an agent. It is a prometheus.Gatherer, also while nothing serves it.
type Metrics struct {
	o        Options
	registry *prometheus.Registry
}

// New makes the metrics of an agent.
func New(o Options) *Metrics {
	m := &Metrics{o: o, registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	m.constant("agent_info", "The agent of this host; always 1.", prometheus.Labels{"host": clean(o.Host),
		"agent": clean(string(o.Agent)), "version": clean(o.Version), "mode": clean(o.Mode)})
	m.flag("agent_connected", "1 while the server has opened a session with this agent.", o.Connected)
	m.flag("agent_state_unwritable", "1 while the agent cannot write its state folder: it supervises, but cannot record.",
		o.Unwritable)
	return m
}

// Registry is where other parts of the agent add metrics of their own.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Gather returns all metrics. Those of processes are what the supervisor has measured already: nothing is read from the
// machine for them.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) {
	// The registry compares every series with every other. The series of processes come from one list without
	// duplicates, so they do not go through it.
	families, err := m.registry.Gather()
	families = append(families, m.processes()...)
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return families, err
}

func (m *Metrics) constant(name, help string, labels prometheus.Labels) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "gozzard", Name: name, Help: help, ConstLabels: labels})
	g.Set(1)
	m.registry.MustRegister(g)
}

func (m *Metrics) flag(name, help string, read func() bool) {
	if read == nil {
		return
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "gozzard", Name: name, Help: help},
		func() float64 { return number(read()) }))
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
