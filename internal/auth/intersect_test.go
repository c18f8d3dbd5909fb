package auth_test

import (
	"encoding/json"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

func jsonText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}

func grants() *rapid.Generator[[]gozzard.Grant] {
	few := func(n int) func(*rapid.T, string) int {
		return func(t *rapid.T, name string) int { return rapid.IntRange(0, n).Draw(t, name) }
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) gozzard.Grant {
		g := gozzard.Grant{Role: rapid.SampledFrom([]gozzard.Role{gozzard.RoleViewer, gozzard.RoleOperator,
			gozzard.RoleAdmin, gozzard.RoleEnroller}).Draw(t, "role")}
		g.Businesses = rapid.SliceOfN(rapid.IntRange(1, 3), 0, few(2)(t, "b")).Draw(t, "businesses")
		g.Namespaces = rapid.SliceOfN(rapid.SampledFrom([]string{"*", "a*", "ab*", "ab", "?b", "GSEKIT_BIZ_*",
			"JOB_BIZ_2", "GSEKIT_BIZ_2", "*b"}), 0, few(2)(t, "n")).Draw(t, "namespaces")
		g.Clouds = rapid.SliceOfN(rapid.IntRange(0, 2), 0, few(2)(t, "c")).Draw(t, "clouds")
		for _, s := range rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24",
			"192.168.0.0/16"}), 0, few(2)(t, "p")).Draw(t, "nets") {
			g.Nets = append(g.Nets, netip.MustParsePrefix(s))
		}

		if g.Role == gozzard.RoleOperator {
			g.Actions = rapid.SliceOfN(rapid.SampledFrom([]gozzard.Action{gozzard.ActionStart, gozzard.ActionStop,
				gozzard.ActionConfigure}), 0, few(2)(t, "a")).Draw(t, "actions")
		}

		// As in the record: a grant has businesses or namespaces, and says its hosts and accounts.
		if len(g.Businesses) > 0 {
			g.Namespaces = nil
		}
		if g.Hosts = g.Scope(); g.Hosts == "" {
			g.Hosts = gozzard.HostsAny
		}
		if g.Role == gozzard.RoleOperator || g.Role == gozzard.RoleAdmin && !g.EveryAccount() {
			g.Accounts = rapid.SliceOfN(rapid.SampledFrom([]string{"shop", "db", "*", "root"}), 0, 2).Draw(t, "accounts")
		}

		return g
	}), 0, 3)
}

// TestIntersectGivesNoMore: both sides have every right that their intersection has.
func TestIntersectGivesNoMore(t *testing.T) {
	spaces := []string{"a", "ab", "abc", "xb", "GSEKIT_BIZ_1", "GSEKIT_BIZ_2", "JOB_BIZ_2", "JOB_BIZ_3"}
	hosts := []gozzard.HostRef{{}, {Addrs: []gozzard.HostAddr{host(0, "10.1.2.3")}},
		{Addrs: []gozzard.HostAddr{host(1, "10.200.0.1")}}, {Agent: "two"},
		{Agent: "two", Addrs: []gozzard.HostAddr{host(2, "192.168.1.1"), host(0, "10.1.0.1")}}}
	assigned := func(biz int, h gozzard.HostRef) bool {
		return biz == 2 && h.Agent == "two" || biz == 1 && len(h.Addrs) == 1
	}
	rapid.Check(t, func(t *rapid.T) {
		a := &gozzard.Rights{Grants: grants().Draw(t, "a"), Assigned: assigned}
		b := &gozzard.Rights{Grants: grants().Draw(t, "b"), Assigned: assigned}
		both := &gozzard.Rights{Grants: auth.Intersect(a.Grants, b.Grants), Assigned: assigned}
		no := func(given, x, y bool, what string) {
			if given && !(x && y) {
				t.Fatalf("%s is given by the intersection %+v alone", what, both.Grants)
			}
		}

		no(both.All(), a.All(), b.All(), "everything")
		no(both.SeesAll(), a.SeesAll(), b.SeesAll(), "sight of everything")

		for _, role := range []gozzard.Role{gozzard.RoleViewer, gozzard.RoleOperator, gozzard.RoleAdmin,
			gozzard.RoleEnroller} {
			if role != gozzard.RoleViewer { // an operator is a viewer, too, and has no grant of that name
				no(both.Has(role), a.Has(role), b.Has(role), "the role "+string(role))
			}
		}

		for _, h := range hosts {
			no(both.SeesHost(h), a.SeesHost(h), b.SeesHost(h), "a host")
			for _, ns := range spaces {
				no(both.Sees(ns, h), a.Sees(ns, h), b.Sees(ns, h), "sight of "+ns)
				for _, act := range []gozzard.Action{gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionQuery,
					gozzard.ActionConfigure} {
					no(both.MayOn(act, ns, h), a.MayOn(act, ns, h), b.MayOn(act, ns, h), act.String()+" of "+ns)
					for _, acc := range []string{"shop", "db", "root", ""} {
						no(both.May(act, ns, h, acc), a.May(act, ns, h, acc), b.May(act, ns, h, acc),
							act.String()+" of "+ns+" as "+acc)
					}
				}
			}
		}

		for biz := 1; biz <= 3; biz++ {
			no(both.MayBusiness(biz), a.MayBusiness(biz), b.MayBusiness(biz), "a business")
			no(both.SeesBusinessHosts(biz), a.SeesBusinessHosts(biz), b.SeesBusinessHosts(biz), "its hosts")
			no(both.MayRunAs(biz, "db"), a.MayRunAs(biz, "db"), b.MayRunAs(biz, "db"), "an account")
			for _, h := range hosts {
				no(both.MayAssign(biz, h), a.MayAssign(biz, h), b.MayAssign(biz, h), "a host for a business")
			}
		}
	})
}

func host(cloud int, ip string) gozzard.HostAddr {
	return gozzard.HostAddr{Cloud: cloud, IP: netip.MustParseAddr(ip)}
}

// TestIntersectKeepsWhatIsPlain: in simple cases an intersection has every right that both sides have.
func TestIntersectKeepsWhatIsPlain(t *testing.T) {
	net := netip.MustParsePrefix
	const assigned, any = gozzard.HostsAssigned, gozzard.HostsAny
	operator := gozzard.Grant{Role: gozzard.RoleOperator, Businesses: []int{2, 3}, Hosts: assigned,
		Nets: []netip.Prefix{net("10.0.0.0/8")}, Accounts: []string{"shop", "db"}}
	for name, c := range map[string]struct{ a, b, want gozzard.Grant }{
		"with everything": {operator, gozzard.Grant{Role: gozzard.RoleAdmin, Hosts: any}, operator},
		"narrower": {operator, gozzard.Grant{Role: gozzard.RoleAdmin, Businesses: []int{3, 4},
			Hosts: assigned, Nets: []netip.Prefix{net("10.1.0.0/16")}, Accounts: []string{"db", "root"}},
			gozzard.Grant{Role: gozzard.RoleOperator, Businesses: []int{3}, Hosts: assigned,
				Nets: []netip.Prefix{net("10.1.0.0/16")}, Accounts: []string{"db"}}},
		"business in namespaces": {gozzard.Grant{Role: gozzard.RoleViewer, Businesses: []int{2}, Hosts: assigned},
			gozzard.Grant{Role: gozzard.RoleViewer, Namespaces: []string{"*"}, Hosts: any},
			gozzard.Grant{Role: gozzard.RoleViewer, Businesses: []int{2}, Hosts: assigned}},
		"namespace in pattern": {gozzard.Grant{Role: gozzard.RoleViewer, Namespaces: []string{"shop1"}, Hosts: any},
			gozzard.Grant{Role: gozzard.RoleViewer, Namespaces: []string{"shop*"}, Hosts: any},
			gozzard.Grant{Role: gozzard.RoleViewer, Namespaces: []string{"shop1"}, Hosts: any}},
		"every account but root": {gozzard.Grant{Role: gozzard.RoleOperator, Hosts: any, Accounts: []string{"*"}},
			gozzard.Grant{Role: gozzard.RoleOperator, Hosts: any, Accounts: []string{"root", "db"}},
			gozzard.Grant{Role: gozzard.RoleOperator, Hosts: any, Accounts: []string{"db"}}},
	} {
		got := auth.Intersect([]gozzard.Grant{c.a}, []gozzard.Grant{c.b})
		if jsonText(t, got) != jsonText(t, []gozzard.Grant{c.want}) {
			t.Errorf("%s: %s", name, jsonText(t, got))
		}
	}
}
