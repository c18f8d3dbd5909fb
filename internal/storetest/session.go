package storetest

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
)

func sessionNewer(t *testing.T, s control.Store) {
	before, opened, err := s.OpenSession(t.Context(), host("a", 0, 1, 1))
	must(t, err)
	if opened {
		t.Fatal("session 0 was opened")
	}
	equal(t, "host before", before, control.HostRecord{})
	registered := uint64(0)
	for _, session := range []uint64{5, 5, 4, 0, 6, 1 << 40, 7} {
		before, opened, err := s.OpenSession(t.Context(), host("a", session, 1, session))
		must(t, err)
		equal(t, "session before", before.Session, registered)
		if want := gozzard.MayOpenSession(registered, session); opened != want {
			t.Fatalf("session %d after %d: opened is %v", session, registered, opened)
		}
		if opened {
			registered = session
		}
	}
	_, opened, err = s.OpenSession(t.Context(), host("a", math.MaxUint64, 1, 1))
	if opened {
		t.Fatalf("a session beyond all counting was opened (%v)", err)
	}
	wantKind(t, err, gozzard.ErrInvalid)
	openSession(t, s, "b", 1)
	hosts, err := s.Hosts(t.Context())
	must(t, err)
	equal(t, "hosts", len(hosts), 2)
	equal(t, "session of a", hosts[0].Session, registered)
}

// sessionJournal: what OpenSession returns is the newest position seen, so that a rolled-back or lost journal is noticed.
func sessionJournal(t *testing.T, s control.Store) {
	open := func(session uint64, journal byte, lsn uint64, want gozzard.JournalPos) {
		t.Helper()
		before, opened, err := s.OpenSession(t.Context(), host("a", session, journal, lsn))
		must(t, err)
		if !opened {
			t.Fatalf("session %d was not opened", session)
		}
		equal(t, "journal before", before.Journal, want)
	}
	open(1, 1, 100, gozzard.JournalPos{})
	open(2, 1, 150, gozzard.JournalPos{ID: [16]byte{1}, LSN: 100})
	_, opened, err := s.OpenSession(t.Context(), host("a", 2, 9, 999)) // refused: leaves nothing behind
	must(t, err)
	equal(t, "opened", opened, false)
	open(3, 1, 120, gozzard.JournalPos{ID: [16]byte{1}, LSN: 150}) // rolled back
	open(4, 1, 130, gozzard.JournalPos{ID: [16]byte{1}, LSN: 120}) // nothing awaits a verdict: it goes on from there
	open(5, 2, 5, gozzard.JournalPos{ID: [16]byte{1}, LSN: 130})   // lost
	open(6, 2, 6, gozzard.JournalPos{ID: [16]byte{2}, LSN: 5})
	open(7, 2, math.MaxUint64, gozzard.JournalPos{ID: [16]byte{2}, LSN: 6})
}

// sessionJournalLost: a server that dies between recording a new journal and settling what the old one knew must find at the next HELLO that the
// journal proves nothing about those attempts.
func sessionJournalLost(t *testing.T, s control.Store) {
	for name, after := range map[string]struct {
		journal byte
		lsn     uint64
	}{"lost": {2, 1}, "rolled back": {1, 50}} {
		agent := gozzard.AgentID("agent-" + name[:4])
		list := attempts(3)
		for i := range list {
			list[i].Agent = agent
		}
		n := accept(t, s, list)
		open := func(session uint64, journal byte, lsn uint64) gozzard.JournalPos {
			t.Helper()
			before, opened, err := s.OpenSession(t.Context(), host(agent, session, journal, lsn))
			must(t, err)
			if !opened {
				t.Fatalf("session %d was not opened", session)
			}
			return before.Journal
		}
		open(1, 1, 100)
		dispatch(t, s, n.Attempts[0], 1)
		dispatch(t, s, n.Attempts[1], 1)
		settle(t, s, []bool{true}, settlement(n.Attempts[1], gozzard.AttemptUnknown))
		equal(t, name+": first HELLO", open(2, after.journal, after.lsn), gozzard.JournalPos{ID: [16]byte{1}, LSN: 100})
		equal(t, name+": HELLO after a crash", open(3, after.journal, after.lsn+100), gozzard.JournalPos{})
		dispatch(t, s, n.Attempts[2], 3) // of the new journal: it needs no caution
		settle(t, s, []bool{true}, settlement(n.Attempts[0], gozzard.AttemptInterrupted))
		equal(t, name+": one is still open", open(4, after.journal, after.lsn+200), gozzard.JournalPos{})
		settle(t, s, []bool{true}, settlement(n.Attempts[1], gozzard.AttemptInterrupted))
		equal(t, name+": all settled", open(5, after.journal, after.lsn+300), gozzard.JournalPos{ID: [16]byte{after.journal}, LSN: after.lsn + 200})
	}
}

func sessionDescription(t *testing.T, s control.Store) {
	h := control.HostRecord{
		Info: gozzard.HostInfo{Agent: "a", Hostname: "主机一", OS: "linux", Arch: "arm64", Version: "1.0", BootID: "boot", StartedAt: 1234567890,
			CPUs: 64, MemBytes: 1 << 40, Degraded: []string{"no cgroup"},
			Addrs: []gozzard.HostAddr{{Cloud: 0, IP: netip.MustParseAddr("10.0.0.1")}, {Cloud: 0, IP: netip.MustParseAddr("2001:db8::1")}}},
		Session: 1, Journal: gozzard.JournalPos{ID: [16]byte{1, 2, 3}, LSN: 77}, LastSeen: start,
	}
	_, _, err := s.OpenSession(t.Context(), h)
	must(t, err)
	hosts, err := s.Hosts(t.Context())
	must(t, err)
	equal(t, "hosts", hosts, []control.HostRecord{h})
	next := h
	next.Session, next.LastSeen = 2, start.Add(time.Hour)
	next.Info.Addrs, next.Info.Hostname, next.Info.Degraded = next.Info.Addrs[1:], "主机二", nil
	before, opened, err := s.OpenSession(t.Context(), next)
	must(t, err)
	equal(t, "before", before, h)
	equal(t, "opened", opened, true)
	hosts, err = s.Hosts(t.Context())
	must(t, err)
	equal(t, "hosts", hosts, []control.HostRecord{next})
}
