package gsekit

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// This file has the attributes of sets, modules and hosts that templates of configuration files may use. CMDB has their names for
// people. A business from a document has the attributes that stand in it.

// objects are what CMDB has attributes of.
const (
	objectBiz    = "biz"
	objectSet    = "set"
	objectModule = "module"
	objectHost   = "host"
	objectProc   = "process"
	objectGlobal = "global"
)

// variable is an attribute that templates may use.
type variable struct {
	ID     string `json:"bk_property_id"`
	Name   string `json:"bk_property_name"`
	Group  string `json:"bk_property_group_name"`
	Type   string `json:"bk_property_type"`
	Object string `json:"bk_obj_id"`
}

// property is an attribute as CMDB lists it. One that people have added belongs to a business.
type property struct {
	variable
	Biz int `json:"bk_biz_id"`
}

// asksCMDB reports whether CMDB knows a business: the caller may read it, and it comes from there.
func (s *server) asksCMDB(rec *record.Business) bool {
	return s.cmdb != nil && rec.Source == record.SourceCMDB
}

// bizGlobalVariables lists the variables of templates, by what has them.
func (s *server) bizGlobalVariables(ctx context.Context, r *request) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}

	out := map[string][]variable{objectGlobal: r.lang.builtIn()}
	for _, object := range []string{objectSet, objectModule, objectHost} {
		all, err := s.properties(ctx, r, &rec, object)
		if err != nil {
			return nil, err
		}
		out[object] = r.lang.usable(all, object)
	}
	return out, nil
}

// builtIn are the variables that no part of a business has.
func (l speech) builtIn() (out []variable) {
	for _, v := range []struct {
		id   string
		name phrase
	}{{"HELP", sayVariableHelp}, {"cc", sayVariableTree}, {"this", sayVariableThis}, {"LocalInstID", sayVariableLocal},
		{"LocalInstID0", sayVariableLocal0}, {"InstID", sayVariableInst}, {"InstID0", sayVariableInst0}, {"FuncID", sayVariableFunc}} {
		out = append(out, variable{v.id, l.say(v.name), l.say(sayBuiltInGroup), "", objectGlobal})
	}
	return out
}

// usable are the attributes that templates may use, by their names for people, each by its old name, too.
func (l speech) usable(all []property, object string) []variable {
	older := map[string]string{}
	for _, pair := range topology.CommonAttributes(object) {
		older[pair[0]] = pair[1]
	}
	out := []variable{}
	for _, p := range all {
		old, common := older[p.ID]
		if !common && p.Biz == 0 {
			continue
		}
		out = append(out, p.variable)
		if old != "" {
			out = append(out, variable{old, l.say(sayOldName, p.Name), l.say(sayOldGroup), p.Type, object})
		}
	}
	slices.SortStableFunc(out, func(a, b variable) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// searchObjectAttribute lists the attributes of an object as CMDB does.
func (s *server) searchObjectAttribute(ctx context.Context, r *request) (any, error) {
	object := must(r.form, "bk_obj_id", choice(objectBiz, objectSet, objectModule, objectHost, objectProc))
	if err := r.err(); err != nil {
		return nil, err
	}
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}
	if s.asksCMDB(&rec) {
		return s.askProperties(ctx, r, object)
	}
	return documented(r, &rec.Business, object), nil
}

// askProperties asks CMDB for the attributes of an object.
func (s *server) askProperties(ctx context.Context, r *request, object string) (json.RawMessage, error) {
	data, err := s.cmdb.Read(ctx, "search_object_attribute", map[string]any{"bk_biz_id": r.biz, "bk_obj_id": object})
	if err != nil {
		return nil, r.fromCMDB(err)
	}
	return data, nil
}

// properties are the attributes of an object: those of CMDB, or those of a document.
func (s *server) properties(ctx context.Context, r *request, rec *record.Business, object string) (all []property, err error) {
	if !s.asksCMDB(rec) {
		return documented(r, &rec.Business, object), nil
	}
	data, err := s.askProperties(ctx, r, object)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, &gozzard.Error{Kind: gozzard.ErrUnavailable, Cause: err,
			Message: "CMDB answered search_object_attribute with data of another form"}
	}
	return all, nil
}

// documented are the attributes of an object in a document: what each has, and what stands below attributes.
func documented(r *request, b *topology.Business, object string) []property {
	out := []property{}
	add := func(biz int, group phrase, names ...string) {
		for _, name := range names {
			out = append(out, property{variable{name, name, r.lang.say(group), "singlechar", object}, biz})
		}
	}

	switch object {
	case objectBiz:
		add(0, sayBasicGroup, "bk_biz_name")
		return out
	case objectProc:
		var one map[string]any
		if json.Unmarshal(encode(procInfo{procAttributes: &procAttributes{BindInfo: json.RawMessage("[]")}}), &one) == nil {
			add(0, sayBasicGroup, slices.Sorted(maps.Keys(one))...)
		}
		return out
	}

	common := map[string]bool{}
	for _, pair := range topology.CommonAttributes(object) {
		common[pair[0]] = true
		add(0, sayBasicGroup, pair[0])
	}
	added := map[string]bool{}
	for extra := range extras(b, object) {
		for name := range extra.Texts() {
			added[name] = !common[name]
		}
	}
	maps.DeleteFunc(added, func(_ string, own bool) bool { return !own })
	add(r.biz, sayAddedGroup, slices.Sorted(maps.Keys(added))...)
	return out
}

// extras are the different attributes that the sets, modules or hosts of a business have.
func extras(b *topology.Business, object string) map[topology.Extra]bool {
	out := map[topology.Extra]bool{}
	eachModule(b, func(set *topology.Set, m *topology.Module) {
		switch {
		case m == nil && object == objectSet:
			out[set.Attributes] = true
		case m != nil && object == objectModule:
			out[m.Attributes] = true
		case m != nil && object == objectHost:
			for i := range m.Instances {
				out[m.Instances[i].HostAttributes] = true
			}
		}
	})
	return out
}
