package api

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/expression"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/topology"
)

// scopeParams choose processes by where they are in a business. In bodies, set and module are lists: sets, modules.
var scopeParams = []string{"biz", "env", "set", "module", "expression"}

// scope reads which processes of a business are meant, whatever form the request has.
type scope struct {
	topology.Query
	names  []string // aliases, or patterns
	hosts  []scopeHost
	narrow bool // something but the business is said
	fault  func(name, text string)
}

// scopeHost is a host as it was named: in any cloud while cloud is negative.
type scopeHost struct {
	cloud int
	ip    netip.Addr
}

func (s *scope) biz(text string) {
	n, fault := parseBiz(text)
	if fault != "" {
		s.fault("biz", fault)
	}
	s.Biz = n
}

func (s *scope) env(text string) {
	env, fault := parseEnv(text)
	if fault != "" {
		s.fault("env", fault)
	}
	s.Env = env
}

func parseEnv(s string) (topology.Env, string) {
	switch s {
	case "1", "test":
		return topology.EnvTest, ""
	case "2", "experience":
		return topology.EnvExperience, ""
	case "3", "formal":
		return topology.EnvFormal, ""
	}
	return topology.EnvAny, "must be 1 (test), 2 (experience) or 3 (formal), is " + strconv.Quote(clip(s))
}

// part reads a set or a module: digits are an id, anything else is a name.
func (s *scope) part(name, text string, ids *[]int, names *[]string) string {
	s.narrow = true
	n, err := strconv.Atoi(text)
	switch {
	case text == "":
		return "required, is empty"
	case err == nil && n >= 0:
		*ids = append(*ids, n)
	case strings.ContainsAny(text, "*?["):
		return fmt.Sprintf("%q is no name or id of a %s: patterns go into the expression", clip(text), name)
	default:
		*names = append(*names, text)
	}

	if len(*ids) > 0 && len(*names) > 0 {
		return "give either ids or names"
	}

	return ""
}

func (s *scope) set(text string) string { return s.part("set", text, &s.Sets, &s.SetNames) }

func (s *scope) module(text string) string {
	return s.part("module", text, &s.Modules, &s.ModuleNames)
}

func (s *scope) expression(text string) {
	s.narrow = true
	e, faults := parseExpression(text)
	for _, f := range faults {
		s.fault("expression", f)
	}
	s.Expression = e
}

// finish puts names and hosts into the question.
func (s *scope) finish() {
	s.narrow = s.narrow || len(s.names)+len(s.hosts) > 0
	s.finishNames()
	s.finishHosts()
}

// finishNames: written out, aliases are looked up; patterns become the fourth field of the expression, which has no
// characters of its own in them.
func (s *scope) finishNames() {
	switch {
	case len(s.names) == 0:
	case !slices.ContainsFunc(s.names, isGlob):
		s.Names = s.names
	case s.Expression != nil && s.Expression.Name != nil:
		s.fault("name", "patterns and the fourth field of the expression are the same: give one")
	default:
		if s.Expression == nil {
			s.Expression = &topology.Expression{}
		}
		e, err := expression.Parse("[" + strings.Join(s.names, ",") + "]")
		if err != nil {
			s.fault("name", err.Error())
			return
		}
		for _, name := range s.names {
			if !isGlob(name) && !e.Match(name) { // 1-3 is a range to an expression
				s.fault("name", fmt.Sprintf("%q cannot be asked for together with a pattern", name))
			}
		}
		s.Expression.Name = e
	}
}

func (s *scope) finishHosts() {
	for _, h := range s.hosts {
		s.IPs = append(s.IPs, h.ip)
		if h.cloud != s.hosts[0].cloud {
			s.fault("host", "within a business, name hosts of one cloud at a time")
			return
		}
	}
	if len(s.hosts) > 0 && s.hosts[0].cloud >= 0 {
		s.Clouds = []int{s.hosts[0].cloud}
	}
}

// host takes a host in that was found by its agent, or named by its address.
func (a *api) scopeHost(caller gozzard.Caller, t gozzard.Target, anyCloud bool) (scopeHost, string) {
	if t.Agent != "" {
		h, ok := a.Plane.Resolve(caller, t)
		if !ok || len(h.Info.Addrs) == 0 {
			return scopeHost{}, fmt.Sprintf("no agent %q has ever reported", t.Agent)
		}
		t.Addr = h.Info.Addrs[0]
	}
	if anyCloud {
		t.Addr.Cloud = -1
	}
	return scopeHost{t.Addr.Cloud, t.Addr.IP}, ""
}

// queryScope reads a scope from the parameters of a GET; nil when none is there.
func (a *api) queryScope(caller gozzard.Caller, q *query) *scope {
	if !slices.ContainsFunc(scopeParams, q.values.Has) {
		return nil
	}

	s := &scope{fault: func(name, text string) { q.faults.Add(name, "%s", text) }}
	s.biz(q.one("biz"))

	if q.values.Has("env") {
		s.env(q.one("env"))
	}

	q.each("set", s.set)
	q.each("module", s.module)

	if q.values.Has("expression") {
		s.expression(q.one("expression"))
	}

	q.each("name", func(text string) string {
		s.names = append(s.names, text)
		return checkGlob(text)
	})

	q.each("host", func(text string) string {
		ip, err := gozzard.ParseIP(text)
		t := gozzard.Target{Addr: gozzard.HostAddr{IP: ip}}
		anyCloud := err == nil
		if !anyCloud {
			if t, err = parseHost(text, nil); err != nil {
				return err.Error()
			}
		}
		h, fault := a.scopeHost(caller, t, anyCloud)
		s.hosts = append(s.hosts, h)
		return fault
	})

	s.finish()
	return s
}

// bodyScope reads a scope from a body; nil when there is none.
func (a *api) bodyScope(caller gozzard.Caller, root *strictjson.Value) *scope {
	get := func(name string) strictjson.Value { return root.Get(name) }
	biz, env, sets, modules, expression := get("biz"), get("env"), get("sets"), get("modules"), get("expression")
	if !biz.Given() && !env.Given() && !sets.Given() && !modules.Given() && !expression.Given() {
		return nil
	}

	s := &scope{fault: func(name, text string) { root.Faults().Add(name, "%s", text) }}
	s.Biz = int(biz.Int(1, 1<<31-1))

	if env.Given() {
		s.env(env.Scalar())
	}

	each := func(list strictjson.Value, take func(string) string) {
		list.OptList(maxList, func(e *strictjson.Value) {
			if fault := take(e.Scalar()); fault != "" {
				e.Fault("%s", fault)
			}
		})
	}

	each(sets, s.set)
	each(modules, s.module)

	if expression.Given() {
		s.expression(expression.Str())
	}

	a.bodyTargets(caller, root, s)
	s.finish()

	if all := get("all"); all.OptBool(false) {
		all.Fault(`is not for a business: "expression": "*.*.*.*.*" is every process of it`)
	} else if !s.narrow {
		biz.Fault(`say which of its processes: expression, sets, modules, names or hosts; "expression": "*.*.*.*.*" is every one`)
	}

	for _, name := range []string{"namespace", "spec", "labels"} {
		if v := get(name); v.Given() {
			v.Fault("is not for a business: its processes have theirs")
		}
	}

	return s
}

// bodyTargets reads the names and hosts that narrow a scope.
func (a *api) bodyTargets(caller gozzard.Caller, root *strictjson.Value, s *scope) {
	names, hosts := root.Get("names"), root.Get("hosts")
	names.OptList(maxList, func(e *strictjson.Value) {
		name := e.Str()
		if fault := checkGlob(name); fault != "" && name != "" {
			e.Fault("%s", fault)
		}
		s.names = append(s.names, name)
	})

	hosts.OptList(maxList, func(e *strictjson.Value) {
		cloud := e.Get("cloud")
		t, ok := readHost(e, nil)
		if !ok {
			return
		}
		h, fault := a.scopeHost(caller, t, t.Agent == "" && !cloud.Given())
		if fault != "" {
			e.Fault("%s", fault)
		}
		s.hosts = append(s.hosts, h)
	})
}

// scopeItems makes the items of an operation on processes of a business. An instance that lacks what the action
// needs fails for itself.
func (a *api) scopeItems(ctx context.Context, caller gozzard.Caller, s *scope, action gozzard.Action) ([]gozzard.Item,
	error) {
	s.Limit = record.MaxTargets
	total, rows := a.Plane.FindProcesses(caller, s.Query)
	switch {
	case total == 0:
		return nil, a.nothingFits(caller, s.Biz)
	case total > record.MaxTargets:
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "%d processes fit, at most %d are allowed in one operation",
			total, record.MaxTargets)
	}

	found, err := a.Plane.TopologyItems(ctx, s.Biz, rows, action)
	if err != nil {
		return nil, err
	}

	items := make([]gozzard.Item, len(found))
	for i := range found {
		items[i] = found[i].Item
		if len(found[i].Missing) > 0 {
			items[i].Refused = &gozzard.Outcome{Code: gozzard.CodeNoDefinition,
				Message: fmt.Sprintf("%s needs %s, which process %d has not", action,
					strings.Join(found[i].Missing, ", "), found[i].Row.Process)}
		}
	}

	return items, nil
}

func (a *api) nothingFits(caller gozzard.Caller, biz int) error {
	if !slices.ContainsFunc(a.Plane.Businesses(caller), func(h record.BusinessHead) bool { return h.ID == biz }) {
		return unknownBusiness(biz)
	}
	return gozzard.Errorf(gozzard.ErrNotFound, "no process of business %d fits", biz)
}
