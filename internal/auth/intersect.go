package auth

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
)

// Intersect makes grants that allow what both lists allow. Where grants cannot express that (two patterns that
// overlap), the result allows less, never more.
func Intersect(a, b []gozzard.Grant) []gozzard.Grant {
	both := []gozzard.Grant{}
	for i := range a {
		for j := range b {
			if g, ok := intersect(&a[i], &b[j]); ok && len(both) < maxGrants*maxGrants {
				both = append(both, g)
			}
		}
	}
	return both
}

func intersect(a, b *gozzard.Grant) (g gozzard.Grant, ok bool) {
	if g.Role, ok = lesser(a.Role, b.Role); !ok {
		return g, false
	}
	if g.Businesses, g.Namespaces, ok = spaces(a, b); !ok {
		return g, false
	}
	if g.Clouds, ok = common(a.Clouds, b.Clouds); !ok {
		return g, false
	}
	if g.Nets, ok = nets(a.Nets, b.Nets); !ok {
		return g, false
	}
	if g.Hosts, ok = hosts(a, b, &g); !ok {
		return g, false
	}
	if g.Role == gozzard.RoleOperator || g.Role == gozzard.RoleAdmin {
		g.Accounts = accounts(a, b)
	}

	g.Actions, ok = actions(a, b)
	// A viewer does no actions, so the lists of actions do not matter.
	if g.Role == gozzard.RoleViewer {
		g.Actions, ok = nil, true
	}

	return g, ok
}

// lesser is the role that has what both roles have.
func lesser(a, b gozzard.Role) (gozzard.Role, bool) {
	if a == b || b == gozzard.RoleAdmin {
		return a, true
	}
	if a == gozzard.RoleAdmin {
		return b, true
	}
	if a == gozzard.RoleEnroller || b == gozzard.RoleEnroller {
		return "", false
	}
	return gozzard.RoleViewer, true // of viewer and operator
}

// actions is what the actions of two grants share. A grant without a list does not have the actions that must be listed, and
// one of an operator not those that an operator must be given by name either.
func actions(a, b *gozzard.Grant) (gozzard.Actions, bool) {
	both, ok := common(a.Actions, b.Actions)
	for _, g := range []*gozzard.Grant{a, b} {
		if len(g.Actions) == 0 && len(both) > 0 {
			both = slices.DeleteFunc(both, func(x gozzard.Action) bool {
				return x.Listed() || x.Named() && g.Role == gozzard.RoleOperator
			})
			ok = ok && len(both) > 0
		}
	}
	return both, ok
}

// common is what two lists share; an empty list means everything.
func common[T comparable](a, b []T) ([]T, bool) {
	if len(a) == 0 {
		return slices.Clone(b), true
	}
	if len(b) == 0 {
		return slices.Clone(a), true
	}

	var both []T
	for _, x := range a {
		if slices.Contains(b, x) {
			both = append(both, x)
		}
	}

	return both, len(both) > 0
}

// hosts intersects which hosts two grants reach. The narrower scope is the one that both have: assigned hosts within the
// networks that are listed, or listed hosts.
func hosts(a, b, both *gozzard.Grant) (gozzard.HostScope, bool) {
	x, y := a.Scope(), b.Scope()
	switch {
	case x == "" || y == "":
		return "", a.Role == gozzard.RoleEnroller || b.Role == gozzard.RoleEnroller
	case x == gozzard.HostsAssigned || y == gozzard.HostsAssigned:
		return gozzard.HostsAssigned, true
	case len(both.Clouds)+len(both.Nets) > 0:
		return gozzard.HostsListed, true
	}
	return gozzard.HostsAny, x == gozzard.HostsAny && y == gozzard.HostsAny
}

// accounts intersects the accounts of two grants.
func accounts(a, b *gozzard.Grant) []string {
	if a.EveryAccount() {
		return slices.Clone(b.Accounts)
	}
	if b.EveryAccount() {
		return slices.Clone(a.Accounts)
	}

	var both []string
	for _, pair := range [][2]*gozzard.Grant{{a, b}, {b, a}} {
		for _, x := range pair[0].Accounts {
			fits := slices.Contains(pair[1].Accounts, x) ||
				x != gozzard.RootAccount && slices.Contains(pair[1].Accounts, gozzard.AnyAccount)
			if fits && !slices.Contains(both, x) {
				both = append(both, x)
			}
		}
	}
	return both
}

// nets intersects networks: of two networks, one contains the other or they share nothing.
func nets(a, b []netip.Prefix) ([]netip.Prefix, bool) {
	if len(a) == 0 || len(b) == 0 {
		return common(a, b)
	}

	var both []netip.Prefix
	for _, x := range a {
		for _, y := range b {
			if !x.Overlaps(y) {
				continue
			}
			narrow := x
			if y.Bits() > x.Bits() {
				narrow = y
			}
			if !slices.Contains(both, narrow) {
				both = append(both, narrow)
			}
		}
	}

	return both, len(both) > 0
}

// spaces intersects businesses and namespaces; in each grant one of them has to match.
func spaces(a, b *gozzard.Grant) (businesses []int, namespaces []string, ok bool) {
	if len(a.Businesses)+len(a.Namespaces) == 0 {
		return slices.Clone(b.Businesses), slices.Clone(b.Namespaces), true
	}
	if len(b.Businesses)+len(b.Namespaces) == 0 {
		return slices.Clone(a.Businesses), slices.Clone(a.Namespaces), true
	}

	for _, pair := range [][2]*gozzard.Grant{{a, b}, {b, a}} {
		for _, biz := range pair[0].Businesses {
			if coversBusiness(pair[1], biz) && !slices.Contains(businesses, biz) {
				businesses = append(businesses, biz)
			}
		}
		for _, p := range pair[0].Namespaces {
			if coversPattern(pair[1], p) && !slices.Contains(namespaces, p) {
				namespaces = append(namespaces, p)
			}
		}
	}

	return businesses, namespaces, len(businesses)+len(namespaces) > 0
}

// coversBusiness reports whether every namespace of a business matches a grant.
func coversBusiness(g *gozzard.Grant, biz int) bool {
	return slices.Contains(g.Businesses, biz) || !slices.ContainsFunc(gozzard.BusinessNamespaces(biz),
		func(namespace string) bool { return !coversPattern(g, namespace) })
}

// coversPattern reports whether everything that matches the pattern matches the grant. It may miss some such patterns.
func coversPattern(g *gozzard.Grant, p string) bool {
	if !strings.ContainsAny(p, "*?") {
		if biz, ok := gozzard.BusinessOf(p); ok && slices.Contains(g.Businesses, biz) {
			return true
		}
		return slices.ContainsFunc(g.Namespaces, func(q string) bool { return gozzard.MatchGlob(q, p) })
	}
	return slices.ContainsFunc(g.Namespaces, func(q string) bool {
		head, open := strings.CutSuffix(q, "*")
		return p == q || open && !strings.ContainsAny(head, "*?") && strings.HasPrefix(p, head)
	})
}
