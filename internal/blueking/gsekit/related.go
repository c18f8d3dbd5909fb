package gsekit

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/topology"
)

// maxRelated is the largest page of CMDB.
const maxRelated = 500

type related struct {
	Count int               `json:"count"`
	Info  []json.RawMessage `json:"info"`
}

// relatedFilter is what a caller wants to see of the processes of a business. No ids mean all.
type relatedFilter struct {
	sets, modules, services []int
	fields                  []string
	start, limit            int
}

// listProcessRelatedInfo lists processes with their sets, modules, hosts and service instances. CMDB answers for a business that
// comes from there; the server asks it with its own credentials, so it is always asked about the business of the request, and gets
// nothing else of the body than the conditions.
func (s *server) listProcessRelatedInfo(ctx context.Context, r *request) (any, error) {
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}
	if s.asksCMDB(&rec) {
		if err := r.err(); err != nil {
			return nil, err
		}
		body := map[string]any{"bk_biz_id": r.biz}
		for _, name := range []string{"set", "module", "service_instance", "process_property_filter", "fields", "page"} {
			if v := r.form.get(name); v.Exists() {
				body[name] = plain(&v)
			}
		}
		data, err := s.cmdb.Read(ctx, "list_process_related_info", body)
		if err != nil {
			return nil, r.fromCMDB(err)
		}
		return data, nil
	}

	f := r.relatedFilter()
	if err := r.err(); err != nil {
		return nil, err
	}
	return f.list(&rec.Business), nil
}

// relatedFilter reads the conditions for a business from a document.
func (f *form) relatedFilter() (out relatedFilter) {
	inner := func(name, key string) (ids []int) {
		f.nest(name, func(in *form) { ids = in.ids(key) })
		return ids
	}
	out.sets, out.modules, out.services = inner("set", "bk_set_ids"), inner("module", "bk_module_ids"), inner("service_instance", "ids")
	if v := f.get("process_property_filter"); v.Exists() && !v.IsNull() {
		f.fault("process_property_filter", f.lang.say(sayFilterNeedsCMDB))
	}
	if v := f.inner("fields"); v.IsList() {
		v.List(v.Len(), func(e *strictjson.Value) { out.fields = append(out.fields, e.Text()) })
	}

	paged := f.nest("page", func(in *form) {
		start, _ := opt(in, "start", integer(0, maxID))
		limit := must(in, "limit", integer(1, maxRelated))
		out.start, out.limit = int(start), int(limit)
	})
	if !paged {
		f.fault("page", f.lang.say(sayRequired))
	}
	return out
}

// list lists the processes of a document that fit, by their ids.
func (f *relatedFilter) list(b *topology.Business) related {
	inSet, inModule, inService := among(f.sets), among(f.modules), among(f.services)
	var all []topology.Spot
	eachModule(b, func(set *topology.Set, m *topology.Module) {
		if m == nil || !inSet(set.ID) || !inModule(m.ID) {
			return
		}
		for i := range m.Instances {
			for j := range m.Instances[i].Processes {
				if inService(m.Instances[i].ID) {
					all = append(all, topology.Spot{Set: set, Module: m, Service: &m.Instances[i], Process: &m.Instances[i].Processes[j]})
				}
			}
		}
	})
	slices.SortFunc(all, func(a, b topology.Spot) int { return cmp.Compare(a.Process.ID, b.Process.ID) })

	out := related{Count: len(all), Info: []json.RawMessage{}}
	for i := f.start; i < min(f.start+f.limit, len(all)); i++ {
		out.Info = append(out.Info, f.row(b.ID, all[i]))
	}
	return out
}

// among reports whether an id is one of some; all are if there are none.
func among(ids []int) func(id int) bool {
	known := map[int]bool{}
	for _, id := range ids {
		known[id] = true
	}
	return func(id int) bool { return len(known) == 0 || known[id] }
}

// row is a process with its place, in the form of CMDB.
func (f *relatedFilter) row(biz int, at topology.Spot) json.RawMessage {
	h, p := at.Service.Host, at.Process
	whole := encode(processInfo{
		Set: setInfo{at.Set.ID, at.Set.Env.String(), at.Set.Name}, Module: moduleInfo{at.Module.ID, at.Module.Name},
		Host:            hostInfo{h.Cloud, ipText(h.IP), ipText(h.IPv6), string(h.Agent), h.ID},
		ServiceInstance: serviceInfo{at.Service.ID, at.Service.Name}, ProcessTemplate: templateInfo{p.Template},
		Process: procInfo{biz, p.ID, p.Name, p.Priority, p.Num, at.Service.ID, attributesOf(p)},
	})
	if len(f.fields) == 0 {
		return whole
	}

	// Keep the fields of the process that were asked for.
	var parts map[string]json.RawMessage
	var process map[string]json.RawMessage
	if json.Unmarshal(whole, &parts) != nil || json.Unmarshal(parts["process"], &process) != nil {
		return whole
	}
	for name := range process {
		if !slices.Contains(f.fields, name) {
			delete(process, name)
		}
	}
	parts["process"] = encode(process)
	return encode(parts)
}
