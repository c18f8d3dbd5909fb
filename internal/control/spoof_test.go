package control_test

import (
	"testing"

	"github.com/gozzard/gozzard"
)

// TestTS6 is about an agent that sends reports in the name of another agent. The fabric proves the sender of a report.
// A report that claims another sender has no effect on that agent, and is counted.
func TestTS6SpeakingForAnotherAgent(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalB)
	task := r.operate(gozzard.ActionStart, 0, me)
	op := r.op(me, 1, task)

	counted := func(rule string) {
		t.Helper()
		r.until("not counted as "+rule, func() bool { _, ok := r.refused.LoadAndDelete(rule); return ok })
	}

	row := func(agent gozzard.AgentID) (gozzard.Status, bool) {
		rows := r.plane.Status(caller, key, []gozzard.Target{{Agent: agent}})
		return rows[0].Row.Status, rows[0].HostKnown
	}

	// Send a HELLO with the name of the victim and a higher session. The session of the victim must stay valid.
	r.plane.Receive(other, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHello, Session: 99, Journal: journalB,
		Hello: &gozzard.Hello{Host: gozzard.HostInfo{Agent: me, Hostname: "evil"}}})
	counted("hello_agent")

	// Send a verdict about the operation of the victim, alone and in a HELLO.
	r.report(other, 1, done(op, gozzard.CodeOK))
	counted("foreign_operation")
	r.hello(other, 2, journalB, done(op, gozzard.CodeOK))
	counted("foreign_operation")

	// A status belongs to the sender, whatever names it contains.
	r.plane.Receive(other, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportStatus, Session: 2,
		Statuses: []gozzard.Status{
			{Key: key, State: gozzard.StateRunning, PID: 666},
		}})
	r.until("no status", func() bool { s, _ := row(other); return s.PID == 666 })

	if s, known := row(me); !known || s.PID == 666 {
		t.Errorf("the victim's status is %+v", s)
	}

	r.verdict(task, me, gozzard.AttemptDispatched, "")
	r.report(me, 1, done(op, gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)

	for _, h := range r.plane.Hosts(caller) {
		if h.Info.Hostname == "evil" {
			t.Errorf("host %s took over what was claimed", h.Info.Agent)
		}
	}
}
