package gsekit

import (
	"context"
	"slices"

	"github.com/gozzard/gozzard/internal/topology"
)

type simpleProcess struct {
	Name string `json:"bk_process_name"`
	ID   int    `json:"bk_process_id"`
}

// processInstanceSimple lists the names and ids of processes: of a scope, or of some service instances.
func (s *server) processInstanceSimple(_ context.Context, r *request) (any, error) {
	fits := r.nameFilter()
	q := topology.Query{Biz: r.biz, Limit: -1}
	if v := r.get("service_instance_ids"); v.Exists() {
		if q.Services = r.ids("service_instance_ids"); len(q.Services) == 0 {
			nothing(&q)
		}
	} else {
		q = r.selection(r.biz).query
		fits = func(string) bool { return true } // as in GSEKit, where a scope has its own expressions
	}
	if err := r.err(); err != nil {
		return nil, err
	}

	_, rows := s.plane.FindProcesses(r.Caller, q)
	out := []simpleProcess{}
	for i := range rows {
		if fits(rows[i].Name) {
			out = append(out, simpleProcess{rows[i].Name, rows[i].Process})
		}
	}
	return out, nil
}

// processRow is a process as CMDB has it.
type processRow struct {
	Property processProperty `json:"property"`
	Relation processRelation `json:"relation"`
	Template int             `json:"process_template_id"`
	Process  int             `json:"bk_process_id"`
	Configs  []configRef     `json:"config_templates"`
}

type processProperty struct {
	Biz      int    `json:"bk_biz_id"`
	ID       int    `json:"bk_process_id"`
	Name     string `json:"bk_process_name"`
	Template int    `json:"process_template_id"`
	Num      int    `json:"proc_num"`
	Priority int    `json:"priority"`
	*procAttributes
}

type processRelation struct {
	Process  int `json:"bk_process_id"`
	Template int `json:"process_template_id"`
	Service  int `json:"service_instance_id"`
	Host     int `json:"bk_host_id"`
}

type configRef struct {
	ID       int    `json:"config_template_id"`
	Name     string `json:"template_name"`
	FileName string `json:"file_name"`
}

// configRefs gives the templates of processes by their ids.
func (s *server) configRefs(ctx context.Context, r *request, processes []int) (map[int][]configRef, error) {
	out := map[int][]configRef{}
	if len(processes) == 0 {
		return out, nil
	}
	_, rows := s.plane.FindProcesses(r.Caller, topology.Query{Biz: r.biz, Processes: processes, Limit: -1})
	if err := s.configs.AddRefs(ctx, r.biz, rows); err != nil {
		return nil, err
	}
	for i := range rows {
		for _, c := range rows[i].Configs {
			out[rows[i].Process] = append(out[rows[i].Process], configRef{c.ID, c.Name, c.FileName})
		}
	}
	return out, nil
}

func refsOf(refs map[int][]configRef, process int) []configRef {
	if list := refs[process]; list != nil {
		return list
	}
	return []configRef{}
}

// processInstance lists the processes of a service instance with their attributes.
func (s *server) processInstance(ctx context.Context, r *request) (any, error) {
	service := int(must(r.form, "service_instance_id", integer(1, maxID)))
	if err := r.err(); err != nil {
		return nil, err
	}
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}

	// Find the service instance.
	var found *topology.ServiceInstance
	eachModule(&rec.Business, func(_ *topology.Set, m *topology.Module) {
		if m == nil {
			return
		}
		if i := slices.IndexFunc(m.Instances, func(x topology.ServiceInstance) bool { return x.ID == service }); i >= 0 {
			found = &m.Instances[i]
		}
	})
	out := []processRow{}
	if found == nil {
		return out, nil
	}

	ids := make([]int, len(found.Processes))
	for i := range found.Processes {
		ids[i] = found.Processes[i].ID
	}
	refs, err := s.configRefs(ctx, r, ids)
	if err != nil {
		return nil, err
	}
	for i := range found.Processes {
		p := &found.Processes[i]
		out = append(out, processRow{
			Property: processProperty{r.biz, p.ID, p.Name, p.Template, p.Count(), p.Priority, attributesOf(p)},
			Relation: processRelation{p.ID, p.Template, found.ID, found.Host.ID},
			Template: p.Template, Process: p.ID, Configs: refsOf(refs, p.ID),
		})
	}
	return out, nil
}

// templateRow is a process template: its processes have its attributes.
type templateRow struct {
	Name     string          `json:"bk_process_name"`
	ID       int             `json:"process_template_id"`
	Service  int             `json:"service_template_id"`
	Property templateProcess `json:"property"`
	Configs  []configRef     `json:"config_templates"`
}

type templateProcess struct {
	Name     string `json:"bk_process_name"`
	Num      int    `json:"proc_num"`
	Priority int    `json:"priority"`
	*procAttributes
}

// processTemplate lists the process templates of a service template, each by its first process.
func (s *server) processTemplate(ctx context.Context, r *request) (any, error) {
	service := int(must(r.form, "service_template_id", integer(1, maxID)))
	if err := r.err(); err != nil {
		return nil, err
	}
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}

	var list []*topology.Process
	var ids []int
	seen := map[int]bool{0: true}
	eachModule(&rec.Business, func(_ *topology.Set, m *topology.Module) {
		if m == nil || m.ServiceTemplate != service {
			return
		}
		for i := range m.Instances {
			for j := range m.Instances[i].Processes {
				if p := &m.Instances[i].Processes[j]; !seen[p.Template] {
					seen[p.Template] = true
					list, ids = append(list, p), append(ids, p.ID)
				}
			}
		}
	})
	refs, err := s.configRefs(ctx, r, ids)
	if err != nil {
		return nil, err
	}
	out := []templateRow{}
	for _, p := range list {
		out = append(out, templateRow{Name: p.Name, ID: p.Template, Service: service,
			Property: templateProcess{p.Name, p.Count(), p.Priority, attributesOf(p)}, Configs: refsOf(refs, p.ID)})
	}
	return out, nil
}
