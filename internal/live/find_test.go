package live_test

import (
	"slices"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/live"
)

// TestFind: the ids of processes that a viewer sees, and of no others.
func TestFind(t *testing.T) {
	x := smallFleet(3, 4)
	hub := live.New(live.Options{Fleet: x})
	v := join(t, hub, gozzard.Everything())
	defer v.view.Close()

	// Take some of the rows, one of them twice, and what does not exist.
	var all []gozzard.ProcID
	for h := range 3 {
		for _, s := range report(h, 4, 0) {
			all = append(all, gozzard.ProcID{Agent: agentName(h), Key: s.Key})
		}
	}
	wanted := append([]gozzard.ProcID{{Agent: agentName(99), Key: all[0].Key},
		{Agent: agentName(0), Key: gozzard.Key{Namespace: "none", Name: "none"}}, all[5], all[5]}, all[1:3]...)
	ids, ok := v.view.Find(v.table.Epoch, wanted)
	if !ok || len(ids) != 3 || !slices.IsSorted(ids) {
		t.Fatalf("found %v %v", ids, ok)
	}

	// The rows of the ids are those that were asked for.
	rows, _, ok := v.view.Rows(v.table.Epoch, ids)
	if !ok || len(rows) != 3 {
		t.Fatalf("rows %v %v", rows, ok)
	}
	for _, r := range rows {
		if !slices.Contains(wanted, gozzard.ProcID{Agent: r.Agent, Key: r.Status.Key}) {
			t.Errorf("found %s of %s", r.Status.Key, r.Agent)
		}
	}
	if _, ok := v.view.Find("other", wanted); ok {
		t.Error("an epoch that is over has ids")
	}
}
