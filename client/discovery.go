package client

import "context"

// MetricsTarget is an agent that serves metrics, in the format of Prometheus' http_sd_configs.
type MetricsTarget struct {
	Targets []string          `json:"targets"` // one address with its port
	Labels  map[string]string `json:"labels"`  // scheme and path of the metrics, and __meta_gozzard_* for relabelling
}

// MetricsTargets lists the agents that serve metrics, of the hosts that the caller may see.
func (c *Client) MetricsTargets(ctx context.Context) (list []MetricsTarget, err error) {
	err = c.get(ctx, "/api/v1/discovery/prometheus", nil, &list)
	return list, err
}
