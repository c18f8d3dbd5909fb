package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// TestVisibility compares pages and counts of callers that see a part with the rows of everything that they may see.
func TestVisibility(t *testing.T) {
	x := fleet.New()
	rng := rand.New(rand.NewPCG(7, 7))
	addrs := map[gozzard.AgentID][]gozzard.HostAddr{}
	for h := range 40 {
		agent := gozzard.AgentID(fmt.Sprintf("h%d", h))
		addrs[agent] = []gozzard.HostAddr{{Cloud: h % 3, IP: netip.AddrFrom4([4]byte{10, byte(h % 4), 0, byte(h)})}}
		if h%10 > 0 { // of some hosts only rows are known
			x.PutHost(fleet.Host{Info: gozzard.HostInfo{Agent: agent, Addrs: addrs[agent]}})
		} else {
			addrs[agent] = nil
		}
		for p := range 200 {
			x.Seed(agent, gozzard.Status{Key: gozzard.Key{Namespace: fmt.Sprintf("ns%d", rng.IntN(6)),
				Name: fmt.Sprintf("p%d", p)}, PID: -1, Labels: map[string]string{"third": strconv.Itoa(p % 3)}})
		}
	}

	net := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	for name, r := range map[string]*gozzard.Rights{
		"no rights": nil,
		"namespaces": {Grants: []gozzard.Grant{{Role: gozzard.RoleViewer,
			Namespaces: []string{"ns1", "ns[2]", "ns2"}, Hosts: gozzard.HostsAny}}},
		"hosts that are not said": {Grants: []gozzard.Grant{{Role: gozzard.RoleViewer, Namespaces: []string{"ns1"}}}},
		"hosts":                   {Grants: []gozzard.Grant{{Role: gozzard.RoleViewer, Nets: net}}},
		"both": {Grants: []gozzard.Grant{{Role: gozzard.RoleOperator, Namespaces: []string{"ns1"}, Nets: net},
			{Role: gozzard.RoleViewer, Namespaces: []string{"ns3"}, Hosts: gozzard.HostsAny}}},
		"enroller": {Grants: []gozzard.Grant{{Role: gozzard.RoleEnroller}}},
	} {
		for _, namespace := range []string{"", "ns1", "ns2", "ns3", "none"} {
			_, everything := x.Page(all, namespace, 0, 1<<20)
			var want []fleet.Row
			for _, row := range everything {
				if r.Sees(row.Status.Namespace, gozzard.HostRef{Agent: row.Agent, Addrs: addrs[row.Agent]}) {
					want = append(want, row)
				}
			}
			start, limit := rng.IntN(50), rng.IntN(60)
			part := want[min(start, len(want)):]
			part = part[:min(limit, len(part))]
			total, rows := x.Page(r, namespace, start, limit)
			if total != len(want) || !cmp.Equal(names(rows), names(part)) {
				t.Errorf("%s: page of %q has %d of %d, want %d of %d", name, namespace, len(rows), total, len(part),
					len(want))
			}
			f := fleet.Filter{Namespaces: []string{namespace + "*"}}
			if namespace != "none" && namespace != "" {
				f.Namespaces = []string{namespace}
			}
			if total, rows = x.Find(r, f, start, limit); total != len(want) || !cmp.Equal(names(rows), names(part)) {
				t.Errorf("%s: find of %q has %d of %d, want %d of %d", name, namespace, len(rows), total, len(part),
					len(want))
			}
		}
		labelled := fleet.Filter{Labels: []gozzard.LabelRule{{Key: "third", Value: "1", Kind: gozzard.LabelEqual}}}
		visible, seen := 0, 0
		_, everything := x.Find(all, labelled, 0, 1<<20)
		for _, row := range everything {
			if r.Sees(row.Status.Namespace, gozzard.HostRef{Agent: row.Agent, Addrs: addrs[row.Agent]}) {
				visible++
			}
		}
		if seen, _ = x.Find(r, labelled, 0, 10); seen != visible {
			t.Errorf("%s: %d processes with the label are counted, want %d", name, seen, visible)
		}
		for _, h := range x.Hosts(r) {
			if !r.SeesHost(h.Info.Ref()) {
				t.Errorf("%s sees host %s", name, h.Info.Agent)
			}
		}
	}
}
