package control_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// Heartbeats of all hosts are asked for at the same moments, so that they arrive in groups. Hosts that came together do
// not stay together.
func TestHeartbeatsComeInGroups(t *testing.T) {
	const grid, beats = 250 * time.Millisecond, 200
	r := newRig(t)
	r.hello(me, 1, journalA)

	moments := map[time.Time]bool{}
	for n := range uint64(beats) {
		before := time.Now()
		r.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHeartbeat, Session: 1, Beat: n + 1})
		after := time.Now()
		acks := r.commands(me, gozzard.CommandAck)
		next := acks[len(acks)-1].NextBeat
		if next <= 8*time.Second || next >= 10*time.Second {
			t.Fatalf("the next heartbeat is wanted after %s", next)
		}

		// The server read its clock between before and after.
		at := after.Add(next).Truncate(grid)
		if at.Before(before.Add(next)) {
			t.Errorf("the next heartbeat is wanted between %s and %s, and no moment of the grid is there", before.Add(next), after.Add(next))
		}
		moments[at] = true
	}

	if len(moments) < 2 {
		t.Errorf("all %d heartbeats are wanted at one moment", beats)
	}
}
