// Package agentmetrics has the metrics of an agent and of its processes, and serves them to Prometheus.
package agentmetrics
