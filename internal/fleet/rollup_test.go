package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// A rollup has the namespaces with the most processes, and all others together, so no agent and no caller can make more
// series than that. Hosts count as lost if a process on them should run.
func TestRollup(t *testing.T) {
	x := fleet.New()
	put := func(agent gozzard.AgentID, statuses ...gozzard.Status) {
		x.PutHost(fleet.Host{Info: gozzard.HostInfo{Agent: agent}, Session: 1, Online: true, LastSeen: time.Now()})
		x.Apply(agent, statuses, nil)
	}
	status := func(space, name string, wanted gozzard.RunState) gozzard.Status {
		return gozzard.Status{Key: gozzard.Key{Namespace: space, Name: name}, Wanted: wanted, State: gozzard.StateRunning,
			Health: gozzard.HealthPassing}
	}

	var many []gozzard.Status
	for i := range 3000 {
		many = append(many, status(fmt.Sprint("space", i), "web", gozzard.StateRunning))
	}
	for i := range 5 {
		many = append(many, status("large", fmt.Sprint(i), gozzard.StateRunning))
	}
	put("a", many...)
	put("b", status("large", "stopped", gozzard.StateStopped))
	put("c")

	r := x.Rollup(10)
	total := map[string]int{}
	for _, p := range r.Processes {
		total[p.Namespace] += p.N
	}
	if len(total) != 11 || r.Folded != 2991 || total["large"] != 6 || total[fleet.OtherNamespaces] != 2991 {
		t.Errorf("%d namespaces, %d folded, large %d, others %d", len(total), r.Folded, total["large"],
			total[fleet.OtherNamespaces])
	}
	if r.Online != 3 || r.Offline != 0 || r.Lost != 0 {
		t.Errorf("all online: %d %d %d", r.Online, r.Offline, r.Lost)
	}

	// Offline, the states are unknown. What changed meanwhile leaves nothing behind.
	for _, agent := range []gozzard.AgentID{"a", "b", "c"} {
		x.SetOnline(agent, false, time.Now())
	}
	if r := x.Rollup(10); r.Online != 0 || r.Offline != 2 || r.Lost != 1 {
		t.Errorf("all offline: %d %d %d", r.Online, r.Offline, r.Lost)
	}
	x.Forget("a")
	x.Forget("b")
	if r := x.Rollup(10); len(r.Processes) != 0 || r.Folded != 0 || r.Offline != 1 {
		t.Errorf("forgotten: %+v", r)
	}
}
