package fleet_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

func TestChanged(t *testing.T) {
	x := fleet.New()
	x.PutHost(hostAt("a1", addr(0, 1), addr(0, 2)))
	x.PutHost(hostAt("a2", addr(0, 3)))
	x.Apply("a1", []gozzard.Status{status("ns", "p")}, nil)

	if agents, addrs := x.Changed(); len(agents)+len(addrs) != 0 {
		t.Errorf("before the first question %v %v was noted", agents, addrs)
	}

	want := func(words string, agents []gozzard.AgentID, addrs ...gozzard.HostAddr) {
		t.Helper()
		gotAgents, gotAddrs := x.Changed()
		slices.Sort(gotAgents)
		slices.SortFunc(gotAddrs, compareAddrs)
		gotAddrs = slices.Compact(gotAddrs)
		if diff := gocmp.Diff(agents, gotAgents, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: agents (-want +got):\n%s", words, diff)
		}
		if diff := gocmp.Diff(addrs, gotAddrs, cmpopts.EquateEmpty(),
			cmpopts.EquateComparable(gozzard.HostAddr{})); diff != "" {
			t.Errorf("%s: addresses (-want +got):\n%s", words, diff)
		}
	}

	a1 := []gozzard.AgentID{"a1"}
	same := status("ns", "p")
	same.CPU, same.PID, same.ReportedAt = 50, 7, 99
	x.Apply("a1", []gozzard.Status{same}, nil)
	x.Touch("a2", time.Unix(5, 0))
	x.PutHost(hostAt("a1", addr(0, 1), addr(0, 2)))
	want("nothing that counts", nil)
	x.SetOnline("a1", false, time.Unix(5, 0))
	want("a host that is offline", a1, addr(0, 1), addr(0, 2))
	x.PutHost(hostAt("a1", addr(0, 1), addr(0, 2)))
	want("a host that is back", a1, addr(0, 1), addr(0, 2))
	same.Condition = gozzard.ConditionUnhealthy
	x.Apply("a1", []gozzard.Status{same}, nil)
	want("bad health", a1, addr(0, 1), addr(0, 2))
	same.Condition = gozzard.ConditionNone

	same.State = gozzard.StateStopped
	x.Apply("a1", []gozzard.Status{same}, nil)
	x.Apply("a1", []gozzard.Status{same}, nil)
	want("a state", a1, addr(0, 1), addr(0, 2))
	same.Hosted = false
	x.Apply("a1", []gozzard.Status{same}, nil)
	want("the hosting", a1, addr(0, 1), addr(0, 2))
	x.Apply("a1", []gozzard.Status{status("ns", "q")}, nil)
	want("a new process", a1, addr(0, 1), addr(0, 2))
	x.Apply("a1", nil, []gozzard.Key{{Namespace: "ns", Name: "q"}})
	want("one that went", a1, addr(0, 1), addr(0, 2))
	x.Full("a1", 1, 0, 1, nil)
	want("a full report without it", a1, addr(0, 1), addr(0, 2))
	x.Seed("a2", status("ns", "p"))
	want("a recorded one", []gozzard.AgentID{"a2"}, addr(0, 3))
	x.Full("a2", 1, 0, 1, nil)
	want("a recorded one that the host does not have", []gozzard.AgentID{"a2"}, addr(0, 3))
	x.Apply("a2", []gozzard.Status{status("ns", "p")}, nil)
	x.Full("a2", 2, 0, 1, nil)
	want("a recorded one that the host manages no more", []gozzard.AgentID{"a2"}, addr(0, 3))
	x.Rebind("a2", "a1")
	want("new hands", []gozzard.AgentID{"a1", "a2"}, addr(0, 1), addr(0, 2), addr(0, 3))
	x.Remove("a1", gozzard.Key{Namespace: "ns", Name: "p"})
	want("forgotten", a1, addr(0, 1), addr(0, 2))

	x.PutHost(hostAt("a1", addr(0, 1)))
	want("an address less", nil, addr(0, 2))
	x.PutHost(hostAt("a3", addr(0, 1)))
	want("an address of a new host", []gozzard.AgentID{"a3"}, addr(0, 1))
	x.PutHost(hostAt("a1", addr(0, 1)))
	want("an address taken back", nil, addr(0, 1))
	x.Apply("a3", []gozzard.Status{status("ns", "p")}, nil)
	want("a host without an address of its own", []gozzard.AgentID{"a3"})
}

func compareAddrs(a, b gozzard.HostAddr) int {
	return cmp.Or(cmp.Compare(a.Cloud, b.Cloud), a.IP.Compare(b.IP))
}

func TestLook(t *testing.T) {
	x := fleet.New()
	x.PutHost(hostAt("a1", addr(0, 1)))
	x.PutHost(hostAt("a2", addr(0, 2)))
	run, stop := status("ns", "run"), status("ns", "stop")
	stop.State, stop.Hosted, stop.PID = gozzard.StateStopped, false, -1
	x.Full("a1", 1, 0, 1, []gozzard.Status{run, stop})
	keys := []gozzard.Key{stop.Key, {Namespace: "ns", Name: "none"}, run.Key}
	look := func(agent gozzard.AgentID, a gozzard.HostAddr) (out []fleet.Brief) {
		x.Look(agent, a, keys, func(i int, b fleet.Brief) {
			if i != len(out) {
				t.Errorf("key %d is given as number %d", len(out), i)
			}
			out = append(out, b)
		})
		return out
	}

	all := []fleet.Brief{
		{State: gozzard.StateStopped, PID: -1, ReportedAt: 1700000000, Condition: gozzard.ConditionStopped},
		{PID: -1, Condition: gozzard.ConditionUnregistered},
		{State: gozzard.StateRunning, Hosted: true, PID: 42, ReportedAt: 1700000000, Condition: gozzard.ConditionRunning},
	}
	unknown := fleet.Brief{PID: -1, Stale: true, Condition: gozzard.ConditionUnknown}
	none := []fleet.Brief{unknown, unknown, unknown}
	for _, c := range []struct {
		words string
		agent gozzard.AgentID
		addr  gozzard.HostAddr
		want  []fleet.Brief
	}{
		{"by agent", "a1", gozzard.HostAddr{}, all},
		{"by address", "", addr(0, 1), all},
		{"by an agent that is not known here, and the address", "elsewhere", addr(0, 1), all},
		{"the agent wins", "a2", addr(0, 1), none}, // a2 has not reported
		{"no host", "", addr(0, 9), none},
	} {
		if diff := gocmp.Diff(c.want, look(c.agent, c.addr)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.words, diff)
		}
	}
}

// TestChangedMissesNothing updates a copy of the fleet for the hosts of Changed only, and compares it with a new copy.
func TestChangedMissesNothing(t *testing.T) {
	keys := []gozzard.Key{}
	for _, ns := range []string{"ns", "nx", "游戏"} {
		for _, n := range []string{"a", "ab", "abc", "网关", "网关服", "z.1"} {
			keys = append(keys, gozzard.Key{Namespace: ns, Name: n})
		}
	}

	type seen [18]struct {
		state  gozzard.RunState
		hosted bool
	}

	rapid.Check(t, func(t *rapid.T) {
		x := fleet.New()
		x.Changed()
		byAgent, byAddr := map[gozzard.AgentID]seen{}, map[gozzard.HostAddr]seen{}

		look := func(agent gozzard.AgentID, a gozzard.HostAddr) (out seen) {
			x.Look(agent, a, keys, func(i int, b fleet.Brief) { out[i].state, out[i].hosted = b.State, b.Hosted })
			return out
		}

		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			agent := genAgent.Draw(t, "agent")
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				x.PutHost(hostAt(agent, rapid.SliceOfN(genAddr, 0, 3).Draw(t, "addrs")...))
			case 1, 2:
				x.Apply(agent, rapid.SliceOfN(genStatus, 0, 4).Draw(t, "rows"),
					rapid.SliceOfN(genKey, 0, 2).Draw(t, "removed"))
			case 3:
				x.Full(agent, rapid.Uint64Range(1, 3).Draw(t, "round"), 0, 1,
					rapid.SliceOfN(genStatus, 0, 4).Draw(t, "rows"))
			case 4:
				x.Seed(agent, genStatus.Draw(t, "row"))
			case 5:
				x.Remove(agent, genKey.Draw(t, "key"))
			case 6:
				x.Rebind(agent, genAgent.Draw(t, "to"))
			}
			if rapid.Bool().Draw(t, "later") {
				continue
			}
			agents, addrs := x.Changed()
			for _, a := range agents {
				byAgent[a] = look(a, gozzard.HostAddr{})
			}
			for _, a := range addrs {
				byAddr[a] = look("", a)
			}
			for i := range 4 {
				if a := agentName(i); byAgent[a] != look(a, gozzard.HostAddr{}) {
					t.Fatalf("%s changed and was not named", a)
				}
			}
			for cloud := range 2 {
				for i := range 5 {
					if a := addr(cloud, i); byAddr[a] != look("", a) {
						t.Fatalf("%s changed and was not named", a)
					}
				}
			}
		}
	})
}
