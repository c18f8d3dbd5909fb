package gsekit

import (
	"context"
	"slices"

	"github.com/gozzard/gozzard/internal/expression"
	"github.com/gozzard/gozzard/internal/topology"
)

// This file has what GSEKit's pages need to choose a scope: the parts of a business that the caller may see.

type bizInfo struct {
	ID         int           `json:"bk_biz_id"`
	Name       string        `json:"bk_biz_name"`
	Permission bizPermission `json:"permission"`
}

type bizPermission struct {
	View bool `json:"view_business"`
}

// bizList lists the businesses that the caller may see.
func (s *server) bizList(_ context.Context, r *request) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	out := []bizInfo{}
	for _, b := range s.plane.Businesses(r.Caller) {
		out = append(out, bizInfo{b.ID, b.Name, bizPermission{true}})
	}
	return out, nil
}

// topoNode is a business, a set or a module. The counts are of distinct hosts and processes.
type topoNode struct {
	ID              int        `json:"bk_inst_id"`
	Name            string     `json:"bk_inst_name"`
	Object          string     `json:"bk_obj_id"`
	ObjectName      string     `json:"bk_obj_name"`
	Children        []topoNode `json:"child"`
	ServiceTemplate *int       `json:"service_template_id,omitempty"` // of a module
	Hosts           int        `json:"host_count"`
	Processes       int        `json:"process_count"`
}

// bizTopo is the tree of a business.
func (s *server) bizTopo(ctx context.Context, r *request) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}
	b := &rec.Business
	if b.ID == 0 {
		return []topoNode{}, nil
	}

	root := topoNode{ID: b.ID, Name: b.Name, Object: "biz", ObjectName: r.lang.say(sayBusiness), Children: []topoNode{}}
	all := map[topology.Host]bool{}
	for i := range b.Sets {
		set := topoNode{ID: b.Sets[i].ID, Name: b.Sets[i].Name, Object: "set", ObjectName: r.lang.say(saySet), Children: []topoNode{}}
		inSet := map[topology.Host]bool{}
		for j := range b.Sets[i].Modules {
			m := &b.Sets[i].Modules[j]
			node := topoNode{ID: m.ID, Name: m.Name, Object: "module", ObjectName: r.lang.say(sayModule), Children: []topoNode{},
				ServiceTemplate: &m.ServiceTemplate}
			inModule := map[topology.Host]bool{}
			for k := range m.Instances {
				h := m.Instances[k].Host
				inModule[h], inSet[h], all[h] = true, true, true
				node.Processes += len(m.Instances[k].Processes)
			}
			node.Hosts = len(inModule)
			set.Processes += node.Processes
			set.Children = append(set.Children, node)
		}
		set.Hosts = len(inSet)
		root.Processes += set.Processes
		root.Children = append(root.Children, set)
	}
	root.Hosts = len(all)
	return []topoNode{root}, nil
}

// nameFilter reads an expression for names; all names fit if there is none.
func (f *form) nameFilter() func(name string) bool {
	source, given := opt(f, "expression", untrimmed)
	if !given || source == "" {
		return func(string) bool { return true }
	}
	e, err := expression.Parse(source)
	if err != nil {
		f.wrong = append(f.wrong, f.lang.expressionFault("expression", err))
		return func(string) bool { return false }
	}
	return e.Match
}

// envFilter reads an environment; "" and "0" mean all.
func (f *form) envFilter() func(e topology.Env) bool {
	env, _ := opt(f, "bk_set_env", choice(append([]string{""}, environments...)...))
	wanted := envOf(env)
	return func(e topology.Env) bool { return wanted == topology.EnvAny || e == wanted }
}

// eachModule calls do for each set, and for each of its modules; m is nil for the set itself.
func eachModule(b *topology.Business, do func(s *topology.Set, m *topology.Module)) {
	for i := range b.Sets {
		do(&b.Sets[i], nil)
		for j := range b.Sets[i].Modules {
			do(&b.Sets[i], &b.Sets[i].Modules[j])
		}
	}
}

// setList lists the sets of an environment whose names fit.
func (s *server) setList(ctx context.Context, r *request) (any, error) {
	inEnv, fits := r.envFilter(), r.nameFilter()
	if err := r.err(); err != nil {
		return nil, err
	}
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}
	out := []setInfo{}
	eachModule(&rec.Business, func(set *topology.Set, m *topology.Module) {
		if m == nil && inEnv(set.Env) && fits(set.Name) {
			out = append(out, setInfo{set.ID, set.Env.String(), set.Name})
		}
	})
	return out, nil
}

type moduleRow struct {
	ID              int     `json:"bk_module_id"`
	Name            string  `json:"bk_module_name"`
	ServiceTemplate int     `json:"service_template_id"`
	Set             nameRow `json:"set"`
}

type nameRow struct {
	Name string `json:"bk_set_name"`
	ID   int    `json:"bk_set_id"`
}

// moduleList lists the modules of some sets whose names fit. No sets mean all.
func (s *server) moduleList(ctx context.Context, r *request) (any, error) {
	inEnv, fits, sets := r.envFilter(), r.nameFilter(), r.ids("bk_set_ids")
	if err := r.err(); err != nil {
		return nil, err
	}
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}
	out := []moduleRow{}
	eachModule(&rec.Business, func(set *topology.Set, m *topology.Module) {
		if m != nil && inEnv(set.Env) && (len(sets) == 0 || slices.Contains(sets, set.ID)) && fits(m.Name) {
			out = append(out, moduleRow{m.ID, m.Name, m.ServiceTemplate, nameRow{set.Name, set.ID}})
		}
	})
	return out, nil
}

type serviceRow struct {
	ID        int    `json:"service_instance_id"`
	Name      string `json:"service_instance_name"`
	Processes *int   `json:"process_count,omitempty"`
}

// serviceInstance lists the service instances of some modules whose names fit, the newest first. No modules mean all.
func (s *server) serviceInstance(ctx context.Context, r *request) (any, error) {
	fits, modules := r.nameFilter(), r.ids("bk_module_ids")
	counted, _ := opt(r.form, "with_proc_count", boolean)
	if err := r.err(); err != nil {
		return nil, err
	}
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}

	out := []serviceRow{}
	eachModule(&rec.Business, func(_ *topology.Set, m *topology.Module) {
		if m == nil || len(modules) > 0 && !slices.Contains(modules, m.ID) {
			return
		}
		for i := range m.Instances {
			if in := &m.Instances[i]; fits(in.Name) {
				row := serviceRow{ID: in.ID, Name: in.Name}
				if n := len(in.Processes); counted {
					row.Processes = &n
				}
				out = append(out, row)
			}
		}
	})
	slices.SortFunc(out, func(a, b serviceRow) int { return b.ID - a.ID })
	return out, nil
}

type serviceTemplateRow struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Biz  int    `json:"bk_biz_id"`
}

// serviceTemplate lists the service templates of a business. A module has the name of its template.
func (s *server) serviceTemplate(ctx context.Context, r *request) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}
	out, seen := []serviceTemplateRow{}, map[int]bool{0: true}
	eachModule(&rec.Business, func(_ *topology.Set, m *topology.Module) {
		if m != nil && !seen[m.ServiceTemplate] {
			seen[m.ServiceTemplate] = true
			out = append(out, serviceTemplateRow{m.ServiceTemplate, m.Name, r.biz})
		}
	})
	return out, nil
}
