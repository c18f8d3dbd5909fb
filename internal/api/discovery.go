package api

import (
	"net/http"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// getMetricsTargets lists the agents that serve metrics, for Prometheus. A host that is offline stays in the list:
// that it cannot be scraped is what people want to be paged for.
func (a *api) getMetricsTargets(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	list := []client.MetricsTarget{}
	hosts := a.Plane.Hosts(caller)
	for i := range hosts {
		h := &hosts[i].Info
		scheme, at, ok := h.MetricsAddr()
		if !ok {
			continue
		}

		list = append(list, client.MetricsTarget{Targets: []string{at.String()}, Labels: map[string]string{
			"__scheme__":              scheme,
			"__metrics_path__":        "/metrics",
			"__meta_gozzard_host":     h.Addrs[0].String(),
			"__meta_gozzard_agent":    string(h.Agent),
			"__meta_gozzard_cloud":    strconv.Itoa(h.Addrs[0].Cloud),
			"__meta_gozzard_hostname": label(h.Hostname),
			"__meta_gozzard_os":       label(h.OS),
			"__meta_gozzard_version":  label(h.Version),
			"__meta_gozzard_mode":     h.Mode.String(),
			"__meta_gozzard_online":   strconv.FormatBool(hosts[i].Online),
		}})
	}
	return answer(w, http.StatusOK, list)
}

// label is a text of an agent as the value of a label.
func label(s string) string { return gozzard.Clip(s, gozzard.MaxProcessNameBytes) }
