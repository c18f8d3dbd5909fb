package agentsock

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
)

// How many connections there may be at the same time. Owners have a separate limit, so that members cannot block them.
const (
	maxOwners  = 16
	maxMembers = 16
	maxOfOne   = 4 // connections of one member
)

// authListener accepts connections of known accounts, up to a limit. It closes other connections before it reads a
// byte.
type authListener struct {
	*socket
	own     uint32
	refused *atomic.Uint64
	log     *slog.Logger

	mu      sync.Mutex
	owners  int
	members map[uint32]int // connections by account
}

func newAuthListener(s *socket, own uint32, refused *atomic.Uint64, log *slog.Logger) *authListener {
	return &authListener{socket: s, own: own, refused: refused, log: log, members: map[uint32]int{}}
}

// Accept waits for a connection that may be served.
func (l *authListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}

		p, err := peerOf(c)
		rank := stranger
		if err == nil {
			rank = rankOf(p, l.own, l.group)
		}
		if rank == stranger {
			l.reject(p, err)
		} else if l.acquire(rank, p.uid) {
			release := sync.OnceFunc(func() { l.release(rank, p.uid) })
			return &conn{UnixConn: c, peer: p, rank: rank, release: release}, nil
		}
		_ = c.Close() // without an answer
	}
}

// reject counts a rejected connection. It logs the first one and then ever fewer, because a rejected client can try
// again without end.
func (l *authListener) reject(p peer, unknown error) {
	n := l.refused.Add(1)
	switch {
	case n&(n-1) != 0:
	case unknown != nil:
		l.log.Warn("rejected a connection to the local socket: cannot identify the account",
			"err", unknown, "refused", n)
	default:
		l.log.Warn("rejected a connection to the local socket: neither root, nor the agent's account, nor in its group",
			"uid", p.uid, "gid", p.gid, "pid", p.pid, "refused", n)
	}
}

// Close ends the listener. socket.close removes the file.
func (l *authListener) Close() error { return l.UnixListener.Close() }

// acquire counts a connection. It returns false if the limit is reached.
func (l *authListener) acquire(r rank, uid uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	if r == owner {
		if l.owners >= maxOwners {
			return false
		}
		l.owners++
		return true
	}

	all := 0
	for _, n := range l.members {
		all += n
	}

	if all >= maxMembers || l.members[uid] >= maxOfOne {
		return false
	}
	l.members[uid]++
	return true
}

// release undoes acquire.
func (l *authListener) release(r rank, uid uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r == owner {
		l.owners--
		return
	}
	if l.members[uid]--; l.members[uid] <= 0 {
		delete(l.members, uid)
	}
}

// conn is a connection and the account at its other end. It is counted until it is closed.
type conn struct {
	*net.UnixConn
	peer    peer
	rank    rank
	release func()
}

// Close allows another connection.
func (c *conn) Close() error {
	c.release()
	return c.UnixConn.Close()
}
