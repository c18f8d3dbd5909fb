package api

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/expression"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/topology"
)

// businessSelection selects processes of a business, see client.BusinessSelection. It is read from the query of a
// GET (readBusinessQuery) or from the body of a request (readBusinessBody).
type businessSelection struct {
	topology.Query
	names  []string // aliases, or patterns
	hosts  []businessHost
	narrow bool // it says more than which business
	fault  func(name, text string)
}

// businessHost is a host as the request names it. A negative cloud means any cloud.
type businessHost struct {
	cloud int
	ip    netip.Addr
}

// readBusinessQuery reads a business selection from a query, nil if there is none.
func (a *api) readBusinessQuery(caller gozzard.Caller, q *query) *businessSelection {
	given := func(p Parameter) bool { return q.values.Has(p.Name) }
	if !slices.ContainsFunc(businessParams(), given) {
		return nil
	}

	// Read the place in the business.
	s := &businessSelection{fault: func(name, text string) { q.faults.Add(name, "%s", text) }}
	s.setBiz(q.one("biz"))
	if q.values.Has("env") {
		s.setEnv(q.one("env"))
	}
	q.each("set", s.addSet)
	q.each("module", s.addModule)
	if q.values.Has("expression") {
		s.setExpression(q.one("expression"))
	}

	// Read the names and hosts that narrow it.
	s.names = q.patterns("name")
	hosts := cloudFinder{plane: a.Plane, caller: caller, anyCloud: true}
	q.each("host", func(text string) string {
		ip, err := gozzard.ParseIP(text)
		t := gozzard.Target{Addr: gozzard.HostAddr{IP: ip}}
		anyCloud := err == nil
		if !anyCloud {
			if t, err = parseHost(text, &hosts); err != nil {
				return err.Error()
			}
		}
		return s.addHost(a.findHost(caller, t, anyCloud))
	})

	s.finish()
	return s
}

// readBusinessBody reads a business selection from a body, nil if there is none.
func (a *api) readBusinessBody(caller gozzard.Caller, root *strictjson.Value) *businessSelection {
	biz, env, expression := root.Get("biz"), root.Get("env"), root.Get("expression")
	sets, modules := root.Get("sets"), root.Get("modules")
	if !biz.Given() && !env.Given() && !sets.Given() && !modules.Given() && !expression.Given() {
		return nil
	}

	// Read the place in the business.
	s := &businessSelection{fault: func(name, text string) { root.Faults().Add(name, "%s", text) }}
	s.Biz = int(biz.Int(1, 1<<31-1))
	if env.Given() {
		s.setEnv(env.Scalar())
	}
	each := func(list strictjson.Value, add func(string) string) {
		list.OptList(maxList, func(e *strictjson.Value) {
			if fault := add(e.Scalar()); fault != "" {
				e.Fault("%s", fault)
			}
		})
	}
	each(sets, s.addSet)
	each(modules, s.addModule)
	if expression.Given() {
		s.setExpression(expression.Str())
	}

	// Read the names and hosts that narrow it.
	a.readBusinessTargets(caller, root, s)
	s.finish()

	// Reject fields that are not allowed with a business.
	if all := root.Get("all"); all.OptBool(false) {
		all.Fault(`is not allowed with a business: "expression": "*.*.*.*.*" means every process of it`)
	} else if !s.narrow {
		biz.Fault(`select some of its processes by expression, sets, modules, names or hosts; ` +
			`"expression": "*.*.*.*.*" means every process`)
	}
	for _, name := range []string{"namespace", "namespaces", "processes", "spec", "labels"} {
		if v := root.Get(name); v.Given() {
			v.Fault("is not allowed with a business: its processes have their own")
		}
	}

	return s
}

// readBusinessTargets reads the names and hosts that narrow a business selection.
func (a *api) readBusinessTargets(caller gozzard.Caller, root *strictjson.Value, s *businessSelection) {
	names, hosts := root.Get("names"), root.Get("hosts")
	names.OptList(maxList, func(e *strictjson.Value) {
		name := e.Str()
		if fault := checkPattern(name); fault != "" && name != "" {
			e.Fault("%s", fault)
		}
		s.names = append(s.names, name)
	})

	finder := cloudFinder{plane: a.Plane, caller: caller, anyCloud: true}
	hosts.OptList(maxList, func(e *strictjson.Value) {
		cloud := e.Get("cloud")
		t, ok := readHost(e, &finder)
		if !ok {
			return
		}
		if fault := s.addHost(a.findHost(caller, t, t.Agent == "" && !cloud.Given())); fault != "" {
			e.Fault("%s", fault)
		}
	})
}

// findHost finds the address of a host that is named by its agent. fault is not "" if there is none.
func (a *api) findHost(caller gozzard.Caller, t gozzard.Target, anyCloud bool) (host businessHost, fault string) {
	if t.Agent != "" {
		h, ok := a.Plane.Resolve(caller, t)
		if !ok || len(h.Info.Addrs) == 0 {
			return businessHost{}, fmt.Sprintf("host %s is not in the fleet: it never joined, or it has left", hostText(t))
		}
		t.Addr = h.Info.Addrs[0]
	}
	if anyCloud {
		t.Addr.Cloud = -1
	}
	return businessHost{t.Addr.Cloud, t.Addr.IP}, ""
}

func (s *businessSelection) setBiz(text string) {
	n, fault := parseBiz(text)
	if fault != "" {
		s.fault("biz", fault)
	}
	s.Biz = n
}

func (s *businessSelection) setEnv(text string) {
	env, fault := parseEnv(text)
	if fault != "" {
		s.fault("env", fault)
	}
	s.Env = env
}

func (s *businessSelection) setExpression(text string) {
	s.narrow = true
	e, faults := parseExpression(text)
	for _, f := range faults {
		s.fault("expression", f)
	}
	s.Expression = e
}

func (s *businessSelection) addSet(text string) string {
	return s.addPart("set", text, &s.Sets, &s.SetNames)
}

func (s *businessSelection) addModule(text string) string {
	return s.addPart("module", text, &s.Modules, &s.ModuleNames)
}

func (s *businessSelection) addHost(h businessHost, fault string) string {
	s.hosts = append(s.hosts, h)
	return fault
}

// addPart reads a set or a module: digits are an id, anything else is a name. It returns a fault, or "".
func (s *businessSelection) addPart(name, text string, ids *[]int, names *[]string) string {
	s.narrow = true
	n, err := strconv.Atoi(text)
	switch {
	case text == "":
		return "required, is empty"
	case err == nil && n >= 0:
		*ids = append(*ids, n)
	case strings.ContainsAny(text, "*?["):
		return fmt.Sprintf("%q is not the name or the id of a %s: use the expression for patterns", clip(text), name)
	default:
		*names = append(*names, text)
	}

	if len(*ids) > 0 && len(*names) > 0 {
		return "give either ids or names"
	}

	return ""
}

// finish completes the query with the names and hosts.
func (s *businessSelection) finish() {
	s.narrow = s.narrow || len(s.names)+len(s.hosts) > 0
	s.finishNames()
	s.finishHosts()
}

// finishNames looks up names that are written out as aliases. Patterns become the fourth field of the expression.
func (s *businessSelection) finishNames() {
	switch {
	case len(s.names) == 0:
	case !slices.ContainsFunc(s.names, isPattern):
		s.Names = s.names
	case s.Expression != nil && s.Expression.Name != nil:
		s.fault("name", "a pattern and the fourth field of the expression mean the same: give only one")
	default:
		s.setNameExpression()
	}
}

// setNameExpression makes the fourth field of the expression of the names.
func (s *businessSelection) setNameExpression() {
	if s.Expression == nil {
		s.Expression = &topology.Expression{}
	}
	e, err := expression.Parse("[" + strings.Join(s.names, ",") + "]")
	if err != nil {
		s.fault("name", err.Error())
		return
	}

	for _, name := range s.names {
		// An expression reads 1-3 as a range, and brackets and commas as lists.
		if !isPattern(name) && !e.Match(name) || strings.ContainsAny(name, "[],") {
			s.fault("name", fmt.Sprintf("%q is not allowed together with a pattern", name))
		}
	}
	s.Expression.Name = e
}

func (s *businessSelection) finishHosts() {
	for _, h := range s.hosts {
		s.IPs = append(s.IPs, h.ip)
		if h.cloud != s.hosts[0].cloud {
			s.fault("host", "with a business, all hosts must be of one cloud")
			return
		}
	}
	if len(s.hosts) > 0 && s.hosts[0].cloud >= 0 {
		s.Clouds = []int{s.hosts[0].cloud}
	}
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
