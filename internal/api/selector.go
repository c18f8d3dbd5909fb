package api

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// selector says which processes a request is about.
type selector struct {
	namespace string // literal, or a pattern; "" is any
	names     []string
	hosts     []gozzard.Target
	all       bool
	scope     *scope // of a business, instead of all these
}

// literal reports whether namespace and names are written out, so that processes nobody has registered can be meant.
func (s *selector) literal() bool {
	return s.namespace != "" && !isGlob(s.namespace) && !slices.ContainsFunc(s.names, isGlob)
}

// readHosts reads "hosts" or "all", of which a request must have one.
func (a *api) readHosts(caller gozzard.Caller, root *strictjson.Value, s *selector) {
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

// readHost reads {"agent"} or {"cloud", "ip"}. Without a cloud the address must be known in one cloud only.
func readHost(e *strictjson.Value, clouds *cloudFinder) (gozzard.Target, bool) {
	if !e.Object() {
		return gozzard.Target{}, false
	}

	e.Only("agent", "cloud", "ip")
	agent, cloud, ip := e.Get("agent"), e.Get("cloud"), e.Get("ip")
	if agent.Given() {
		if cloud.Given() || ip.Given() {
			e.Fault("give either agent, or cloud and ip")
			return gozzard.Target{}, false
		}
		id := gozzard.AgentID(agent.Str())
		if err := id.Validate(); err != nil && id != "" {
			agent.Fault("%s", err)
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

func distinct(list []gozzard.Target) []gozzard.Target {
	seen := make(map[gozzard.Target]struct{}, len(list))
	return slices.DeleteFunc(list, func(t gozzard.Target) bool {
		_, twice := seen[t]
		seen[t] = struct{}{}
		return twice
	})
}

// items makes the items of an operation: what is written out, what is registered and fits, or what a business has.
func (a *api) items(ctx context.Context, caller gozzard.Caller, s *selector, item gozzard.Item) ([]gozzard.Item,
	error) {
	if s.scope != nil {
		return a.scopeItems(ctx, caller, s.scope, item.Action)
	}
	if s.literal() && !s.all {
		return a.writtenItems(s, item)
	}
	return a.foundItems(caller, s, item)
}

func (a *api) writtenItems(s *selector, item gozzard.Item) ([]gozzard.Item, error) {
	if n := len(s.names) * len(s.hosts); n > record.MaxTargets {
		return nil, gozzard.Errorf(gozzard.ErrInvalid,
			"%d processes on %d hosts are %d targets, at most %d are allowed", len(s.names), len(s.hosts), n,
			record.MaxTargets)
	}

	var items []gozzard.Item
	for _, name := range s.names {
		it := item
		it.Key = gozzard.Key{Namespace: s.namespace, Name: name}
		for _, t := range s.hosts {
			t.ResultKey = resultKey(t, it.Key)
			it.Targets = append(it.Targets, t)
		}
		items = append(items, it)
	}

	return items, nil
}

func (a *api) foundItems(caller gozzard.Caller, s *selector, item gozzard.Item) ([]gozzard.Item, error) {
	f := fleet.Filter{Names: s.names}

	if s.namespace != "" {
		f.Namespaces = []string{s.namespace}
	}

	var faults []gozzard.Fault
	for i, t := range s.hosts {
		h, ok := a.Plane.Resolve(caller, t)
		if !ok {
			faults = append(faults, gozzard.Fault{Path: fmt.Sprintf("hosts[%d]", i),
				Text: "no agent has ever reported from it"})
			continue
		}
		f.Agents = append(f.Agents, h.Info.Agent)
	}

	if len(faults) > 0 {
		return nil, &gozzard.Error{Kind: gozzard.ErrNotFound, Message: "a host is not known", Faults: faults}
	}

	total, rows := a.Plane.Find(caller, f, 0, record.MaxTargets)
	switch {
	case total == 0:
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "no registered process fits")
	case total > record.MaxTargets:
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "%d processes fit, at most %d are allowed in one operation",
			total, record.MaxTargets)
	}

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

	return items, nil
}

func resultKey(t gozzard.Target, k gozzard.Key) string {
	if t.Agent != "" {
		return string(t.Agent) + ":" + k.String()
	}
	return t.Addr.String() + ":" + k.String()
}

// hostFilter turns the names of hosts in a query into the agents of a filter. A host is "cloud:ip", an address, or
// an agent id.
func (a *api) hostFilter(caller gozzard.Caller, q *query, f *fleet.Filter) (none bool) {
	clouds := cloudFinder{plane: a.Plane, caller: caller}
	q.each("host", func(s string) string {
		t, err := parseHost(s, &clouds)
		if err != nil {
			return err.Error()
		}
		if h, ok := a.Plane.Resolve(caller, t); ok {
			f.Agents = append(f.Agents, h.Info.Agent)
		}
		return ""
	})
	return len(q.values["host"]) > 0 && len(f.Agents) == 0
}
