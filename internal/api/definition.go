package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

// getDefinitions lists the recorded definitions of processes that match, in the order of the processes.
func (a *api) getDefinitions(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the query.
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	f := fleet.Filter{Namespaces: q.patterns("namespace"), Names: q.patterns("name"), Clouds: q.clouds()}
	start, limit := q.page()
	agents, none := a.hostAgents(caller, q)
	f.Agents = agents
	if err := q.faults.Err(); err != nil {
		return err
	}

	// Find the definitions.
	page := client.DefinitionPage{Definitions: []client.Definition{}}
	if !none {
		count, defs, err := a.Plane.Definitions(r.Context(), caller, f, start, limit)
		if err != nil {
			return err
		}
		for i := range defs {
			d, err := renderDefinition(&defs[i])
			if err != nil {
				return err
			}
			page.Definitions = append(page.Definitions, d)
		}
		page.Count, page.Next = count, nextPage(start, min(limit, count-start), count)
	}

	return answer(w, http.StatusOK, page)
}

func renderDefinition(d *record.Definition) (client.Definition, error) {
	spec, err := gozzard.DecodeSpec(d.Spec)
	if err != nil {
		return client.Definition{}, err
	}

	host := client.Host{Agent: d.ID.Agent}
	if d.Addr.IP.IsValid() {
		host = client.Host{Cloud: &d.Addr.Cloud, IP: ipText(d.Addr.IP)}
	}

	return client.Definition{Namespace: d.ID.Key.Namespace, Name: d.ID.Key.Name, Labels: d.Labels,
		Hosts: []client.Host{host}, Spec: renderSpec(spec), RegisteredAt: d.RegisteredAt.UTC()}, nil
}

// renderSpec is a definition in the form of requests. Reading it gives the same definition.
func renderSpec(s *gozzard.Spec) client.Spec {
	p, kind := &s.Policy, int(s.Policy.Kind)
	out := client.Spec{
		Identity: s.Identity, Control: s.Control, Resource: s.Resource, ConfigMap: s.ConfigMap,
		Policy: client.Policy{
			Kind: &kind, StartCheckSecs: &p.StartCheckSecs, StopCheckSecs: &p.StopCheckSecs,
			StartRetries: &p.StartRetries, StartInterval: &p.StartInterval, OpTimeout: &p.OpTimeout,
			CrontabRule: p.CrontabRule, TimeZone: p.TimeZone, Overlap: p.Overlap, Orphans: p.Orphans,
			HealthRestart: p.HealthRestart,
		},
	}

	for _, n := range []struct {
		value *int
		to    **int
	}{{&p.HealthInterval, &out.Policy.HealthInterval}, {&p.HealthTimeout, &out.Policy.HealthTimeout},
		{&p.HealthThreshold, &out.Policy.HealthThreshold}} {
		if *n.value != 0 { // 0 is the default, and requests cannot write it
			*n.to = n.value
		}
	}
	if s.ReportID != 0 {
		out.Report = &client.ReportPolicy{ID: s.ReportID}
	}

	return out
}
