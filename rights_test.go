package gozzard_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/gozzard/gozzard"
)

func hostAddrs(ips ...string) (list []gozzard.HostAddr) {
	for _, ip := range ips {
		list = append(list, gozzard.HostAddr{Cloud: 0, IP: netip.MustParseAddr(ip)})
	}
	return list
}

func TestRights(t *testing.T) {
	net := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	in, out := hostAddrs("10.2.0.1", "10.1.0.1"), hostAddrs("10.2.0.1")
	operator := gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleOperator, Namespaces: []string{"a-*"},
		Businesses: []int{2}, Nets: net,
		Actions: []gozzard.Action{gozzard.ActionStart}}}}
	viewer := gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleViewer}}}
	enroller := gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleEnroller, Clouds: []int{0}}}}
	admin := gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleAdmin, Businesses: []int{2}}}}
	var none *gozzard.Rights
	for name, c := range map[string]struct{ got, want bool }{
		"sees its own":              {operator.Sees("a-1", in), true},
		"by business":               {operator.Sees("JOB_BIZ_2", in), true},
		"another business":          {operator.Sees("GSEKIT_BIZ_22", in), false},
		"a number with a zero":      {operator.Sees("GSEKIT_BIZ_02", in), false},
		"another namespace":         {operator.Sees("b-1", in), false},
		"another host":              {operator.Sees("a-1", out), false},
		"a host without addresses":  {operator.Sees("a-1", nil), false},
		"may what is listed":        {operator.May(gozzard.ActionStart, "a-1", in), true},
		"may not what is not":       {operator.May(gozzard.ActionStop, "a-1", in), false},
		"asking is seeing":          {operator.May(gozzard.ActionQuery, "a-1", in), true},
		"not on another host":       {operator.May(gozzard.ActionStart, "a-1", out), false},
		"some of a space":           {operator.MaySpace(gozzard.ActionStart, "a-1"), true},
		"not the whole of it":       {operator.SeesSpace("a-1"), false},
		"no business on some hosts": {operator.MayBusiness(2), false},
		"no host as a whole":        {operator.MayHost(in), false},
		"a viewer sees all":         {viewer.SeesAll() && viewer.SeesSpace("x") && viewer.Sees("x", nil), true},
		"a viewer may nothing": {viewer.All() || viewer.May(gozzard.ActionStart, "x", in) ||
			viewer.MayHost(in) || viewer.MayBusiness(2), false},
		"an enroller sees hosts": {enroller.SeesHost(in), true},
		"an enroller, no process": {enroller.Sees("x", in) || enroller.SeesAll() || enroller.SeesBusiness(2) ||
			enroller.May(gozzard.ActionQuery, "x", in), false},
		"an admin of a business": {admin.MayBusiness(2) && admin.SeesSpace("GSEKIT_BIZ_2") &&
			!admin.MayBusiness(3) && !admin.All() && !admin.SeesAll(), true},
		"everything": {gozzard.Everything().All() && gozzard.Everything().MayHost(nil), true},
		"nothing": {none.All() || none.SeesAll() || none.Sees("x", in) || none.SeesHost(in) ||
			none.MaySpace(gozzard.ActionQuery, "x") || none.SeesSpace("x"), false},
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
	nets := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("fd00::/8")}
	spaces, texts := []string{"a", "b?", "JOB_*"}, []string{"a", "b1", "c", "JOB_BIZ_1", "GSEKIT_BIZ_2"}
	ips := []string{"10.1.2.3", "10.2.2.3", "192.0.2.1", "fd00::1"}
	saw := 0
	for range 20_000 {
		r := &gozzard.Rights{}
		for range []int{0, 1, 2, 70, 130}[rng.IntN(5)] {
			r.Grants = append(r.Grants, gozzard.Grant{
				Role: roles[rng.IntN(4)], Businesses: []int{1 + rng.IntN(3)}[:rng.IntN(2)],
				Namespaces: spaces[:rng.IntN(3)],
				Clouds:     []int{rng.IntN(3)}[:rng.IntN(2)], Nets: nets[rng.IntN(3):][:rng.IntN(2)],
			})
		}
		namespace := texts[rng.IntN(len(texts))]
		var addrs []gozzard.HostAddr
		for range rng.IntN(3) {
			addrs = append(addrs, gozzard.HostAddr{Cloud: rng.IntN(3),
				IP: netip.MustParseAddr(ips[rng.IntN(len(ips))])})
		}
		sees := r.Sees(namespace, addrs)
		if got := r.MarkSpace(namespace).Meet(r.MarkHost(addrs)); got != sees {
			t.Fatalf("marks say %v, the rights %v: %+v", got, sees, r)
		}
		if r.SeesSpace(namespace) && !sees || r.SeesAll() && !r.SeesSpace(namespace) || r.All() && !r.SeesAll() ||
			sees && !r.SeesHost(addrs) {
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

func TestGrantInJSON(t *testing.T) {
	var g gozzard.Grant
	if err := json.Unmarshal([]byte(`{"role":"operator","businesses":[2],"nets":["10.0.0.0/8"],"namespaces":["a*"]}`),
		&g); err != nil {
		t.Fatal(err)
	}
	r := gozzard.Rights{Grants: []gozzard.Grant{g}}
	if !r.Sees("abc", hostAddrs("10.9.9.9")) || r.Sees("abc", hostAddrs("11.9.9.9")) {
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
