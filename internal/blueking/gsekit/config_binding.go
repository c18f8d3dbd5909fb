package gsekit

import (
	"context"

	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/topology"
)

type bindingInfo struct {
	ID int64 `json:"id"`
	trail
	Biz      int                     `json:"bk_biz_id"`
	Template int64                   `json:"config_template_id"`
	Kind     record.ConfigObjectKind `json:"process_object_type"`
	Object   int                     `json:"process_object_id"`
	Info     any                     `json:"process_obj_info"`
}

// boundTemplate says what a process template is: the names that its processes and modules have.
type boundTemplate struct {
	Name    string `json:"process_object_name"`
	Service string `json:"service_template_name"`
}

type boundProcess struct {
	Set     string `json:"bk_set_name"`
	Module  string `json:"bk_module_name"`
	Service string `json:"bk_service_name"`
	Process string `json:"bk_process_name"`
}

type bindingCounts struct {
	Deleted int `json:"deleted_relations_count"`
	Created int `json:"created_relations_count"`
}

// processObject reads what a template is bound to.
func (f *form) processObject() record.ConfigObject {
	kind := must(f, "process_object_type", choice(string(record.ConfigOfProcess), string(record.ConfigOfTemplate)))
	return record.ConfigObject{Kind: record.ConfigObjectKind(kind), ID: int(must(f, "process_object_id", integer(1, maxID)))}
}

// bindTemplateToProcess makes a list what a template is bound to.
func (s *server) bindTemplateToProcess(ctx context.Context, r *request) (any, error) {
	id := r.templateID()
	if v := r.get("process_object_list"); !v.Exists() {
		r.fault("process_object_list", r.lang.say(sayRequired))
	}
	objects := listOf(r.form, "process_object_list", record.MaxConfigBindings, objectKind)
	if err := r.err(); err != nil {
		return nil, err
	}
	deleted, created, err := s.configs.BindTemplate(ctx, r.Caller, r.biz, id, objects)
	if err != nil {
		return nil, err
	}
	return bindingCounts{deleted, created}, nil
}

// objectKind reads an element of a list of objects.
func objectKind(l speech, v *strictjson.Value) (record.ConfigObject, string) {
	if !v.IsObject() {
		return record.ConfigObject{}, l.say(sayWantObject, l.show(v))
	}
	in := &form{object: *v, lang: l}
	o := in.processObject()
	return o, in.faults.String()
}

// bindProcessToTemplate makes a list the templates of a process or process template.
func (s *server) bindProcessToTemplate(ctx context.Context, r *request) (any, error) {
	object := r.processObject()
	if v := r.get("config_template_id_list"); !v.Exists() {
		r.fault("config_template_id_list", r.lang.say(sayRequired))
	}
	ids := listOf(r.form, "config_template_id_list", record.MaxConfigTemplates, integer(1, maxID))
	if err := r.err(); err != nil {
		return nil, err
	}
	deleted, created, err := s.configs.BindObject(ctx, r.Caller, r.biz, object, ids)
	if err != nil {
		return nil, err
	}
	return bindingCounts{deleted, created}, nil
}

// listBindingRelationship lists what a template is bound to, with names.
func (s *server) listBindingRelationship(ctx context.Context, r *request) (any, error) {
	id := r.templateID()
	if err := r.err(); err != nil {
		return nil, err
	}
	list, err := s.configs.Bindings(ctx, r.Caller, r.biz, id)
	if err != nil {
		return nil, err
	}
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}

	processes, templates := boundNames(&rec.Business)
	out := make([]bindingInfo, len(list))
	for i := range list {
		b := &list[i]
		out[i] = bindingInfo{ID: b.ID, trail: trailOf(&b.Trail, utc()), Biz: b.Biz, Template: b.Template, Kind: b.Object.Kind,
			Object: b.Object.ID, Info: templates[b.Object.ID]}
		if b.Object.Kind == record.ConfigOfProcess {
			out[i].Info = processes[b.Object.ID]
		}
	}
	return out, nil
}

// boundNames has the names of all processes and process templates of a business by their ids.
func boundNames(b *topology.Business) (map[int]boundProcess, map[int]boundTemplate) {
	processes, templates := map[int]boundProcess{}, map[int]boundTemplate{}
	for i := range b.Sets {
		for j := range b.Sets[i].Modules {
			m := &b.Sets[i].Modules[j]
			for k := range m.Instances {
				for _, p := range m.Instances[k].Processes {
					processes[p.ID] = boundProcess{b.Sets[i].Name, m.Name, m.Instances[k].Name, p.Name}
					if _, known := templates[p.Template]; !known && p.Template != 0 {
						templates[p.Template] = boundTemplate{p.Name, m.Name}
					}
				}
			}
		}
	}
	return processes, templates
}
