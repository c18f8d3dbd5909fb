package api

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// selection says which processes a request is about, see client.Selection.
type selection struct {
	namespaces []string // names or patterns; none means any
	names      []string
	hosts      []gozzard.Target
	all        bool
	business   *businessSelection // if it is set, the other fields are not
	processes  []client.ProcessOn // the same

	definition specjson.Definition // of a request that registers: the instances of names differ in it
}

// literal reports whether namespaces and names are written out. Such a selection can name processes that are not
// registered.
func (s *selection) literal() bool {
	return len(s.namespaces) > 0 && !slices.ContainsFunc(s.namespaces, isPattern) &&
		!slices.ContainsFunc(s.names, isPattern)
}

// readSelection reads the selection of a request.
func (a *api) readSelection(caller gozzard.Caller, root *strictjson.Value) *selection {
	s := &selection{business: a.readBusinessBody(caller, root)}
	if s.business != nil {
		return s
	}
	if list := root.Get("processes"); list.Given() {
		readProcesses(root, &list, s)
		return s
	}

	readNamespaces(root, s)
	names := root.Get("names")
	if n := names.List(maxList, addPatterns(&s.names)); n == 0 && names.Given() {
		names.Fault(`required, is empty; "*" means every name`)
	}

	a.readHosts(caller, root, s)
	return s
}

// readProcesses reads processes that are named with their hosts, one by one.
func readProcesses(root, list *strictjson.Value, s *selection) {
	for _, name := range []string{"namespace", "namespaces", "names", "hosts", "all", "spec", "labels"} {
		if v := root.Get(name); v.Given() {
			v.Fault("is not allowed with processes: each of them has its name and its hosts")
		}
	}

	n := list.List(maxList, func(e *strictjson.Value) {
		if !e.Object() {
			return
		}
		e.Only(processFields...)
		namespace, name, agents := e.Get("namespace"), e.Get("name"), e.Get("agents")
		p := client.ProcessOn{Namespace: requireName(&namespace), Name: requireName(&name)}
		if agents.List(maxList, func(e *strictjson.Value) {
			id := gozzard.AgentID(e.Str())
			if err := id.Validate(); err != nil && id != "" {
				e.Fault("%s", err)
			}
			p.Agents = append(p.Agents, id)
		}) == 0 && agents.Given() {
			agents.Fault("required, is empty")
		}
		s.processes = append(s.processes, p)
	})
	if n == 0 {
		list.Fault("required, is empty")
	}
}

// processFields are the fields of client.ProcessOn.
var processFields = fieldNames(reflect.TypeFor[client.ProcessOn]())

// namedItems makes the items of processes that are named with their hosts.
func namedItems(list []client.ProcessOn, item gozzard.Item) ([]gozzard.Item, error) {
	n := 0
	items := make([]gozzard.Item, 0, len(list))
	for _, p := range list {
		it := item
		it.Key = gozzard.Key{Namespace: p.Namespace, Name: p.Name}
		for _, agent := range p.Agents {
			t := gozzard.Target{Agent: agent}
			t.ResultKey = resultKey(t, it.Key)
			it.Targets = append(it.Targets, t)
		}
		n += len(it.Targets)
		items = append(items, it)
	}

	if n > record.MaxTargets {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "%d processes are named, at most %d are allowed in one operation", n,
			record.MaxTargets)
	}
	return items, nil
}

// readNamespaces reads "namespace" or "namespaces". A request may have neither.
func readNamespaces(root *strictjson.Value, s *selection) {
	one, list := root.Get("namespace"), root.Get("namespaces")
	if one.Given() && list.Given() {
		list.Fault(`give "namespace" or "namespaces", not both`)
		return
	}

	if name := one.OptStr(); name != "" {
		addPatterns(&s.namespaces)(&one)
	}
	list.OptList(maxList, addPatterns(&s.namespaces))
}

// addPatterns is a function that adds texts to a list, each once.
func addPatterns(to *[]string) func(*strictjson.Value) {
	seen := make(map[string]struct{})
	return func(e *strictjson.Value) {
		text := e.Str()
		if text == "" {
			return
		}
		if fault := checkPattern(text); fault != "" {
			e.Fault("%s", fault)
		}
		if _, twice := seen[text]; !twice {
			seen[text] = struct{}{}
			*to = append(*to, text)
		}
	}
}

// readHosts reads "hosts" or "all". A request must have exactly one of the two.
func (a *api) readHosts(caller gozzard.Caller, root *strictjson.Value, s *selection) {
	hosts, all := root.Get("hosts"), root.Get("all")
	s.all = all.OptBool(false)
	if s.all == hosts.Given() {
		hosts.Fault(`give a list of hosts, or "all": true for every host that has the process`)
		return
	}

	clouds := cloudFinder{plane: a.Plane, caller: caller}
	if n := hosts.OptList(maxList, func(e *strictjson.Value) {
		if t, ok := readHost(e, &clouds); ok {
			s.hosts = append(s.hosts, t)
		}
	}); n == 0 && !s.all {
		hosts.Fault("required, is empty")
	}

	s.hosts = distinct(s.hosts)
}

// hostFields are the fields of client.Host.
var hostFields = fieldNames(reflect.TypeFor[client.Host]())

// hostExample is a host as a request gives it: the one that is meant, if it is given as a text.
func hostExample(e *strictjson.Value) string {
	text := e.Text()
	if addr, err := gozzard.ParseHostAddr(text); err == nil {
		return fmt.Sprintf(`{"cloud": %d, "ip": %q}`, addr.Cloud, addr.IP)
	}
	if addr, err := gozzard.ParseIP(text); err == nil {
		return fmt.Sprintf(`{"ip": %q}`, addr)
	}
	return `{"ip": "10.0.0.1"}`
}

// readHost reads a host: {"agent"} or {"cloud", "ip"}. An agent may be given by the name of its host. An address without a cloud must be known in exactly one cloud.
func readHost(e *strictjson.Value, clouds *cloudFinder) (gozzard.Target, bool) {
	if !e.ObjectSuchAs(hostExample(e)) {
		return gozzard.Target{}, false
	}

	e.Only(hostFields...)
	agent, cloud, ip := e.Get("agent"), e.Get("cloud"), e.Get("ip")
	if agent.Given() {
		if cloud.Given() || ip.Given() {
			e.Fault("give either agent, or cloud and ip")
			return gozzard.Target{}, false
		}
		text := agent.Str()
		if text == "" {
			return gozzard.Target{}, false
		}
		id, err := clouds.agent(text)
		if err != nil {
			agent.Fault("%s", err)
			return gozzard.Target{}, false
		}
		return gozzard.Target{Agent: id}, true
	}

	text := ip.Str()
	if text == "" {
		return gozzard.Target{}, false
	}

	addr, err := gozzard.ParseIP(text)
	if err != nil {
		ip.Fault("%q is not the address of one host", clip(text))
		return gozzard.Target{}, false
	}

	t := gozzard.Target{Addr: gozzard.HostAddr{Cloud: int(cloud.OptInt(0, 0, math.MaxInt32)), IP: addr}}

	if !cloud.Given() {
		found, err := clouds.of(addr)
		if err != nil {
			e.Fault("%s", err)
			return gozzard.Target{}, false
		}
		t.Addr.Cloud = found
	}

	return t, true
}

// distinct removes targets that are given twice.
func distinct(list []gozzard.Target) []gozzard.Target {
	seen := make(map[gozzard.Target]struct{}, len(list))
	return slices.DeleteFunc(list, func(t gozzard.Target) bool {
		_, twice := seen[t]
		seen[t] = struct{}{}
		return twice
	})
}

// items makes the items of an operation on the processes of a selection.
func (a *api) items(ctx context.Context, caller gozzard.Caller, s *selection, item gozzard.Item) ([]gozzard.Item,
	error) {
	if s.business != nil {
		return a.businessItems(ctx, caller, s.business, item.Action)
	}
	if s.processes != nil {
		return namedItems(s.processes, item)
	}

	// Make the items.
	find := a.matchingItems
	if s.literal() && !s.all {
		find = func(_ gozzard.Caller, s *selection, item gozzard.Item) ([]gozzard.Item, error) {
			return literalItems(s, item)
		}
	}
	items, err := find(caller, s, item)
	if err != nil || s.definition.Instances == 0 {
		return items, err
	}

	// Number the instances of one document.
	for i := range items {
		items[i].Spec = s.definition.Instance(slices.Index(s.names, items[i].Key.Name))
	}
	return items, nil
}

// literalItems makes an item for each name that is written out, registered or not.
func literalItems(s *selection, item gozzard.Item) ([]gozzard.Item, error) {
	names := len(s.namespaces) * len(s.names)
	if n := names * len(s.hosts); n > record.MaxTargets {
		return nil, gozzard.Errorf(gozzard.ErrInvalid,
			"%d processes on %d hosts are %d targets, at most %d are allowed", names, len(s.hosts), n,
			record.MaxTargets)
	}

	var items []gozzard.Item
	for _, namespace := range s.namespaces {
		for _, name := range s.names {
			it := item
			it.Key = gozzard.Key{Namespace: namespace, Name: name}
			for _, t := range s.hosts {
				t.ResultKey = resultKey(t, it.Key)
				it.Targets = append(it.Targets, t)
			}
			items = append(items, it)
		}
	}

	return items, nil
}

// matchingItems makes an item for each registered process that matches.
func (a *api) matchingItems(caller gozzard.Caller, s *selection, item gozzard.Item) ([]gozzard.Item, error) {
	// Make a filter of the selection.
	f := fleet.Filter{Namespaces: s.namespaces, Names: s.names}
	var faults []gozzard.Fault
	for i, t := range s.hosts {
		h, ok := a.Plane.Resolve(caller, t)
		if !ok {
			faults = append(faults, gozzard.Fault{Path: fmt.Sprintf("hosts[%d]", i),
				Text: fmt.Sprintf("host %s is not in the fleet: it never joined, or it has left", hostText(t))})
			continue
		}
		f.Agents = append(f.Agents, h.Info.Agent)
	}

	if len(faults) > 0 {
		return nil, &gozzard.Error{Kind: gozzard.ErrNotFound, Message: "a host is unknown", Faults: faults}
	}

	// Find the processes.
	total, rows := a.Plane.Find(caller, f, 0, record.MaxTargets)
	switch {
	case total == 0:
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "no registered process matches")
	case total > record.MaxTargets:
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "%d processes match, at most %d are allowed in one operation",
			total, record.MaxTargets)
	}

	return groupByKey(rows, item), nil
}

// groupByKey makes an item for each key in rows: one process on several hosts.
func groupByKey(rows []fleet.Row, item gozzard.Item) []gozzard.Item {
	at := make(map[gozzard.Key]int)
	var items []gozzard.Item
	for i := range rows {
		key := rows[i].Status.Key
		n, ok := at[key]
		if !ok {
			n = len(items)
			at[key] = n
			it := item
			it.Key = key
			items = append(items, it)
		}
		t := gozzard.Target{Agent: rows[i].Agent}
		t.ResultKey = resultKey(t, key)
		items[n].Targets = append(items[n].Targets, t)
	}

	return items
}

// resultKey names the result of one target in the answer of a task.
func resultKey(t gozzard.Target, k gozzard.Key) string {
	if t.Agent != "" {
		return string(t.Agent) + ":" + k.String()
	}
	return t.Addr.String() + ":" + k.String()
}

// hostText names the host of a target.
func hostText(t gozzard.Target) string {
	if t.Agent != "" {
		return clip(string(t.Agent))
	}
	return t.Addr.String()
}

// hostAgents finds the agents of the hosts that a query names. none is true if it names hosts and all are unknown.
func (a *api) hostAgents(caller gozzard.Caller, q *query) (agents []gozzard.AgentID, none bool) {
	clouds := cloudFinder{plane: a.Plane, caller: caller}
	q.each("host", func(s string) string {
		t, err := parseHost(s, &clouds)
		if err != nil {
			return err.Error()
		}
		if h, ok := a.Plane.Resolve(caller, t); ok {
			agents = append(agents, h.Info.Agent)
		}
		return ""
	})
	return agents, len(q.values["host"]) > 0 && len(agents) == 0
}
