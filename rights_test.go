package gozzard_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/gozzard/gozzard"
)

func hostAt(ips ...string) (h gozzard.HostRef) {
	for _, ip := range ips {
		h.Addrs = append(h.Addrs, gozzard.HostAddr{Cloud: 0, IP: netip.MustParseAddr(ip)})
	}
	return h
}

// assignedTo is a func for Rights.Assigned: these hosts are assigned to a business, by an address or by their agent.
func assignedTo(biz int, agent gozzard.AgentID, ip string) func(int, gozzard.HostRef) bool {
	return func(b int, h gozzard.HostRef) bool {
		return b == biz && (agent != "" && h.Agent == agent || ip != "" && slices.ContainsFunc(h.Addrs,
			func(a gozzard.HostAddr) bool { return a.IP == netip.MustParseAddr(ip) }))
	}
}

func TestRights(t *testing.T) {
	net := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	in, out, nowhere := hostAt("10.2.0.1", "10.1.0.1"), hostAt("10.2.0.1"), gozzard.HostRef{}
	rights := func(g gozzard.Grant) *gozzard.Rights {
		return &gozzard.Rights{Grants: []gozzard.Grant{g}, Assigned: assignedTo(2, "", "10.1.0.1")}
	}
	operator := rights(gozzard.Grant{Role: gozzard.RoleOperator, Namespaces: []string{"a-*"}, Nets: net,
		Actions: []gozzard.Action{gozzard.ActionStart}, Accounts: []string{"shop"}})
	business := rights(gozzard.Grant{Role: gozzard.RoleOperator, Businesses: []int{2, 22}, Accounts: []string{"*"}})
	narrow := rights(gozzard.Grant{Role: gozzard.RoleOperator, Businesses: []int{2}, Accounts: []string{"root"},
		Nets: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16")}})
	unsaid := rights(gozzard.Grant{Role: gozzard.RoleAdmin, Namespaces: []string{"a-*"}, Accounts: []string{"*", "root"}})
	any := rights(gozzard.Grant{Role: gozzard.RoleAdmin, Namespaces: []string{"a-*"}, Hosts: gozzard.HostsAny,
		Accounts: []string{"*"}})
	viewer := rights(gozzard.Grant{Role: gozzard.RoleViewer})
	enroller := rights(gozzard.Grant{Role: gozzard.RoleEnroller, Clouds: []int{0}})
	admin := rights(gozzard.Grant{Role: gozzard.RoleAdmin, Businesses: []int{2}, Accounts: []string{"shop"}})
	listed := rights(gozzard.Grant{Role: gozzard.RoleAdmin, Nets: net, Accounts: []string{"*", "root"}})
	var none *gozzard.Rights
	const start, stop, query = gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionQuery
	for name, c := range map[string]struct{ got, want bool }{
		"exclude with one address outside": {listed.MayExclude(in), false},
		"exclude all inside":               {listed.MayExclude(hostAt("10.1.0.1", "10.1.9.9")), true},
		"exclude what has no address":      {listed.MayExclude(nowhere), false},
		"exclude by namespaces":            {any.MayExclude(in) || unsaid.MayExclude(in), false},
		"exclude as another role":          {operator.MayExclude(in) || viewer.MayExclude(in) || enroller.MayExclude(in), false},
		"exclude by business":              {admin.MayExclude(in) || business.MayExclude(in) || none.MayExclude(in), false},
		"exclude as an admin of all":       {gozzard.Everything().MayExclude(nowhere), true},
		"sees its own":                     {operator.Sees("a-1", in), true},
		"another namespace":                {operator.Sees("b-1", in), false},
		"another host":                     {operator.Sees("a-1", out), false},
		"a host without addresses":         {operator.Sees("a-1", nowhere), false},
		"may what is listed":               {operator.May(start, "a-1", in, "shop"), true},
		"may not what is not":              {operator.May(stop, "a-1", in, "shop"), false},
		"not as another account":           {operator.May(start, "a-1", in, "db"), false},
		"not as root":                      {operator.May(start, "a-1", in, "root") || operator.May(start, "a-1", in, ""), false},
		"asking is seeing":                 {operator.May(query, "a-1", in, "root"), true},
		"not on another host":              {operator.May(start, "a-1", out, "shop"), false},
		"to configure is not an action of processes": {business.MayBusinessHosts(gozzard.ActionConfigure, 2) ||
			operator.MaySpace(gozzard.ActionConfigure, "a-1") || viewer.MaySpace(gozzard.ActionConfigure, "a-1"), false},
		"to configure as an admin": {admin.MayBusinessHosts(gozzard.ActionConfigure, 2), true},
		"to configure by a grant that says so": {rights(gozzard.Grant{Role: gozzard.RoleOperator, Businesses: []int{2},
			Actions: gozzard.Actions{gozzard.ActionConfigure}}).MayBusinessHosts(gozzard.ActionConfigure, 2), true},
		"some of a space":           {operator.MaySpace(start, "a-1"), true},
		"not the whole of it":       {operator.SeesSpace("a-1"), false},
		"no business on some hosts": {operator.MayBusiness(2) || narrow.MayBusiness(2), false},
		"no host as a whole":        {operator.MayHost(in) || any.MayHost(in), false},

		"by business": {business.Sees("JOB_BIZ_2", in) && business.Sees("GSEKIT_BIZ_2", in) &&
			business.May(start, "JOB_BIZ_2", in, "db") && business.SeesHost(in), true},
		"by business, not assigned": {business.Sees("JOB_BIZ_2", out) || business.SeesHost(out) ||
			business.May(start, "JOB_BIZ_2", out, "db") || business.MayOn(query, "JOB_BIZ_2", out), false},
		"assigned to another business": {business.Sees("GSEKIT_BIZ_22", in), false},
		"a number with a zero":         {business.Sees("GSEKIT_BIZ_02", in), false},
		"star is not root": {business.May(start, "JOB_BIZ_2", in, "root") || business.May(start, "JOB_BIZ_2", in, "0") ||
			business.May(start, "JOB_BIZ_2", in, ""), false},
		"assigned and listed": {narrow.Sees("JOB_BIZ_2", in) || narrow.SeesHost(in), false},
		"its hosts": {business.SeesBusinessHosts(2) && business.MayBusinessHosts(start, 2) &&
			!business.SeesBusinessHosts(3) && !narrow.SeesBusinessHosts(2) && !business.SeesSpace("JOB_BIZ_2"), true},
		"hosts that are not said": {unsaid.Sees("a-1", in) || unsaid.SeesHost(in) || unsaid.SeesSpace("a-1"), false},
		"hosts in words":          {any.Sees("a-1", nowhere) && any.SeesSpace("a-1") && any.SeesHost(out), true},

		"a viewer sees all": {viewer.SeesAll() && viewer.SeesSpace("x") && viewer.Sees("x", nowhere), true},
		"a viewer may nothing": {viewer.All() || viewer.May(start, "x", in, "shop") ||
			viewer.MayHost(in) || viewer.MayBusiness(2), false},
		"an enroller sees hosts": {enroller.SeesHost(in), true},
		"an enroller, no process": {enroller.Sees("x", in) || enroller.SeesAll() || enroller.SeesBusiness(2) ||
			enroller.May(query, "x", in, "shop"), false},

		"an admin of a business": {admin.MayBusiness(2) && !admin.MayBusiness(3) && !admin.All() && !admin.SeesAll(),
			true},
		"pulls no host in": {admin.MayAssign(2, in) || admin.MayAssign(2, out) || business.MayAssign(2, in), false},
		"an admin of hosts does": {listed.MayAssign(2, in) && !listed.MayAssign(2, out) && listed.MayHost(in) &&
			!listed.MayHost(out), true},
		"accounts of a business": {admin.MayRunAs(2, "shop") && !admin.MayRunAs(2, "root") && !admin.MayRunAs(2, "") &&
			!admin.MayRunAs(3, "shop"), true},

		"everything": {gozzard.Everything().All() && gozzard.Everything().MayHost(nowhere) &&
			gozzard.Everything().May(start, "x", nowhere, "root") && gozzard.Everything().MayAssign(2, nowhere), true},
		"nothing": {none.All() || none.SeesAll() || none.Sees("x", in) || none.SeesHost(in) ||
			none.MaySpace(query, "x") || none.SeesSpace("x") || none.May(query, "x", in, "shop"), false},
		"no marks": {none.MarkSpace("x").Meet(none.MarkHost(in)), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v", name, c.got)
		}
	}
}

// TestMarksAgree: what is decided once for a namespace and once for a host is what is decided for both together,
// with any number of grants.
func TestMarksAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	roles := []gozzard.Role{gozzard.RoleViewer, gozzard.RoleOperator, gozzard.RoleAdmin, gozzard.RoleEnroller}
	scopes := []gozzard.HostScope{"", gozzard.HostsAny, gozzard.HostsAssigned, gozzard.HostsListed}
	nets := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("fd00::/8")}
	spaces, texts := []string{"a", "b?", "JOB_*"}, []string{"a", "b1", "c", "JOB_BIZ_1", "GSEKIT_BIZ_2"}
	ips := []string{"10.1.2.3", "10.2.2.3", "192.0.2.1", "fd00::1"}
	saw := 0
	for range 20_000 {
		r := &gozzard.Rights{Assigned: assignedTo(1+rng.IntN(2), "x", ips[rng.IntN(len(ips))])}
		for range []int{0, 1, 2, 70, 130}[rng.IntN(5)] {
			r.Grants = append(r.Grants, gozzard.Grant{
				Role: roles[rng.IntN(4)], Businesses: []int{1 + rng.IntN(3)}[:rng.IntN(2)],
				Namespaces: spaces[:rng.IntN(3)], Hosts: scopes[rng.IntN(len(scopes))],
				Clouds: []int{rng.IntN(3)}[:rng.IntN(2)], Nets: nets[rng.IntN(3):][:rng.IntN(2)],
			})
		}
		namespace := texts[rng.IntN(len(texts))]
		h := gozzard.HostRef{Agent: []gozzard.AgentID{"", "x", "y"}[rng.IntN(3)]}
		for range rng.IntN(3) {
			h.Addrs = append(h.Addrs, gozzard.HostAddr{Cloud: rng.IntN(3),
				IP: netip.MustParseAddr(ips[rng.IntN(len(ips))])})
		}
		sees := r.Sees(namespace, h)
		if r.MarkSpace(namespace).Meet(r.MarkHost(h)) != sees || r.MarkHost(h).Meet(r.MarkSpace(namespace)) != sees {
			t.Fatalf("marks do not say %v as the rights: %+v", sees, r)
		}
		if r.SeesSpace(namespace) && !sees || r.SeesAll() && !r.SeesSpace(namespace) || r.All() && !r.SeesAll() {
			t.Fatalf("what is seen as a whole is not seen in part: %+v", r)
		}
		if sees {
			saw++
		}
	}

	if saw < 1000 || saw > 19_000 {
		t.Fatalf("%d of 20,000 were seen", saw)
	}
}

// TestExplainAgrees: a grant is said to allow an action exactly when it does, and else there is a reason.
func TestExplainAgrees(t *testing.T) {
	r := &gozzard.Rights{Assigned: assignedTo(2, "", "10.1.0.1"), Grants: []gozzard.Grant{
		{Role: gozzard.RoleViewer},
		{Role: gozzard.RoleOperator, Businesses: []int{2}, Accounts: []string{"shop"}},
		{Role: gozzard.RoleOperator, Namespaces: []string{"a"}, Nets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
			Actions: gozzard.Actions{gozzard.ActionStart}, Accounts: []string{"root"}},
		{Role: gozzard.RoleAdmin, Namespaces: []string{"b"}},
	}}
	allowed := 0
	for _, a := range []gozzard.Action{gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionQuery} {
		for _, namespace := range []string{"a", "b", "JOB_BIZ_2", "JOB_BIZ_3"} {
			for _, h := range []gozzard.HostRef{hostAt("10.1.0.1"), hostAt("10.1.0.2"), hostAt("10.2.0.1"), {}} {
				for _, account := range []string{"shop", "root", "0", "db"} {
					some := false
					for i, v := range r.Explain(gozzard.GrantQuestion{Action: a, Namespace: namespace, Host: h, Account: account}) {
						one := &gozzard.Rights{Grants: r.Grants[i : i+1], Assigned: r.Assigned}
						if may := one.May(a, namespace, h, account); may != v.Allows || may != (v.Why == "") {
							t.Fatalf("grant %d, %s %s %v as %q: %+v, but %v", i, a, namespace, h, account, v, may)
						}
						some = some || v.Allows
					}
					if some != r.May(a, namespace, h, account) {
						t.Fatalf("%s %s %v as %q: %v", a, namespace, h, account, some)
					}
					if some {
						allowed++
					}
				}
			}
		}
	}
	if allowed == 0 {
		t.Fatal("nothing was allowed")
	}

	// Without a namespace and an account, what a grant has counts.
	for ip, want := range map[string][]bool{"10.1.0.1": {false, true, true, false}, "10.1.0.2": {false, false, true, false},
		"10.2.0.1": {false, false, false, false}} {
		for i, v := range r.Explain(gozzard.GrantQuestion{Action: gozzard.ActionStart, Host: hostAt(ip)}) {
			if v.Allows != want[i] {
				t.Errorf("grant %d on %s: %+v", i, ip, v)
			}
		}
	}
}

// TestCanonicalAccount: whatever may be root on a host is root for grants.
func TestCanonicalAccount(t *testing.T) {
	for _, name := range []string{"", " ", "root", "Root", " root ", "0", "00", "+0", "-0", "0x0", "0b0", "4294967296",
		"SYSTEM", `NT AUTHORITY\SYSTEM`, "Administrator", `.\Administrator`, "administrator@corp.example", "LocalSystem",
		"S-1-5-18", "\t0"} {
		if got := gozzard.CanonicalAccount(name); got != gozzard.RootAccount {
			t.Errorf("%q is %q", name, got)
		}
	}
	for _, name := range []string{"shop", "www-data", "1000", "rooty", "admin", "Shop", "*"} {
		if got := gozzard.CanonicalAccount(name); got != name {
			t.Errorf("%q is %q", name, got)
		}
	}
}

func TestGrantInJSON(t *testing.T) {
	var g gozzard.Grant
	if err := json.Unmarshal([]byte(`{"role":"operator","nets":["10.0.0.0/8"],"namespaces":["a*"]}`),
		&g); err != nil {
		t.Fatal(err)
	}
	r := gozzard.Rights{Grants: []gozzard.Grant{g}}
	if !r.Sees("abc", hostAt("10.9.9.9")) || r.Sees("abc", hostAt("11.9.9.9")) ||
		r.May(gozzard.ActionStart, "abc", hostAt("10.9.9.9"), "shop") {
		t.Fatalf("%+v", g)
	}
}

func TestMatchGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"?", "", false}, {"?", "网", true},
		{"??", "网", false}, {"a*c", "abbc", true},
		{"a*c", "abcd", false}, {"*网*", "a网关b", true}, {"a?c", "a关c", true}, {"**a", "ba", true},
		{"*a*b*", "xaybz", true}, {"a", "A", false}, {"[a]", "a", false},
	} {
		if got := gozzard.MatchGlob(c.pattern, c.text); got != c.want {
			t.Errorf("%q on %q: %v", c.pattern, c.text, got)
		}
	}
}

// Grants are recorded as JSON: their actions as words, which stay what they are when a program has more of them.
func TestActionsAreKeptAsWords(t *testing.T) {
	g := gozzard.Grant{Role: gozzard.RoleOperator, Actions: gozzard.Actions{gozzard.ActionStart, gozzard.ActionKill}}
	b, err := json.Marshal(g)
	if want := `{"role":"operator","actions":["start","kill"]}`; err != nil || string(b) != want {
		t.Fatalf("%s, %v", b, err)
	}
	var again gozzard.Grant
	if err := json.Unmarshal(b, &again); err != nil || !slices.Equal(again.Actions, g.Actions) {
		t.Errorf("%+v, %v", again, err)
	}
	if err := json.Unmarshal([]byte(`{"role":"operator","actions":["explode"]}`), &again); err == nil {
		t.Errorf("%+v", again)
	}
}
