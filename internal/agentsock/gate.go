package agentsock

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
)

// How many connections there may be at a time. Owners have room of their own, so that members cannot keep them out,
// and one member has a part of the members' room only.
const (
	maxOwners  = 16
	maxMembers = 16
	maxOfOne   = 4
)

// gate lets in whom it knows, and only so many at a time. Others are closed before a byte of theirs is read.
type gate struct {
	*socket
	own     uint32
	refused *atomic.Uint64
	log     *slog.Logger

	mu      sync.Mutex
	owners  int
	members map[uint32]int // connections by account
}

func newGate(s *socket, own uint32, refused *atomic.Uint64, log *slog.Logger) *gate {
	return &gate{socket: s, own: own, refused: refused, log: log, members: map[uint32]int{}}
}

// Accept waits for a connection that may be served.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.AcceptUnix()
		if err != nil {
			return nil, err
		}
		p, err := peerOf(c)
		who := stranger
		if err == nil {
			who = judge(p, g.own, g.group)
		}
		if who == stranger {
			g.refuse(p, err)
		} else if g.enter(who, p.uid) {
			return &conn{UnixConn: c, peer: p, rank: who, leave: sync.OnceFunc(func() { g.leave(who, p.uid) })}, nil
		}
		_ = c.Close() // without an answer
	}
}

// refuse counts a stranger and tells of him, ever more rarely: whoever is refused can come again.
func (g *gate) refuse(p peer, unknown error) {
	n := g.refused.Add(1)
	switch {
	case n&(n-1) != 0:
	case unknown != nil:
		g.log.Warn("the local socket refused somebody", "err", unknown, "refused", n)
	default:
		g.log.Warn("the local socket refused somebody who is neither root nor the agent's account nor in its group",
			"uid", p.uid, "gid", p.gid, "pid", p.pid, "refused", n)
	}
}

// Close ends the listener; the socket's name is its owner's to take away.
func (g *gate) Close() error { return g.UnixListener.Close() }

func (g *gate) enter(who rank, uid uint32) bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	if who == owner {
		if g.owners >= maxOwners {
			return false
		}
		g.owners++
		return true
	}

	all := 0
	for _, n := range g.members {
		all += n
	}

	if all >= maxMembers || g.members[uid] >= maxOfOne {
		return false
	}

	g.members[uid]++
	return true
}

func (g *gate) leave(who rank, uid uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if who == owner {
		g.owners--
		return
	}
	if g.members[uid]--; g.members[uid] <= 0 {
		delete(g.members, uid)
	}
}

// conn is a connection with who is at its other end; it is counted until it is closed.
type conn struct {
	*net.UnixConn
	peer  peer
	rank  rank
	leave func()
}

// Close makes room for another one.
func (c *conn) Close() error {
	c.leave()
	return c.UnixConn.Close()
}
