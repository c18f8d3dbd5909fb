package gse

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
)

const maxGroups = 1000

type groupInfos struct {
	Infos []groupInfo `json:"process_group_infos"`
}

type groupInfo struct {
	Meta     groupMeta     `json:"meta"`
	Host     hostData      `json:"host"`
	AgentID  string        `json:"bk_agent_id"`
	ID       string        `json:"id"`
	Resource groupResource `json:"resource"`
}

type groupMeta struct {
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels"`
}

type groupResource struct {
	CPULimit  float64 `json:"cpu_pool_limit"`
	MemLimit  float64 `json:"mem_pool_limit"`
	CPUWeight int     `json:"cpu_pool_weight"`
	MemWeight int     `json:"mem_pool_weight"`
}

// groupTargets are the hosts of a call on a namespace.
func groupTargets(places []place, namespace string) []gozzard.Target {
	out := make([]gozzard.Target, len(places))
	for i := range places {
		out[i] = places[i].target
		out[i].ResultKey = places[i].name(formV1) + ":" + namespace
	}
	return out
}

func (s *server) setGroups(ctx context.Context, c *blueking.Call) (any, error) {
	m := readMeta(c.Body.Get("meta"), false)
	places := s.readPlaces(&c.Body)
	groups := readGroups(c.Body.Get("spec"))

	if err := c.Faults.Err(); err != nil {
		return nil, err
	}

	answers, err := s.plane.SetGroups(ctx, record.GroupRequest{
		Caller: c.Caller, Namespace: m.key.Namespace, Labels: m.labels,
		Targets: groupTargets(places, m.key.Namespace), Groups: groups, RequestHash: c.Hash,
	})
	if err != nil {
		return nil, err
	}

	out := make(map[string]entry, len(answers))
	for i := range answers {
		a := gozzard.Attempt{State: gozzard.AttemptOK, Action: gozzard.ActionUpdate, Outcome: answers[i].Outcome}
		number, text := c.Words.Verdict(&a, "")
		out[answers[i].Target.ResultKey] = entry{ErrorCode: number, ErrorMsg: text}
	}

	return out, nil
}

// readGroups reads spec.process_group. Every field is required.
func readGroups(spec strictjson.Value) []record.Group {
	if !spec.Object() {
		return nil
	}

	var groups []record.Group
	seen := make(map[string]bool)
	list := spec.Get("process_group")
	before := spec.Faults().Len()

	n := list.List(maxGroups, func(e *strictjson.Value) {
		if !e.Object() {
			return
		}

		id := e.Get("id")
		g := record.Group{ID: readChecked(id, specjson.CheckName)}
		if seen[g.ID] && g.ID != "" {
			id.Fault("%q is there twice", g.ID)
		}

		seen[g.ID] = true

		if r := e.Get("resource"); r.Object() {
			cpu, mem, cpuWeight, memWeight := r.Get("cpu_pool_limit"), r.Get("mem_pool_limit"),
				r.Get("cpu_pool_weight"), r.Get("mem_pool_weight")
			g.CPULimit, g.MemLimit = cpu.Float(0, 100), mem.Float(0, 100)
			g.CPUWeight, g.MemWeight = int(cpuWeight.Int(0, 1)), int(memWeight.Int(0, 1))
		}

		groups = append(groups, g)
	})
	if n == 0 && spec.Faults().Len() == before {
		list.Fault("at least one group is required")
	}

	return groups
}

func (s *server) groups(ctx context.Context, c *blueking.Call) (any, error) {
	// Read the request.
	m := readMeta(c.Body.Get("meta"), false)
	places := s.readPlaces(&c.Body)

	if err := c.Faults.Err(); err != nil {
		return nil, err
	}

	// Read the groups.
	asked := groupTargets(places, m.key.Namespace)
	records, err := s.plane.Groups(ctx, c.Caller, m.key.Namespace, asked)
	if err != nil {
		return nil, err
	}

	// Find how the caller named each host.
	byAgent := make(map[gozzard.AgentID]*place, len(places))
	for i := range places {
		if h, ok := s.plane.Resolve(c.Caller, asked[i]); ok && places[i].ip != "" {
			byAgent[h.Info.Agent] = &places[i]
		}
	}

	// Render them.
	out := groupInfos{Infos: make([]groupInfo, len(records))}
	for i := range records {
		r := &records[i]
		g := groupInfo{
			Meta: groupMeta{Namespace: r.Namespace, Labels: r.Labels}, Host: hostOf(r.Addr), AgentID: string(r.Agent),
			ID: r.Group,
			Resource: groupResource{CPULimit: r.CPULimit, MemLimit: r.MemLimit, CPUWeight: r.CPUWeight,
				MemWeight: r.MemWeight},
		}
		if g.Meta.Labels == nil {
			g.Meta.Labels = map[string]string{}
		}
		if p := byAgent[r.Agent]; p != nil { // as the caller named it
			g.Host = hostData{IP: p.ip, Cloud: p.cloud, Supplier: p.supplier}
		}
		out.Infos[i] = g
	}

	return out, nil
}
