package gozzard

import (
	"encoding/json"
	"net/netip"
	"slices"
	"unicode/utf8"
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

// Grant gives a role on a part of the fleet. An empty list means everything of its kind. A list matches when one of
// its values matches. Of Businesses and Namespaces one has to match.
type Grant struct {
	Role       Role           `json:"role"`
	Businesses []int          `json:"businesses,omitempty"`
	Namespaces []string       `json:"namespaces,omitempty"` // patterns with * and ?
	Clouds     []int          `json:"clouds,omitempty"`
	Nets       []netip.Prefix `json:"nets,omitempty"`
	Actions    Actions        `json:"actions,omitempty"` // that an operator may do
}

// Actions is a list of actions that is stored as words. As numbers, encoding/json would write it as bytes.
type Actions []Action

// MarshalJSON writes the words.
func (l Actions) MarshalJSON() ([]byte, error) {
	words := make([]string, len(l))
	for i, a := range l {
		words[i] = a.String()
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
}

// Everything are the rights of the program itself and of an admin of the whole fleet.
func Everything() *Rights { return &Rights{Grants: []Grant{{Role: RoleAdmin}}} }

// All reports whether the caller may see and do everything.
func (r *Rights) All() bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.Role == RoleAdmin && g.wholeFleet() })
}

// SeesAll reports whether the caller may see every process and host.
func (r *Rights) SeesAll() bool {
	return r != nil && slices.ContainsFunc(r.Grants, func(g Grant) bool { return g.sees() && g.wholeFleet() })
}

// Has reports whether the caller has a role on any part of the fleet. An admin has every role.
func (r *Rights) Has(role Role) bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.Role == role || g.Role == RoleAdmin })
}

// Sees reports whether the caller may see the processes of a namespace on a host with these addresses.
func (r *Rights) Sees(namespace string, addrs []HostAddr) bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.sees() && g.fitsSpace(namespace) && g.fitsHost(addrs) })
}

// SeesHost reports whether the caller may see a host: it may see a process there, or may enrol the host.
func (r *Rights) SeesHost(addrs []HostAddr) bool {
	return r != nil && slices.ContainsFunc(r.Grants, func(g Grant) bool { return g.fitsHost(addrs) })
}

// SeesBusiness reports whether the caller may see a part of a business.
func (r *Rights) SeesBusiness(biz int) bool {
	return r != nil && slices.ContainsFunc(r.Grants, func(g Grant) bool { return g.sees() && g.fitsBusiness(biz) })
}

// May reports whether the caller may do an action on processes of a namespace on a host with these addresses.
func (r *Rights) May(a Action, namespace string, addrs []HostAddr) bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.may(a) && g.fitsSpace(namespace) && g.fitsHost(addrs) })
}

// MaySpace reports whether the caller may do an action on processes of a namespace on at least some hosts.
func (r *Rights) MaySpace(a Action, namespace string) bool {
	return r != nil && slices.ContainsFunc(r.Grants, func(g Grant) bool { return g.may(a) && g.fitsSpace(namespace) })
}

// MayBusiness reports whether the caller may change the topology of a business. The topology says what is on which
// host, so a grant for some hosts is not enough.
func (r *Rights) MayBusiness(biz int) bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.Role == RoleAdmin && g.anyHost() && g.fitsBusiness(biz) })
}

// MayHost reports whether the caller may change what concerns all processes of a host.
func (r *Rights) MayHost(addrs []HostAddr) bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.may(ActionUpdate) && g.anySpace() && g.fitsHost(addrs) })
}

// SeesSpace reports whether the caller may see a namespace on every host.
func (r *Rights) SeesSpace(namespace string) bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.sees() && g.anyHost() && g.fitsSpace(namespace) })
}

// Marks are a set of a caller's grants, one bit each. They make Sees fast for many rows: mark each namespace and each
// host once; a process is visible when the marks of its namespace and of its host meet.
type Marks []uint64

// MarkSpace marks the grants that let the caller see processes of a namespace.
func (r *Rights) MarkSpace(namespace string) Marks {
	return r.mark(func(g *Grant) bool { return g.sees() && g.fitsSpace(namespace) })
}

// MarkHost marks the grants that let the caller see processes of a host.
func (r *Rights) MarkHost(addrs []HostAddr) Marks {
	return r.mark(func(g *Grant) bool { return g.sees() && g.fitsHost(addrs) })
}

func (r *Rights) mark(fits func(g *Grant) bool) Marks {
	if r == nil {
		return nil
	}
	m := make(Marks, (len(r.Grants)+63)/64)
	for i := range r.Grants {
		if fits(&r.Grants[i]) {
			m[i/64] |= 1 << (i % 64)
		}
	}
	return m
}

// Meet reports whether a grant is in both sets.
func (m Marks) Meet(o Marks) bool {
	for i := range m {
		if m[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

func (g *Grant) anySpace() bool { return len(g.Businesses)+len(g.Namespaces) == 0 }

func (g *Grant) anyHost() bool { return len(g.Clouds)+len(g.Nets) == 0 }

func (g *Grant) wholeFleet() bool { return g.anySpace() && g.anyHost() }

func (g *Grant) sees() bool {
	return g.Role == RoleViewer || g.Role == RoleOperator || g.Role == RoleAdmin
}

func (g *Grant) may(a Action) bool {
	switch g.Role {
	case RoleAdmin:
		return true
	case RoleOperator:
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
func (g *Grant) fitsBusiness(biz int) bool {
	return slices.Contains(g.Businesses, biz) || g.fitsSpace(BusinessNamespace(biz))
}

func (g *Grant) fitsHost(addrs []HostAddr) bool {
	if g.anyHost() {
		return true
	}
	return slices.ContainsFunc(addrs, func(a HostAddr) bool {
		return (len(g.Clouds) == 0 || slices.Contains(g.Clouds, a.Cloud)) &&
			(len(g.Nets) == 0 || slices.ContainsFunc(g.Nets, func(n netip.Prefix) bool { return n.Contains(a.IP) }))
	})
}

// MatchGlob reports whether a text matches a pattern: * matches any text, ? one character. It goes back to the last *
// only, so the time is bounded by the product of the lengths.
func MatchGlob(pattern, text string) bool {
	star, resume := -1, 0
	p, i := 0, 0
	for i < len(text) {
		if p < len(pattern) {
			switch c := pattern[p]; {
			case c == '*':
				star, resume = p, i
				p++
				continue
			case c == '?':
				_, n := utf8.DecodeRuneInString(text[i:])
				p++
				i += n
				continue
			case c == text[i]:
				p++
				i++
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, n := utf8.DecodeRuneInString(text[resume:])
		resume += n
		p, i = star+1, resume
	}

	for p < len(pattern) && pattern[p] == '*' {
		p++
	}

	return p == len(pattern)
}
