package control_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// lists reports whether a server lists the process of the tests on a host.
func (r *rig) lists(agent gozzard.AgentID) bool {
	rows := r.plane.Status(caller, key, []gozzard.Target{{Agent: agent}})
	return len(rows) == 1 && rows[0].ProcKnown
}

// TestPeersRebind: processes that another server gave to the new agent of a host are listed there, and no longer at the
// old one.
func TestPeersRebind(t *testing.T) {
	c := newCluster(t, time.Minute, "a", "b")
	a, b := c.servers["a"], c.servers["b"]
	a.hello(me, 1, journalA)
	a.operate(gozzard.ActionStart, 0, me)
	b.until("the other server does not list the process", func() bool { return b.lists(me) })

	// Another agent takes the place of the first one.
	const next = gozzard.AgentID("next-1") // at the same address
	a.plane.Disconnected(me)
	c.awaitOnline("b", me, false)
	a.hello(next, 1, journalB)
	c.awaitOnline("b", next, true)
	addr := gozzard.HostAddr{IP: netip.MustParseAddr("127.0.0.1")}
	if err := a.plane.Rebind(t.Context(), caller, addr, next, [32]byte{}); err != nil {
		t.Fatal(err)
	}

	if err := b.plane.ReloadHosts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.lists(me) || !b.lists(next) {
		t.Errorf("listed at the old agent %v, at the new one %v", b.lists(me), b.lists(next))
	}
}

// slowHosts lets something happen right after it has read the hosts.
type slowHosts struct {
	control.Store
	then atomic.Pointer[func()]
}

func (s *slowHosts) Hosts(ctx context.Context) ([]record.Host, error) {
	list, err := s.Store.Hosts(ctx)
	if then := s.then.Load(); then != nil {
		(*then)()
	}
	return list, err
}

// TestPeersReloadKeepsNewHosts: a host that joins another server while this one reads which hosts there are is not taken
// for one that was forgotten.
func TestPeersReloadKeepsNewHosts(t *testing.T) {
	c := newCluster(t, time.Minute, "a")
	late := &slowHosts{}
	b := c.add("b", time.Minute, func(s *sqlstore.Store) control.Store {
		late.Store = s
		return late
	})

	joins := func() {
		c.servers["a"].hello(me, 1, journalA)
		c.awaitOnline("b", me, true)
	}
	late.then.Store(&joins)
	if err := b.plane.ReloadHosts(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.awaitOnline("b", me, true)
}

// stuckStore does not answer who asks for everything that is open.
type stuckStore struct {
	control.Store
	asked func()
}

func (s *stuckStore) OpenOps(ctx context.Context, _ gozzard.TaskSeq) ([]record.OpenOp, error) {
	s.asked()
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestPeersTellWithoutRecord: a server that waits for the record goes on to tell the others what it hears, and that it lives.
func TestPeersTellWithoutRecord(t *testing.T) {
	c := newCluster(t, time.Minute, "b")
	stuck := make(chan struct{})
	a := c.add("a", time.Minute, func(s *sqlstore.Store) control.Store {
		return &stuckStore{Store: s, asked: sync.OnceFunc(func() { close(stuck) })}
	})
	select {
	case <-stuck:
	case <-time.After(time.Minute):
		t.Fatal("the server does not compare its memory with the record")
	}

	a.hello(me, 1, journalA)
	c.awaitOnline("b", me, true)
}

// TestPeersSnapshotOfNobody: the end of a snapshot is no harm if its sender was given up meanwhile.
func TestPeersSnapshotOfNobody(t *testing.T) {
	c := newCluster(t, time.Minute, "a")
	c.servers["a"].plane.EndSnapshot("nobody")
	c.servers["a"].hello(me, 1, journalA)
}

// TestPeersLateSilence: news that a host is silent at its former home do not count if it has a session here by now.
func TestPeersLateSilence(t *testing.T) {
	c := newCluster(t, time.Minute, "a", "b")
	c.servers["a"].hello(me, 1, journalA)
	c.awaitOnline("b", me, true)
	c.servers["b"].plane.SetOffline(me)
	c.awaitOnline("b", me, false)

	c.servers["b"].hello(me, 2, journalA)
	c.servers["b"].plane.SetOffline(me)
	c.awaitOnline("b", me, true)
}

// TestPeersMissedRegistration: a server that misses the news of a registration, and of the end of one, learns both from the
// record, whether the host is online or not.
func TestPeersMissedRegistration(t *testing.T) {
	c := newCluster(t, time.Minute, "a", "b")
	a, b := c.servers["a"], c.servers["b"]
	const other = gozzard.AgentID("other-2")
	a.hello(me, 1, journalA)
	a.hello(other, 1, journalB)
	c.awaitOnline("b", me, true)
	c.awaitOnline("b", other, true)

	// Registered on a host that never has anything to say about it.
	lost := func(_, _ string, n *gozzard.PeerNews) bool { return len(n.Seeds)+len(n.Removed) > 0 }
	c.setLose(lost)
	task := a.operate(gozzard.ActionStart, 0, me)
	second := a.operate(gozzard.ActionStart, 0, other)
	a.until("the server does not list what it registered", func() bool { return a.lists(me) && a.lists(other) })
	if b.lists(me) || b.lists(other) {
		t.Fatal("the news were not lost")
	}
	c.setLose(nil)
	b.until("the other server does not learn what it missed", func() bool { return b.lists(me) && b.lists(other) })

	// Removed again: the hosts rejected the first definition. One of them is offline by now.
	c.setLose(lost)
	for agent, of := range map[gozzard.AgentID]gozzard.Task{me: task, other: second} {
		rejected := done(a.op(agent, 1, of), gozzard.CodeRefused)
		rejected.Phase = gozzard.PhaseNever
		a.report(agent, 1, rejected)
	}
	a.until("the server still lists what hosts rejected", func() bool { return !a.lists(me) && !a.lists(other) })
	a.plane.Disconnected(other)
	if !b.lists(me) || !b.lists(other) {
		t.Fatal("the news were not lost")
	}
	c.setLose(nil)
	if err := b.plane.ReloadHosts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.lists(me) || b.lists(other) {
		t.Errorf("still listed: %v, %v", b.lists(me), b.lists(other))
	}
}

// TestPeersSnapshotIsNotOlder: what a server hears while another one tells it everything stays, if it is newer.
func TestPeersSnapshotIsNotOlder(t *testing.T) {
	c := newCluster(t, time.Minute, "a", "b")
	a, b := c.servers["a"], c.servers["b"]
	a.hello(me, 1, journalA)
	c.awaitOnline("b", me, true)
	rows := make([]gozzard.Status, 1500)
	for i := range rows {
		rows[i] = gozzard.Status{Key: gozzard.Key{Namespace: "gse", Name: fmt.Sprintf("p%05d", i)}, State: gozzard.StateRunning, PID: 1}
	}
	a.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportStatus, Session: 1, Round: 1, Part: 0, Parts: 1,
		Statuses: rows})

	pid := func(r *rig, k gozzard.Key) int32 {
		found := r.plane.Status(caller, k, []gozzard.Target{{Agent: me}})
		if len(found) != 1 {
			return 0
		}
		return found[0].Row.Status.PID
	}
	last := len(rows) - 1
	b.until("the other server does not know the host", func() bool { return pid(b, rows[last].Key) == 1 })

	for round := range 40 {
		// The other server asks for everything while the host reports.
		b.plane.Ask("a")
		for i := range 20 {
			rows[last].PID = int32(100*(round+1) + i)
			a.statuses(me, 1, rows[last])
			time.Sleep(200 * time.Microsecond)
		}
		want := rows[last].PID
		b.until("the other server does not hear the newest status", func() bool { return pid(b, rows[last].Key) == want })
		time.Sleep(15 * time.Millisecond)
		if got := pid(b, rows[last].Key); got != want {
			t.Fatalf("round %d: the other server went back from %d to %d", round, want, got)
		}
	}
}
