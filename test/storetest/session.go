package storetest

import (
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
)

func sessionNewer(t *testing.T, s control.Store) {
	now, opened, err := s.OpenSession(t.Context(), host("a", 0, 1, 1))
	must(t, err)

	if opened {
		t.Fatal("session 0 was opened")
	}

	equal(t, "an unknown host", now, record.Host{})
	registered := uint64(0)
	for _, session := range []uint64{5, 5, 4, 0, 6, 1 << 40, 7} {
		now, opened, err := s.OpenSession(t.Context(), host("a", session, 1, session))
		must(t, err)
		if want := gozzard.MayOpenSession(registered, session); opened != want {
			t.Fatalf("session %d after %d: opened is %v", session, registered, opened)
		}
		if opened {
			registered = session
		}
		equal(t, "session now", now.Session, registered)
	}

	_, opened, err = s.OpenSession(t.Context(), host("a", math.MaxUint64, 1, 1))
	if opened {
		t.Fatalf("a session with a number above the limit was opened (%v)", err)
	}

	wantKind(t, err, gozzard.ErrInvalid)
	openSession(t, s, "b", 1)
	hosts, err := s.Hosts(t.Context())
	must(t, err)
	equal(t, "hosts", len(hosts), 2)
	equal(t, "session of a", hosts[0].Session, registered)
}

func sessionsOf(t *testing.T, s control.Store) {
	want := map[gozzard.AgentID]uint64{}
	var agents []gozzard.AgentID
	for i := range 40 {
		id := agentID(i)
		agents = append(agents, id, gozzard.AgentID(fmt.Sprintf("unknown-%d", i)))
		want[id] = uint64(i + 1)
		openSession(t, s, id, want[id])
	}
	got, err := s.Sessions(t.Context(), agents)
	must(t, err)
	equal(t, "sessions", got, want)
	got, err = s.Sessions(t.Context(), nil)
	must(t, err)
	equal(t, "sessions of nobody", len(got), 0)
}

// sessionJournal: the record knows since which session an agent has its journal. It notices a lost or rolled-back
// journal when the agent connects with it, and still knows it at every later connection, even if agent or server
// crashed in between.
func sessionJournal(t *testing.T, s control.Store) {
	list := attempts(1)
	list[0].Agent, list[0].State = "a", gozzard.AttemptDispatched
	n := accept(t, s, list)

	open := func(session uint64, journal byte, lsn, since uint64) {
		t.Helper()
		now, opened, err := s.OpenSession(t.Context(), host("a", session, journal, lsn))
		must(t, err)
		if !opened {
			t.Fatalf("session %d was not opened", session)
		}
		equal(t, "journal since", now.JournalSince, since)
		hosts, err := s.Hosts(t.Context())
		must(t, err)
		equal(t, "recorded since", hosts[0].JournalSince, since)
	}

	open(1, 1, 100, 1)
	open(2, 1, 150, 1)
	_, opened, err := s.OpenSession(t.Context(), host("a", 2, 9, 999)) // rejected: changes nothing
	must(t, err)
	equal(t, "opened", opened, false)
	open(3, 1, 150, 1)
	open(4, 1, 120, 4) // rolled back since the last connection
	open(5, 1, 130, 4) // it continues from there
	report := settlement(n.Attempts[0], gozzard.AttemptOK)
	report.Journal = &gozzard.JournalPos{ID: [16]byte{1}, LSN: 200}
	settle(t, s, []bool{true}, report)
	open(6, 1, 199, 6) // rolled back since a report
	open(7, 2, 5, 7)   // lost
	open(8, 2, 6, 7)
	open(9, 1, 999, 9) // an old one restored
	open(10, 1, math.MaxUint64, 9)
}

// sessionRestored: the record knows that a host has lost its journal until its definitions are restored, even if
// agent or server crashed in between.
func sessionRestored(t *testing.T, s control.Store) {
	open := func(session uint64, journal byte, restored uint64) {
		t.Helper()
		now, _, err := s.OpenSession(t.Context(), host("a", session, journal, session))
		must(t, err)
		equal(t, "restored", now.RestoredJournal, restored)
		hosts, err := s.Hosts(t.Context())
		must(t, err)
		equal(t, "recorded as restored", hosts[0].RestoredJournal, restored)
	}

	open(1, 1, 1) // new: nothing to restore
	open(2, 2, 1) // lost in session 2
	open(3, 2, 1)
	must(t, s.JournalRestored(t.Context(), "a", 1)) // for an earlier loss
	open(4, 2, 1)
	must(t, s.JournalRestored(t.Context(), "a", 2))
	open(5, 2, 2)
	must(t, s.JournalRestored(t.Context(), "unknown", 1))
}

// sessionProtocol: no session opens with a protocol below the highest one that was recorded for the host.
func sessionProtocol(t *testing.T, s control.Store) {
	open := func(session uint64, protocol uint32, want bool, known uint32) {
		t.Helper()
		h := host("a", session, 1, session)
		h.Protocol = protocol
		now, opened, err := s.OpenSession(t.Context(), h)
		must(t, err)
		equal(t, "opened", opened, want)
		equal(t, "protocol now", now.Protocol, known)
	}

	open(1, 2, true, 0) // opening does not record the protocol
	open(2, 1, true, 0)
	must(t, s.RaiseProtocol(t.Context(), "a", 2))
	must(t, s.RaiseProtocol(t.Context(), "a", 1)) // never lowered
	must(t, s.RaiseProtocol(t.Context(), "unknown", 9))
	open(3, 1, false, 2)
	open(3, 2, true, 2)
	open(4, 3, true, 2)
	hosts, err := s.Hosts(t.Context())
	must(t, err)
	equal(t, "recorded", hosts[0].Protocol, uint32(2))
	equal(t, "session", hosts[0].Session, uint64(4))
}

func sessionDescription(t *testing.T, s control.Store) {
	h := record.Host{
		Info: gozzard.HostInfo{Agent: "a", Hostname: "主机一", OS: "linux", Arch: "arm64", Version: "1.0",
			BootID: "boot", StartedAt: 1234567890, CPUs: 64,
			MemBytes: 1 << 40, Degraded: []string{"no cgroup"}, Mode: gozzard.ModeUser, PolicyDigest: "ab12/cd34", Form: 1,
			DefaultAccount: "www-data",
			Addrs: []gozzard.HostAddr{{Cloud: 0, IP: netip.MustParseAddr("10.0.0.1")},
				{Cloud: 0, IP: netip.MustParseAddr("2001:db8::1")}}},
		Session: 1, Journal: gozzard.JournalPos{ID: [16]byte{1, 2, 3}, LSN: 77}, LastSeen: start,
	}

	// It is recorded as it is.
	now, opened, err := s.OpenSession(t.Context(), h)
	must(t, err)
	h.JournalSince, h.RestoredJournal = 1, 1
	equal(t, "opened", opened, true)
	equal(t, "host now", now, h)
	hosts, err := s.Hosts(t.Context())
	must(t, err)
	equal(t, "hosts", hosts, []record.Host{h})

	// A newer session replaces it.
	next := h
	next.Session, next.LastSeen = 2, start.Add(time.Hour)
	next.Info.Addrs, next.Info.Hostname, next.Info.Degraded = next.Info.Addrs[1:], "主机二", nil
	now, opened, err = s.OpenSession(t.Context(), next)
	must(t, err)
	equal(t, "opened", opened, true)
	equal(t, "host now", now, next)

	// An older one changes nothing.
	now, opened, err = s.OpenSession(t.Context(), h)
	must(t, err)
	equal(t, "opened again", opened, false)
	equal(t, "host as it was", now, next)
	hosts, err = s.Hosts(t.Context())
	must(t, err)
	equal(t, "hosts", hosts, []record.Host{next})
}

// sessionLifts: the transaction that opens a session makes the generations of the agent newer than what it has on record.
// It changes nothing for other agents and for the numbers of tasks. A generation that no server gives out changes
// nothing, and neither does a session that is not opened.
func sessionLifts(t *testing.T, s control.Store) {
	open := func(agent gozzard.AgentID, session, newest uint64, opened, lifted bool, base uint64) {
		t.Helper()
		h := host(agent, session, 1, session)
		h.NewestGen = newest
		now, got, err := s.OpenSession(t.Context(), h)
		must(t, err)
		equal(t, "opened", got, opened)
		equal(t, "lifted", now.Lifted, lifted)
		equal(t, "base", now.Base, base)
	}
	next := func(want gozzard.TaskSeq) {
		t.Helper()
		equal(t, "the next task", accept(t, s, attempts(1)).Task.Seq, want)
	}

	next(1)
	open("a", 1, 1, true, false, 0)
	next(2)
	open("a", 2, 100, true, true, 98)
	next(3)
	open("b", 1, 3, true, false, 0)
	open("b", 2, 50, true, true, 47)
	open("a", 2, 200, false, false, 98) // the same session again
	open("a", 3, 101, true, false, 98)
	next(4)
	open("b", 3, gozzard.MaxGen+1, true, false, 47)
	open("b", 4, math.MaxUint64, true, false, 47)
	open("a", 4, gozzard.MaxGen, true, true, gozzard.MaxGen-4)
	next(5)

	// A lift means that the journal of the agent says nothing about older attempts, and that the host needs no older
	// definitions.
	hosts, err := s.Hosts(t.Context())
	must(t, err)
	equal(t, "journal of a since", hosts[0].JournalSince, uint64(4))
	equal(t, "journal of a restored", hosts[0].RestoredJournal, uint64(4))
	equal(t, "journal of b since", hosts[1].JournalSince, uint64(2))
	equal(t, "base of b", hosts[1].Base, uint64(47))
	equal(t, "the record does not keep what HELLO said", hosts[0].NewestGen, uint64(0))
}
