package control_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// cluster is several servers on one record. The test is in the place of the fabric between them, too.
type cluster struct {
	t *testing.T

	mu      sync.Mutex
	servers map[string]*rig
	store   *sqlstore.Store
	lose    func(from, to string, n *gozzard.PeerNews) bool // nil: nothing is lost
	queues  map[string]chan *gozzard.PeerNews
}

// clusterLink is the end of one server.
type clusterLink struct {
	*cluster
	from string
}

// Tell implements control.PeerLink.
func (l clusterLink) Tell(to string, n *gozzard.PeerNews) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := *n
	for id, q := range l.queues {
		if id == l.from || to != "" && to != id || l.lose != nil && l.lose(l.from, id, n) {
			continue
		}
		q <- &sent
	}
	return nil
}

// newCluster starts servers with these ids.
func newCluster(t *testing.T, lease time.Duration, ids ...string) *cluster {
	c := &cluster{t: t, servers: map[string]*rig{}, queues: map[string]chan *gozzard.PeerNews{}}
	opener := &rig{t: t, path: filepath.Join(t.TempDir(), "gozzard.db")}
	store := opener.open()
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})

	c.store = store
	for _, id := range ids {
		c.add(id, lease, nil)
	}
	return c
}

// add starts one more server.
func (c *cluster) add(id string, lease time.Duration, around func(*sqlstore.Store) control.Store) *rig {
	return c.join(&rig{t: c.t, lease: lease, server: id, peers: clusterLink{c, id}, shared: c.store, around: around,
		sent: map[gozzard.AgentID][]*gozzard.Command{}})
}

// join starts a server.
func (c *cluster) join(r *rig) *rig {
	id := r.server
	r.start()
	q := make(chan *gozzard.PeerNews, 10_000)
	c.mu.Lock()
	c.servers[id], c.queues[id] = r, q
	c.mu.Unlock()

	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case n := <-q:
				r.plane.Hear(n)
			}
		}
	}()
	c.t.Cleanup(func() { cancel(); r.stop() })
	return r
}

// setLose says which news are lost from now on.
func (c *cluster) setLose(f func(from, to string, n *gozzard.PeerNews) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose = f
}

// awaitOnline waits until a server knows that an agent is online.
func (c *cluster) awaitOnline(server string, agent gozzard.AgentID, online bool) {
	c.t.Helper()
	r := c.servers[server]
	r.until("server "+server+" does not know that the agent is online or silent", func() bool {
		h, ok := r.plane.Resolve(caller, gozzard.Target{Agent: agent})
		return ok && h.Online == online
	})
}

// TestPeersDeliver: an operation that one server accepts is delivered by the home of the agent, and any server answers.
func TestPeersDeliver(t *testing.T) {
	c := newCluster(t, time.Minute, "a", "b", "c")
	home := c.servers["a"]
	home.hello(me, 1, journalA)
	c.awaitOnline("b", me, true)

	task := c.servers["b"].operate(gozzard.ActionReload, 0, me)
	op := home.op(me, 1, task)
	home.report(me, 1, done(op, gozzard.CodeOK))
	for _, id := range []string{"a", "b", "c"} {
		c.servers[id].verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	}
	if n := len(c.servers["b"].commands(me, gozzard.CommandOperate)); n > 0 {
		t.Errorf("the server that is not the home sent %d commands", n)
	}

	// A caller that waits at another server hears of the verdict.
	second := c.servers["b"].operate(gozzard.ActionReload, 0, me)
	answered := make(chan error, 1)
	go func() {
		res, err := c.servers["c"].plane.Await(t.Context(), caller, second.ID, 20*time.Second)
		if err == nil && !res.Attempts[0].State.Final() {
			err = gozzard.Errorf(gozzard.ErrUnavailable, "it is %s", res.Attempts[0].State)
		}
		answered <- err
	}()
	home.report(me, 1, done(home.op(me, 1, second), gozzard.CodeOK))
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// TestPeersThroughHome: where commands reach only the agents of a server itself, its questions to others go through their
// homes. Nothing else does: a home takes operations from the record alone.
func TestPeersThroughHome(t *testing.T) {
	c := newCluster(t, time.Minute, "a")
	home := c.servers["a"]
	away := &rig{t: t, lease: time.Minute, server: "b", peers: clusterLink{c, "b"}, shared: c.store, through: true,
		sent: map[gozzard.AgentID][]*gozzard.Command{}}
	c.join(away)
	home.hello(me, 1, journalA)
	c.awaitOnline("b", me, true)

	away.plane.OrderUpdate(me, gozzard.UpdateOrder{Roll: 1, Version: "2.0.0"})
	home.until("the order does not reach the home", func() bool { return len(home.commands(me, gozzard.CommandUpdate)) == 1 })
	if n := len(away.commands(me, gozzard.CommandUpdate)); n > 0 {
		t.Errorf("the server that is not the home sent %d commands", n)
	}

	// Operations, other sessions, and agents that are not here.
	tell := func(agent gozzard.AgentID, kind gozzard.CommandKind, session uint64) {
		home.plane.Hear(&gozzard.PeerNews{From: "b", Commands: []gozzard.PeerCommand{{Agent: agent,
			Command: &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: kind, Session: session}}}})
	}
	tell(me, gozzard.CommandOperate, 1)
	tell(me, gozzard.CommandUpdate, 2)
	tell(other, gozzard.CommandUpdate, 1)
	home.plane.Hear(&gozzard.PeerNews{From: "b", Commands: []gozzard.PeerCommand{{Agent: me}}})
	if n := len(home.commands(me, gozzard.CommandOperate)) + len(home.commands(other, gozzard.CommandUpdate)); n > 0 ||
		len(home.commands(me, gozzard.CommandUpdate)) != 1 {
		t.Error("the home passed on what it must not")
	}
}

// TestPeersLostWake: a wake-up that is lost delays an operation; it does not lose it.
func TestPeersLostWake(t *testing.T) {
	c := newCluster(t, time.Minute, "a", "b")
	home := c.servers["a"]
	home.hello(me, 1, journalA)
	c.awaitOnline("b", me, true)

	c.setLose(func(_, _ string, n *gozzard.PeerNews) bool { return len(n.Wake) > 0 })
	task := c.servers["b"].operate(gozzard.ActionReload, 0, me)
	home.report(me, 1, done(home.op(me, 1, task), gozzard.CodeOK))
	c.servers["b"].verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
}

// TestPeersTakeOver: when an agent opens a session with another server, that server decides what is open, and the old home
// has no more part in it.
func TestPeersTakeOver(t *testing.T) {
	c := newCluster(t, time.Minute, "a", "b")
	a, b := c.servers["a"], c.servers["b"]
	a.hello(me, 1, journalA)
	task := a.operate(gozzard.ActionReload, 0, me)
	op := a.op(me, 1, task)

	// The agent never got it: the new home sends it again.
	b.hello(me, 2, journalA)
	again := b.op(me, 2, task)
	if again.ID != op.ID {
		t.Errorf("operation %s was sent as %s", op.ID, again.ID)
	}
	b.report(me, 2, done(again, gozzard.CodeOK))
	a.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)

	// The old home sends nothing more.
	c.awaitOnline("a", me, true)
	a.forget()
	next := a.operate(gozzard.ActionReload, 0, me)
	b.report(me, 2, done(b.op(me, 2, next), gozzard.CodeOK))
	a.verdict(next, me, gozzard.AttemptOK, gozzard.CodeOK)
	if n := len(a.commands(me, gozzard.CommandOperate)); n > 0 {
		t.Errorf("the old home sent %d commands", n)
	}
}

// TestPeersFrozen: an old home that did not hear of the take-over goes on with what it believes, and changes nothing.
func TestPeersFrozen(t *testing.T) {
	c := newCluster(t, time.Second, "a", "b")
	a, b := c.servers["a"], c.servers["b"]
	a.hello(me, 1, journalA)
	task := a.operate(gozzard.ActionReload, 0, me)
	op := a.op(me, 1, task)

	// From now on the two do not hear each other. The agent is with the other one, and works on the operation.
	c.setLose(func(string, string, *gozzard.PeerNews) bool { return true })
	b.hello(me, 2, journalA, gozzard.OpReport{ID: op.ID, Ref: op.Ref, Phase: gozzard.PhaseBegun})
	a.until("the old home does not give the agent up", func() bool {
		h, _ := a.plane.Resolve(caller, gozzard.Target{Agent: me})
		return !h.Online
	})
	b.heartbeat(me, 2)
	b.report(me, 2, done(op, gozzard.CodeOK))
	b.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	a.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
}

// TestPeersFormerHome: an operation that a former home accepts for the session that it believes in is executed by the home.
func TestPeersFormerHome(t *testing.T) {
	c := newCluster(t, time.Minute, "a", "b")
	a, b := c.servers["a"], c.servers["b"]
	a.hello(me, 1, journalA)
	a.untilReady(me, 1)
	c.setLose(func(string, string, *gozzard.PeerNews) bool { return true })
	b.hello(me, 2, journalA)

	task := a.operate(gozzard.ActionReload, 0, me)
	a.op(me, 1, task) // the agent rejects it
	op := b.op(me, 2, task)
	b.report(me, 2, done(op, gozzard.CodeOK))
	for _, r := range []*rig{a, b} {
		r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	}
}

// TestPeersHomeless: what a home that died left open is taken up by another server, which gives it its verdict.
func TestPeersHomeless(t *testing.T) {
	c := newCluster(t, 2*time.Second, "a", "b")
	a, b := c.servers["a"], c.servers["b"]
	a.hello(me, 1, journalA)
	c.awaitOnline("b", me, true)
	sent := a.operate(gozzard.ActionReload, 0, me)
	a.op(me, 1, sent)

	// The host is away, and so is its home.
	a.stop()
	c.awaitOnline("b", me, false)
	waits := b.operate(gozzard.ActionReload, 200*time.Millisecond, me)
	b.verdict(waits, me, gozzard.AttemptNotExecuted, gozzard.CodeUnreachable)

	// It comes back without its journal: nobody knows whether it did what was sent.
	b.hello(me, 2, journalB)
	b.verdict(sent, me, gozzard.AttemptInterrupted, gozzard.CodeInterrupted)
}

// TestPeersSeeStatus: every server has the status of every host: as it is reported, and from a server that was there before.
func TestPeersSeeStatus(t *testing.T) {
	c := newCluster(t, time.Minute, "a", "b")
	a, b := c.servers["a"], c.servers["b"]
	running := gozzard.Status{Key: key, State: gozzard.StateRunning, PID: 7, ReportedAt: 1}
	full := &gozzard.Report{Version: 1, Kind: gozzard.ReportStatus, Session: 1, Round: 1, Parts: 1,
		Statuses: []gozzard.Status{running}}
	sees := func(pid int) func() bool {
		return func() bool {
			rows := b.plane.Status(caller, key, []gozzard.Target{{Agent: me}})
			return len(rows) == 1 && rows[0].ProcKnown && int(rows[0].Row.Status.PID) == pid
		}
	}

	a.hello(me, 1, journalA)
	a.plane.Receive(me, 0, full)
	b.until("the other server does not see the status", sees(7))

	// News are lost: the other one asks for everything.
	var told atomic.Bool
	c.setLose(func(from, _ string, n *gozzard.PeerNews) bool {
		if from == "a" && len(n.Reports) > 0 {
			told.Store(true)
		}
		return true
	})
	running.PID = 8
	a.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportStatus, Session: 1,
		Statuses: []gozzard.Status{running}})
	b.until("the home does not tell the new status", told.Load)
	c.setLose(nil)
	b.until("the other server does not ask for what it missed", sees(8))
}

// TestPeersLag: a server knows how old its knowledge of another one is, also if it hears that one and something is missing.
func TestPeersLag(t *testing.T) {
	c := newCluster(t, 10*time.Second, "a", "b")
	a, b := c.servers["a"], c.servers["b"]
	a.hello(me, 1, journalA)
	c.awaitOnline("b", me, true)
	lag := func() time.Duration {
		l, ok := b.plane.Lag()["a"]
		if !ok {
			t.Fatalf("there is no lag of the other server: %v", b.plane.Lag())
		}
		return l
	}
	current := func() bool { return lag() < time.Second }
	behind := func() bool { return lag() > 4*time.Second } // two beats
	b.until("the server is not up to date", current)

	// Everything is lost.
	c.setLose(func(from, _ string, _ *gozzard.PeerNews) bool { return from == "a" })
	b.until("lost news are not noticed", behind)

	// The other one is heard, but what was missed is not told.
	c.setLose(func(from, _ string, n *gozzard.PeerNews) bool { return from == "a" && n.Snapshot })
	before := lag()
	time.Sleep(2500 * time.Millisecond) // it beats meanwhile
	if now := lag(); now < before+2*time.Second {
		t.Errorf("the lag fell from %s to %s although news are missing", before, now)
	}
	c.setLose(nil)
	b.until("the server does not ask again", current)

	// Silence for longer than a lease.
	c.setLose(func(from, _ string, _ *gozzard.PeerNews) bool { return from == "a" })
	b.until("a silent server has no lag", func() bool { return lag() > 12*time.Second })
	b.plane.Expect([]string{"a", "c"})
	c.setLose(nil)
	b.until("the server is not up to date again", current)
	if l, ok := b.plane.Lag()["c"]; !ok || l <= 0 {
		t.Errorf("a server that was never heard has the lag %s, %t", l, ok)
	}
}

var _ control.PeerLink = clusterLink{}

// TestPeersUnsure: a server that does not hear another one does not say of its hosts that they are offline and that nothing was
// done: the other one executes the operation. When the record does not list that server any more, it does say so.
func TestPeersUnsure(t *testing.T) {
	c := newCluster(t, 10*time.Second, "a", "b") // longer than a server needs to find it in the record
	a, b := c.servers["a"], c.servers["b"]
	a.hello(me, 1, journalA)
	c.awaitOnline("b", me, true)
	c.setLose(func(string, string, *gozzard.PeerNews) bool { return true })
	alive := func() {
		a.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHeartbeat, Session: 1})
		b.plane.Expect([]string{"a"})
	}
	b.until("the other server is not missed", func() bool {
		alive()
		h, ok := b.plane.Resolve(caller, gozzard.Target{Agent: me})
		return ok && !h.Online
	})

	task := b.operate(gozzard.ActionReload, 0, me)
	var op gozzard.Op
	a.until("the home does not find what another server accepted", func() bool {
		alive()
		for _, cmd := range a.commands(me, gozzard.CommandOperate) {
			op = cmd.Ops[0]
		}
		return op.ID != gozzard.OpID{}
	})
	a.report(me, 1, done(op, gozzard.CodeOK))
	b.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)

	b.plane.Expect(nil)
	task = b.operate(gozzard.ActionReload, 0, me)
	b.verdict(task, me, gozzard.AttemptNotExecuted, gozzard.CodeUnreachable)
}
