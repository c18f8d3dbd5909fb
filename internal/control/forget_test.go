package control_test

import (
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// TestForgetGivesVerdicts: a host that leaves takes its processes with it, and every operation that waits for it gets a
// true verdict. What it reports later changes nothing, and neither does a restart of the server.
func TestForgetGivesVerdicts(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalB)
	first := r.operate(gozzard.ActionStart, 0, me, other)
	r.report(me, 1, done(r.op(me, 1, first), gozzard.CodeOK))
	r.verdict(first, me, gozzard.AttemptOK, gozzard.CodeOK)
	sent := r.operate(gozzard.ActionRestart, 0, me) // it is sent, and never answered
	op := r.op(me, 1, sent)

	gone, err := r.plane.Forget(t.Context(), caller, gozzard.HostRef{Agent: me})
	if err != nil || gone.Processes != 1 || gone.Operations != 1 {
		t.Fatalf("forgotten: %+v, %v", gone, err)
	}
	if a := r.verdict(sent, me, gozzard.AttemptInterrupted, gozzard.CodeInterrupted); a.Outcome.Message == "" {
		t.Error("the verdict has no reason")
	}
	r.verdict(first, me, gozzard.AttemptOK, gozzard.CodeOK)

	// What was on its way.
	r.report(me, 1, done(op, gozzard.CodeOK))
	r.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportStatus, Session: 1,
		Statuses: []gozzard.Status{{Key: key, PID: 7}}})
	lists := func() {
		t.Helper()
		mine := fleet.Filter{Agents: []gozzard.AgentID{me}}
		if n, rows := r.plane.Find(caller, mine, 0, 10); n > 0 {
			t.Errorf("processes of the host are listed: %+v", rows)
		}
		for _, h := range r.plane.Hosts(caller) {
			if h.Info.Agent == me {
				t.Error("the host is listed")
			}
		}
	}
	lists()
	r.verdict(sent, me, gozzard.AttemptInterrupted, gozzard.CodeInterrupted)
	if op, err := r.store.OpenOf(t.Context(), []gozzard.AgentID{me}); err != nil || len(op) > 0 {
		t.Errorf("open: %v %v", op, err)
	}

	r.stop()
	r.start()
	lists()

	// Others are not touched, and new operations find no host.
	if n, _ := r.plane.Find(caller, fleet.Filter{Agents: []gozzard.AgentID{other}}, 0, 10); n != 1 {
		t.Errorf("the other host has %d processes", n)
	}
	r.verdict(r.operate(gozzard.ActionStop, 0, me), me, gozzard.AttemptNotExecuted, gozzard.CodeUnreachable)
}

// TestForgetWhatWaits: an operation that waits for a host that is offline was not executed.
func TestForgetWhatWaits(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.stop()
	r.start() // no session is open any more
	task := r.operate(gozzard.ActionStart, time.Hour, me)
	r.verdict(task, me, gozzard.AttemptPending, "")
	if gone, err := r.plane.Forget(t.Context(), caller, gozzard.HostRef{Agent: me}); err != nil || gone.Operations != 1 {
		t.Fatalf("forgotten: %+v, %v", gone, err)
	}
	r.verdict(task, me, gozzard.AttemptNotExecuted, gozzard.CodeUnreachable)

	// The agent comes back as a new host.
	r.hello(me, 2, journalA)
	if !slices.ContainsFunc(r.plane.Hosts(caller), func(h fleet.Host) bool { return h.Info.Agent == me && h.Online }) {
		t.Error("the host is not there again")
	}
	again := r.operate(gozzard.ActionStart, 0, me)
	r.report(me, 2, done(r.op(me, 2, again), gozzard.CodeOK))
	r.verdict(again, me, gozzard.AttemptOK, gozzard.CodeOK)
}
