package topology

import (
	"maps"
	"slices"
	"strconv"

	"github.com/gozzard/gozzard/internal/mako"
)

// common are the attributes that every set, module and host of CMDB has and templates may use, with the names that older
// templates use for them ("" if there is none).
var common = map[string][][2]string{
	"set": {{"bk_category", "SetCategory"}, {"bk_chn_name", "SetChnName"}, {"bk_platform", "Platform"},
		{"bk_service_status", "SetServiceState"}, {"bk_set_env", "SetEnviType"}, {"bk_set_name", "SetName"},
		{"bk_system", "System"}, {"bk_world_id", "SetWorldID"}},
	"module": {{"bk_module_name", "ModuleName"}, {"bk_module_type", ""}},
	"host":   {{"bk_cloud_id", ""}, {"bk_host_innerip", "InnerIP"}, {"bk_host_name", "HostName"}, {"operator", ""}},
}

// Tree is a part of a business as templates see it: the variable cc. It has the sets of one environment, with their modules
// and hosts. Attributes are texts, by their new and their old names.
type Tree struct {
	root    *mako.Element
	set     map[int]*mako.Element
	module  map[int]*mako.Element
	host    map[int]*mako.Element // by service instance
	service map[int]*ServiceInstance
}

// Tree makes the tree of an environment.
func (b *Business) Tree(env Env) *Tree {
	t := &Tree{root: &mako.Element{Tag: "Application"}, set: map[int]*mako.Element{}, module: map[int]*mako.Element{},
		host: map[int]*mako.Element{}, service: map[int]*ServiceInstance{}}
	for i := range b.Sets {
		set := &b.Sets[i]
		if set.Env != env {
			continue
		}
		e := level("set", set.Attributes, "bk_set_id", strconv.Itoa(set.ID), "SetID", strconv.Itoa(set.ID),
			"bk_set_name", set.Name, "bk_set_env", set.Env.String())
		t.root.Add(e)
		t.set[set.ID] = e
		for j := range set.Modules {
			t.addModule(e, &set.Modules[j])
		}
	}
	return t
}

func (t *Tree) addModule(set *mako.Element, m *Module) {
	e := level("module", m.Attributes, "bk_module_id", strconv.Itoa(m.ID), "ModuleID", strconv.Itoa(m.ID),
		"bk_module_name", m.Name)
	set.Add(e)
	t.module[m.ID] = e

	known := map[Host]*mako.Element{} // a host is there once, whatever number of service instances it has
	for i := range m.Instances {
		s := &m.Instances[i]
		host := known[s.Host]
		if host == nil {
			host = s.element()
			known[s.Host] = host
			e.Add(host)
		}
		t.host[s.ID], t.service[s.ID] = host, s
	}
}

// element is the host of a service instance.
func (s *ServiceInstance) element() *mako.Element {
	own := []string{"bk_host_innerip", addrText(s.Host.Addr().IP), "bk_cloud_id", strconv.Itoa(s.Host.Cloud)}
	if s.Host.ID != 0 {
		own = append([]string{"bk_host_id", strconv.Itoa(s.Host.ID)}, own...)
	}
	return level("host", s.HostAttributes, own...)
}

// level makes an element of a set, a module or a host: what it has by itself as names and values in turn, then its other
// attributes, then the old names of what it does not have.
func level(kind string, extra Extra, own ...string) *mako.Element {
	e := &mako.Element{Tag: map[string]string{"set": "Set", "module": "Module", "host": "Host"}[kind]}
	old := map[string]string{}
	for _, pair := range common[kind] {
		old[pair[0]] = pair[1]
	}
	add := func(name, value string) {
		e.Attributes = append(e.Attributes, mako.Attribute{Name: name, Value: value})
		older := old[name]
		if _, has := e.Get(older); older != "" && !has {
			e.Attributes = append(e.Attributes, mako.Attribute{Name: older, Value: value})
		}
		delete(old, name)
	}

	for i := 0; i+1 < len(own); i += 2 {
		add(own[i], own[i+1])
	}
	texts := extra.Texts()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if _, has := e.Get(name); !has {
			add(name, texts[name])
		}
	}
	for _, name := range slices.Sorted(maps.Values(old)) {
		if _, has := e.Get(name); name != "" && !has {
			e.Attributes = append(e.Attributes, mako.Attribute{Name: name})
		}
	}
	return e
}
