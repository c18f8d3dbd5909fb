package agentd

import (
	"github.com/gozzard/gozzard/internal/agentmetrics"
)

// openMetrics makes the metrics of the agent. They exist whether or not anything serves or sends them.
func (a *Agent) openMetrics() error {
	a.metrics = agentmetrics.New(agentmetrics.Options{
		Host: a.addrs[0].String(), Agent: a.id, Version: a.options.Version, Mode: a.own.Mode.String(),
		Processes:  a.agent.Lives,
		Connected:  func() bool { return a.agent.Summary().Open },
		Unwritable: func() bool { return a.agent.Summary().Fault != "" },
	})
	return nil
}

// Metrics are the metrics of the agent and its processes.
func (a *Agent) Metrics() *agentmetrics.Metrics { return a.metrics }
