package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/mako"
	"github.com/gozzard/gozzard/internal/suggest"
)

// Spot is a process with the set, module and service instance that it is in.
type Spot struct {
	Set     *Set
	Module  *Module
	Service *ServiceInstance
	Process *Process
}

// Find finds a process by its id.
func (b *Business) Find(process int) (spot Spot, found bool) {
	b.each(func(p processAt) {
		if p.process.ID == process {
			spot, found = Spot{p.set, p.module, p.service, p.process}, true
		}
	})
	return spot, found
}

// variables collects the variables of a template in the order in which GSEKit makes them.
type variables struct {
	values map[string]mako.Value
	order  []string
}

// set gives a variable its value. One that is there stays in its place.
func (v *variables) set(name string, value mako.Value) {
	if _, known := v.values[name]; !known {
		v.order = append(v.order, name)
	}
	v.values[name] = value
}

// texts sets variables from names and texts in turn.
func (v *variables) texts(pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		v.set(pairs[i], mako.String(pairs[i+1]))
	}
}

// Context has what the template of a configuration file sees for one instance of a process: local is its number on the host,
// inst its number in the module. The tree must be that of the set's environment. A template reaches nothing of another
// business, and nothing of another environment.
//
// The attributes of the set, the host and the module come last, in this order, and replace what is there, as in GSEKit.
func (t *Tree) Context(s Spot, local, inst int, now time.Time) *mako.Context {
	set, module, host := t.set[s.Set.ID], t.module[s.Module.ID], t.host[s.Service.ID]
	p := s.Process
	v := &variables{values: map[string]mako.Value{}}

	// What GSEKit computes.
	v.texts("Scope", strings.Join([]string{s.Set.Name, s.Module.Name, s.Service.Name, p.Name, fmt.Sprint(p.ID)}, "."), "FuncID", p.Name)
	v.set("InstID", mako.Int(inst))
	v.set("InstID0", mako.Int(inst-1))
	v.set("LocalInstID", mako.Int(local))
	v.set("LocalInstID0", mako.Int(local-1))
	v.texts("bk_set_name", s.Set.Name, "bk_module_name", s.Module.Name, "bk_host_innerip", addrText(s.Service.Host.Addr().IP))
	v.set("bk_cloud_id", mako.Int(s.Service.Host.Cloud))
	v.set("bk_process_id", mako.Int(p.ID))
	v.texts("bk_process_name", p.Name, "FuncName", p.FuncName, "ProcName", p.Name,
		"WorkPath", p.WorkPath, "PidFile", p.PIDFile) // as they are, not rendered
	v.order = append(v.order, "this", "cc")

	// What the levels have.
	v.level("set", set)
	v.level("host", host)
	v.level("module", module)

	c := &mako.Context{Values: v.values, Globals: v.order, Tree: t.root, Now: now,
		Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))} // #nosec G404 -- for templates, not for secrets
	c.This.Set, c.This.Module, c.This.Host = set, module, host
	c.Unknown = func(name string) string { return unknownName(name, v.order) }
	return c
}

// unknownName says that templates do not have a name, and which one of those that they have is meant.
func unknownName(name string, known []string) string {
	if near := nearName(name, known); near != "" {
		return fmt.Sprintf("there is no variable %s, did you mean %s?", name, near)
	}
	return fmt.Sprintf("there is no variable %s", name)
}

// nearName is the known name that is spelled almost like another one, "" if there is none.
func nearName(name string, known []string) string {
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return k
		}
	}
	return suggest.Nearest(name, known)
}

// level sets the attributes of a set, a module or a host in the order of their names, each by its old name too. What CMDB
// did not send is None.
func (v *variables) level(kind string, of *mako.Element) {
	older := map[string]string{}
	var names, old []string
	for _, pair := range common[kind] {
		older[pair[0]] = pair[1]
		names, old = append(names, pair[0]), append(old, pair[1])
	}
	for _, a := range of.Attributes {
		if _, known := older[a.Name]; !known && !isID(a.Name) && !slices.Contains(old, a.Name) {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)

	for _, name := range names {
		if text, has := of.Get(name); has {
			v.set(name, mako.String(text))
		} else {
			v.set(name, mako.None())
		}
		if text, has := of.Get(older[name]); has {
			v.set(older[name], mako.String(text))
		}
	}
}

// isID reports whether an attribute of the tree is none of the names that templates have: ids are in the tree only.
func isID(name string) bool {
	switch name {
	case "bk_set_id", "SetID", "bk_module_id", "ModuleID", "bk_host_id":
		return true
	}
	return false
}
