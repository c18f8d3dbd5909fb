package gozzard

import (
	"encoding/json"
	"net/netip"
	"slices"
	"unicode/utf8"
)

// Role is what somebody is trusted with.
type Role string

// The roles. An operator sees what a viewer sees, an admin may do everything; an enroller may only bring hosts in.
const (
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
	RoleEnroller Role = "enroller"
)

// Valid reports whether there is such a role.
func (r Role) Valid() bool {
	return r == RoleViewer || r == RoleOperator || r == RoleAdmin || r == RoleEnroller
}

// Grant gives a role on a part of the fleet. An empty list stands for everything of its kind, and a list fits when
// one of its values does; of Businesses and Namespaces one must fit.
type Grant struct {
	Role       Role           `json:"role"`
	Businesses []int          `json:"businesses,omitempty"`
	Namespaces []string       `json:"namespaces,omitempty"` // patterns with * and ?
	Clouds     []int          `json:"clouds,omitempty"`
	Nets       []netip.Prefix `json:"nets,omitempty"`
	Actions    Actions        `json:"actions,omitempty"` // of an operator
}

// Actions is a list that is kept as words: numbers would be bytes to encoding/json, and would bind what is recorded
// to the order of a list in a program.
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

// Rights are all grants of one caller. Nil or none is no right at all: what is not granted does not exist.
type Rights struct {
	Grants []Grant
}

// Everything is the right of the program itself and of an unrestricted admin.
func Everything() *Rights { return &Rights{Grants: []Grant{{Role: RoleAdmin}}} }

// All reports whether nothing is hidden and nothing forbidden, so that nothing has to be asked row by row.
func (r *Rights) All() bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.Role == RoleAdmin && g.wholeFleet() })
}

// SeesAll reports whether every process and host is visible.
func (r *Rights) SeesAll() bool {
	return r != nil && slices.ContainsFunc(r.Grants, func(g Grant) bool { return g.sees() && g.wholeFleet() })
}

// Has reports whether a role was given at all, on whatever part of the fleet.
func (r *Rights) Has(role Role) bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.Role == role || g.Role == RoleAdmin })
}

// Sees reports whether a process of a namespace on a host with these addresses is visible.
func (r *Rights) Sees(namespace string, addrs []HostAddr) bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.sees() && g.fitsSpace(namespace) && g.fitsHost(addrs) })
}

// SeesHost reports whether a host is visible: something on it may be seen, or it may be enrolled.
func (r *Rights) SeesHost(addrs []HostAddr) bool {
	return r != nil && slices.ContainsFunc(r.Grants, func(g Grant) bool { return g.fitsHost(addrs) })
}

// SeesBusiness reports whether something of a business may be seen.
func (r *Rights) SeesBusiness(biz int) bool {
	return r != nil && slices.ContainsFunc(r.Grants, func(g Grant) bool { return g.sees() && g.fitsBusiness(biz) })
}

// May reports whether an action on a process of a namespace on a host with these addresses is allowed.
func (r *Rights) May(a Action, namespace string, addrs []HostAddr) bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.may(a) && g.fitsSpace(namespace) && g.fitsHost(addrs) })
}

// MaySpace reports whether an action on some process of a namespace may be allowed, whatever hosts there are.
func (r *Rights) MaySpace(a Action, namespace string) bool {
	return r != nil && slices.ContainsFunc(r.Grants, func(g Grant) bool { return g.may(a) && g.fitsSpace(namespace) })
}

// MayBusiness reports whether the description of a business may be changed. It says what is on which host, so a
// grant on some hosts only is not enough.
func (r *Rights) MayBusiness(biz int) bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.Role == RoleAdmin && g.anyHost() && g.fitsBusiness(biz) })
}

// MayHost reports whether what concerns every process of a host may be changed, of whatever namespace.
func (r *Rights) MayHost(addrs []HostAddr) bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.may(ActionUpdate) && g.anySpace() && g.fitsHost(addrs) })
}

// SeesSpace reports whether a namespace is visible on every host, so that no host has to be asked about.
func (r *Rights) SeesSpace(namespace string) bool {
	return r != nil && slices.ContainsFunc(r.Grants,
		func(g Grant) bool { return g.sees() && g.anyHost() && g.fitsSpace(namespace) })
}

// Marks are some of a caller's grants, a bit for each. Who looks at many rows asks once for each namespace and once
// for each host: a process is visible when the marks of both have a grant in common, which is what Sees says.
type Marks []uint64

// MarkSpace marks the grants by which something of a namespace may be seen.
func (r *Rights) MarkSpace(namespace string) Marks {
	return r.mark(func(g *Grant) bool { return g.sees() && g.fitsSpace(namespace) })
}

// MarkHost marks the grants by which something on a host may be seen.
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

// Meet reports whether there is a grant in both.
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

// fitsBusiness: a grant by namespaces covers a business when it covers the namespace that its processes have.
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

// MatchGlob reports whether a text fits a pattern: * is any text, ? one character. It goes back to the last * only,
// so the time is bounded by the product of the lengths.
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
