package control_test

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
)

// known is what a server knows of agents: the newest report, 0 for a silent one, and whether a process is listed.
type known struct {
	newest map[gozzard.AgentID]uint64
	listed map[gozzard.AgentID]bool
}

func newKnown() known {
	return known{newest: map[gozzard.AgentID]uint64{}, listed: map[gozzard.AgentID]bool{}}
}

// hear takes in a message in the order of Plane.Hear.
func (k known) hear(n *gozzard.PeerNews) {
	for _, r := range n.Reports {
		k.newest[r.Agent], k.listed[r.Agent] = r.Report.Session, true
	}
	for _, s := range n.Silent {
		k.newest[s.Agent] = 0
	}
	for _, s := range n.Seeds {
		k.listed[s.Agent] = true
	}
	for _, id := range n.Removed {
		k.listed[id.Agent] = false
	}
}

// TestOutboxKeepsOrder: another server ends with the newest of everything, whatever comes together in one message and
// wherever messages are split.
func TestOutboxKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		box, want, got := &control.Outbox{}, newKnown(), newKnown()
		var number uint64
		report := func(agent gozzard.AgentID) {
			number++
			n := box.Of(agent)
			n.Reports = append(n.Reports, gozzard.PeerReport{Agent: agent, Report: &gozzard.Report{Session: number}})
			want.newest[agent], want.listed[agent] = number, true
		}
		seed := func(agent gozzard.AgentID) {
			n := box.Of(agent)
			n.Seeds = append(n.Seeds, gozzard.PeerSeed{Agent: agent})
			want.listed[agent] = true
		}
		take := func() bool {
			n, more := box.Take()
			got.hear(&n)
			return more
		}

		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			agent := rapid.SampledFrom([]gozzard.AgentID{"a", "b", "c"}).Draw(t, "agent")
			times := rapid.SampledFrom([]int{1, 1, 1, 600, 1100}).Draw(t, "times")
			switch rapid.SampledFrom([]string{"report", "seed", "silent", "remove", "take"}).Draw(t, "step") {
			case "report":
				for range times {
					report(agent)
				}
			case "seed":
				for range times {
					seed(agent)
				}
			case "silent":
				n := box.EndOf(agent)
				n.Silent = append(n.Silent, gozzard.PeerSilent{Agent: agent})
				want.newest[agent] = 0
			case "remove":
				n := box.EndOf(agent)
				n.Removed = append(n.Removed, gozzard.ProcID{Agent: agent})
				want.listed[agent] = false
			case "take":
				take()
			}
		}
		for take() {
		}

		if !maps.Equal(got.newest, want.newest) || !maps.Equal(got.listed, want.listed) {
			t.Fatalf("the other server knows %v and %v, want %v and %v", got.newest, got.listed, want.newest, want.listed)
		}
	})
}
