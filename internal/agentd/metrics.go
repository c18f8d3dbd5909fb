package agentd

import (
	dto "github.com/prometheus/client_model/go"

	"github.com/gozzard/gozzard/internal/agentmetrics"
)

// MetricsOptions say where the metrics of the agent are served, and which.
type MetricsOptions struct {
	Listen agentmetrics.ListenOptions
	Groups bool // also under the names of process-exporter
}

// openListener checks how the metrics are served. It comes before anything else of the agent: settings that would show the
// metrics to everybody must not run, and the server gets the address when the session opens.
func (a *Agent) openListener() (err error) {
	if a.options.Metrics.Listen.Address == "" {
		return nil
	}
	a.listener, err = agentmetrics.NewListener(a.options.Metrics.Listen, a, a.options.Log)
	return err
}

// metricsURL is where Prometheus finds the metrics; "" if they are not served.
func (a *Agent) metricsURL() string {
	if a.listener == nil {
		return ""
	}
	return a.listener.URL(a.addrs[0].IP)
}

// Gather returns the metrics of the agent and its processes.
func (a *Agent) Gather() ([]*dto.MetricFamily, error) { return a.metrics.Gather() }

// openMetrics makes the metrics of the agent. They exist whether or not anything serves or sends them.
func (a *Agent) openMetrics() error {
	a.metrics = agentmetrics.New(agentmetrics.Options{
		Host: a.addrs[0].String(), Agent: a.id, Version: a.options.Version, Mode: a.own.Mode.String(),
		Processes:  a.agent.Lives,
		Connected:  func() bool { return a.agent.Summary().Open },
		Unwritable: func() bool { return a.agent.Summary().Fault != "" },
		Groups:     a.options.Metrics.Groups,
	})
	return nil
}

// Metrics are the metrics of the agent and its processes.
func (a *Agent) Metrics() *agentmetrics.Metrics { return a.metrics }
