package control_test

import (
	"testing"

	"github.com/gozzard/gozzard"
)

// TestTT3OlderProtocolIsNotLetIn: an agent that was welcomed and has reported with a version of the protocol is rejected
// with an older version, even after a restart of the server. An agent that only sent a HELLO with the newer version is
// accepted: its new program failed the trial, and the old one was installed again.
func TestTT3OlderProtocolIsNotLetIn(t *testing.T) {
	r := newRig(t)
	greet := func(agent gozzard.AgentID, version uint32, session uint64) {
		r.plane.Receive(agent, 0, &gozzard.Report{Version: version, Kind: gozzard.ReportHello, Session: session,
			Journal: journalA, Hello: &gozzard.Hello{Run: session}})
	}

	welcomed := func(agent gozzard.AgentID, session uint64) {
		t.Helper()
		r.until("no welcome", func() bool {
			list := r.commands(agent, gozzard.CommandWelcome)
			return len(list) > 0 && list[len(list)-1].Session == session
		})
	}

	refused := func(agent gozzard.AgentID, version uint32, session uint64) {
		t.Helper()
		r.refused.Delete("old_protocol")
		r.forget()
		greet(agent, version, session)
		r.until("not counted", func() bool { _, ok := r.refused.Load("old_protocol"); return ok })
		if list := r.commands(agent, gozzard.CommandWelcome); len(list) > 0 {
			t.Errorf("an older protocol was welcomed: %+v", list[0])
		}
	}

	greet(other, 2, 1) // and dies: the program before says HELLO next
	welcomed(other, 1)
	greet(other, 1, 2)
	welcomed(other, 2)

	greet(me, 2, 1)
	welcomed(me, 1)
	r.plane.Receive(me, 0, &gozzard.Report{Version: 2, Kind: gozzard.ReportStatus, Session: 1, Round: 1, Parts: 1})

	r.until("not recorded", func() bool {
		hosts, err := r.store.Hosts(t.Context())
		return err == nil && len(hosts) == 2 && hosts[0].Info.Agent == me && hosts[0].Protocol == 2
	})

	refused(me, 1, 2)
	r.stop()
	r.start()
	refused(me, 1, 3)
	greet(me, 3, 4)
	welcomed(me, 4)
}
