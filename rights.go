package gozzard

import (
	"encoding/json"
	"net/netip"
	"slices"
)

// Role is a set of things that an app or a person may do.
type Role string

// The roles. A viewer may see, an operator may see and operate, an admin may do everything, and an enroller may only
// enrol hosts.
const (
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
	RoleEnroller Role = "enroller"
)

// Valid reports whether the role exists.
func (r Role) Valid() bool {
	return r == RoleViewer || r == RoleOperator || r == RoleAdmin || r == RoleEnroller
}

// HostScope says which hosts a grant reaches.
type HostScope string

// The scopes. HostsAssigned are the hosts that a topology document or the CMDB assigns to the business whose process
// it is. HostsListed are those in Clouds and Nets. HostsAny are all hosts.
const (
	HostsAssigned HostScope = "assigned"
	HostsListed   HostScope = "listed"
	HostsAny      HostScope = "any"
)

// Grant gives a role on a part of the fleet. An empty list means everything of its kind, except Accounts: without
// accounts no command may run. A list matches when one of its values matches.
type Grant struct {
	Role       Role           `json:"role"`
	Businesses []int          `json:"businesses,omitempty"`
	Namespaces []string       `json:"namespaces,omitempty"` // patterns with * and ?
	Hosts      HostScope      `json:"hosts,omitempty"`      // "" in grants of older versions
	Clouds     []int          `json:"clouds,omitempty"`
	Nets       []netip.Prefix `json:"nets,omitempty"`
	Actions    Actions        `json:"actions,omitempty"`  // that an operator may do
	Accounts   []string       `json:"accounts,omitempty"` // that commands may run as; AnyAccount is all but root
}

// Actions is a list of actions that is stored as words. As numbers, encoding/json would write it as bytes.
type Actions []Action

// MarshalJSON writes the words.
func (l Actions) MarshalJSON() ([]byte, error) {
	words := make([]string, len(l))
	for i, a := range l {
		words[i] = a.Stored()
	}
	return json.Marshal(words)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *Actions) UnmarshalJSON(b []byte) error {
	var words []string
	if err := json.Unmarshal(b, &words); err != nil {
		return err
	}

	list := make(Actions, len(words))
	for i, w := range words {
		a, err := ParseAction(w)
		if err != nil {
			return err
		}
		list[i] = a
	}

	*l = list
	return nil
}

// Rights are all grants of a caller. Without grants a caller has no rights. What it may not see does not exist for it.
type Rights struct {
	Grants []Grant

	// Assigned reports whether a host is assigned to a business. nil: no host is.
	Assigned func(biz int, h HostRef) bool
}

// HostRef is a host as rights know it: its agent and all its addresses.
type HostRef struct {
	Agent AgentID
	Addrs []HostAddr
}

// Ref is the host as rights know it.
func (h *HostInfo) Ref() HostRef { return HostRef{Agent: h.Agent, Addrs: h.Addrs} }

// Everything are the rights of the program itself and of an admin of the whole fleet.
func Everything() *Rights { return &Rights{Grants: []Grant{{Role: RoleAdmin, Hosts: HostsAny}}} }

// some reports whether a grant fits.
func (r *Rights) some(fits func(g *Grant) bool) bool {
	if r == nil {
		return false
	}
	for i := range r.Grants {
		if fits(&r.Grants[i]) {
			return true
		}
	}
	return false
}

// All reports whether the caller may see and do everything.
func (r *Rights) All() bool {
	return r.some(func(g *Grant) bool { return g.Role == RoleAdmin && g.wholeFleet() })
}

// SeesAll reports whether the caller may see every process and host.
func (r *Rights) SeesAll() bool {
	return r.some(func(g *Grant) bool { return g.sees() && g.wholeFleet() })
}

// Has reports whether the caller has a role on any part of the fleet. An admin has every role.
func (r *Rights) Has(role Role) bool {
	return r.some(func(g *Grant) bool { return g.Role == role || g.Role == RoleAdmin })
}

// MaySomewhere reports whether the caller may do an action on some part of the fleet.
func (r *Rights) MaySomewhere(a Action) bool { return r.some(func(g *Grant) bool { return g.may(a) }) }

// MaySomeBusiness reports whether the caller may change the topology of some business.
func (r *Rights) MaySomeBusiness() bool {
	return r.some(func(g *Grant) bool { return g.Role == RoleAdmin && g.everyHost() })
}

// Sees reports whether the caller may see the processes of a namespace on a host.
func (r *Rights) Sees(namespace string, h HostRef) bool {
	return r.some(func(g *Grant) bool { return g.sees() && g.fitsSpace(namespace) && r.reaches(g, namespace, h) })
}

// SeesHost reports whether the caller may see a host: it may see a process there, or may enrol the host.
func (r *Rights) SeesHost(h HostRef) bool {
	return r.some(func(g *Grant) bool {
		if g.Scope() != HostsAssigned {
			return g.fitsAddrs(h.Addrs)
		}
		return g.fitsAddrs(h.Addrs) && slices.ContainsFunc(g.businesses(),
			func(biz int) bool { return r.assigned(biz, h) })
	})
}

// SeesBusiness reports whether the caller may see a part of a business.
func (r *Rights) SeesBusiness(biz int) bool {
	return r.some(func(g *Grant) bool { return g.sees() && g.fitsBusiness(biz) })
}

// SeesBusinessHosts reports whether the caller may see the processes of a business on every host of that business.
func (r *Rights) SeesBusinessHosts(biz int) bool {
	return r.some(func(g *Grant) bool { return g.sees() && g.fitsBusiness(biz) && g.everyHost() })
}

// May reports whether the caller may do an action on processes of a namespace on a host, where the process has a
// definition with this account. An action that only reads runs nothing, so its account does not matter.
func (r *Rights) May(a Action, namespace string, h HostRef, account string) bool {
	return r.some(func(g *Grant) bool { return r.object(g, a, namespace, h, account) == objectNothing })
}

// MayOn is May for what concerns no single definition, such as the resource pools of a namespace.
func (r *Rights) MayOn(a Action, namespace string, h HostRef) bool {
	return r.some(func(g *Grant) bool { return g.may(a) && g.fitsSpace(namespace) && r.reaches(g, namespace, h) })
}

// MaySpace reports whether the caller may do an action on processes of a namespace on at least some hosts.
func (r *Rights) MaySpace(a Action, namespace string) bool {
	return r.some(func(g *Grant) bool { return g.may(a) && g.fitsSpace(namespace) })
}

// MayBusinessHosts reports whether the caller may do an action on processes of a business on every host of that
// business.
func (r *Rights) MayBusinessHosts(a Action, biz int) bool {
	return r.some(func(g *Grant) bool { return g.may(a) && g.fitsBusiness(biz) && g.everyHost() })
}

// MayBusiness reports whether the caller may change the topology of a business. The topology says what is on which
// host, so a grant for some hosts is not enough.
func (r *Rights) MayBusiness(biz int) bool {
	return r.some(func(g *Grant) bool { return g.Role == RoleAdmin && g.everyHost() && g.fitsBusiness(biz) })
}

// MayRunAs reports whether the caller may write an account into the topology of a business.
func (r *Rights) MayRunAs(biz int, account string) bool {
	return r.some(func(g *Grant) bool {
		return g.Role == RoleAdmin && g.everyHost() && g.fitsBusiness(biz) && g.runsAs(account)
	})
}

// MayAssign reports whether the caller may put a host into a business. A grant by business does not count: it reaches
// the hosts that are in the business already.
func (r *Rights) MayAssign(biz int, h HostRef) bool {
	return r.some(func(g *Grant) bool {
		return g.Role == RoleAdmin && g.Scope() != HostsAssigned && g.fitsBusiness(biz) && g.fitsAddrs(h.Addrs)
	})
}

// MayHost reports whether the caller may change what concerns all processes of a host, of all accounts.
func (r *Rights) MayHost(h HostRef) bool {
	return r.some(func(g *Grant) bool {
		return g.may(ActionUpdate) && g.anySpace() && g.fitsAddrs(h.Addrs) && g.runsAs(RootAccount) &&
			(g.EveryAccount() || slices.Contains(g.Accounts, AnyAccount))
	})
}

// MayExclude reports whether the caller may take a host out of the fleet: as an admin of all of its addresses, in every
// namespace.
func (r *Rights) MayExclude(h HostRef) bool {
	return r.some(func(g *Grant) bool {
		if g.Role != RoleAdmin || !g.anySpace() || g.Scope() == HostsAssigned {
			return false
		}
		outside := func(a HostAddr) bool { return !g.fitsAddrs([]HostAddr{a}) }
		return g.wholeFleet() || len(h.Addrs) > 0 && !slices.ContainsFunc(h.Addrs, outside)
	})
}

// SeesSpace reports whether the caller may see a namespace on every host.
func (r *Rights) SeesSpace(namespace string) bool {
	return r.some(func(g *Grant) bool {
		return g.sees() && g.fitsSpace(namespace) && g.everyHost() && g.Scope() == HostsAny
	})
}

// assigned reports whether a host is assigned to a business.
func (r *Rights) assigned(biz int, h HostRef) bool { return r.Assigned != nil && r.Assigned(biz, h) }

// reaches reports whether a grant that fits a namespace reaches a host for processes of that namespace.
func (r *Rights) reaches(g *Grant, namespace string, h HostRef) bool {
	if !g.fitsAddrs(h.Addrs) {
		return false
	}
	if g.Scope() != HostsAssigned {
		return true
	}
	biz, ok := BusinessOf(namespace)
	return ok && r.assigned(biz, h)
}

// Scope is which hosts the grant reaches. A grant that does not say it in Hosts says it by what else it has; where that
// is not enough the scope is "", and the grant reaches no host.
func (g *Grant) Scope() HostScope {
	switch {
	case g.Hosts != "":
		return g.Hosts
	case len(g.Businesses) > 0:
		return HostsAssigned
	case len(g.Clouds)+len(g.Nets) > 0:
		return HostsListed
	case g.anySpace():
		return HostsAny
	}
	return ""
}

// businesses are the businesses whose hosts the grant may reach by assignment.
func (g *Grant) businesses() []int {
	list := slices.Clone(g.Businesses)
	for _, p := range g.Namespaces {
		if biz, ok := BusinessOf(p); ok {
			list = append(list, biz)
		}
	}
	return list
}

func (g *Grant) anySpace() bool { return len(g.Businesses)+len(g.Namespaces) == 0 }

// everyHost: the grant leaves out no host of what it is about.
func (g *Grant) everyHost() bool {
	return len(g.Clouds)+len(g.Nets) == 0 && (g.Scope() == HostsAny || g.Scope() == HostsAssigned)
}

func (g *Grant) wholeFleet() bool { return g.anySpace() && g.everyHost() && g.Scope() == HostsAny }

func (g *Grant) sees() bool {
	return g.Role == RoleViewer || g.Role == RoleOperator || g.Role == RoleAdmin
}

func (g *Grant) may(a Action) bool {
	if a.Listed() {
		return g.Role == RoleOperator && slices.Contains(g.Actions, a)
	}
	if a.OnAgent() && !g.anySpace() { // an agent serves all namespaces of its host
		return false
	}
	switch g.Role {
	case RoleAdmin:
		return true
	case RoleOperator:
		if a.Named() { // an operator of processes writes no files and restarts no agents, unless the grant says so
			return slices.Contains(g.Actions, a)
		}
		return len(g.Actions) == 0 || slices.Contains(g.Actions, a) || a.ReadOnly()
	case RoleViewer:
		return a.ReadOnly()
	}
	return false
}

func (g *Grant) fitsSpace(namespace string) bool {
	if g.anySpace() {
		return true
	}
	if biz, ok := BusinessOf(namespace); ok && slices.Contains(g.Businesses, biz) {
		return true
	}
	return slices.ContainsFunc(g.Namespaces, func(p string) bool { return MatchGlob(p, namespace) })
}

// fitsBusiness: a grant by namespaces covers a business if it covers the namespace of the business's topology.
func (g *Grant) fitsBusiness(biz int) bool { return g.fitsSpace(BusinessNamespace(biz)) }

// fitsAddrs reports whether an address of a host is among Clouds and Nets. A grant that lists hosts and has none, or
// does not say its hosts, fits no host.
func (g *Grant) fitsAddrs(addrs []HostAddr) bool {
	if len(g.Clouds)+len(g.Nets) == 0 {
		return g.Scope() == HostsAny || g.Scope() == HostsAssigned
	}
	return slices.ContainsFunc(addrs, func(a HostAddr) bool {
		return (len(g.Clouds) == 0 || slices.Contains(g.Clouds, a.Cloud)) &&
			(len(g.Nets) == 0 || slices.ContainsFunc(g.Nets, func(n netip.Prefix) bool { return n.Contains(a.IP) }))
	})
}
