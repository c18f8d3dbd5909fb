package agent

import (
	"sync"
	"time"
)

// beatsKept is how many unanswered heartbeats are remembered; an answer to an older one proves nothing of use.
const beatsKept = 16

// contact is how the agent stands with the server. It has a lock of its own that is never held over anything slow,
// so that heartbeats go out and are answered while the disk is not.
type contact struct {
	lease time.Duration

	mu         sync.Mutex
	connected  bool
	wanted     bool   // a new session is to be opened
	floor      uint64 // it must be above this one
	session    uint64
	base       uint64 // journal position to tell until welcomeLSN is durable
	welcomeLSN uint64
	welcomed   bool
	over       bool      // the lease was over once: this session will not be used again
	helloAt    time.Time // when HELLO was sent last
	heard      time.Time // when the newest thing that the server answered was sent
	opened     time.Time // when a session was last opened for operations
	lastHeard  time.Time // heard, also when another session was begun since
	beat       uint64
	sent       [beatsKept]time.Time
}

// open begins a session.
func (c *contact) open(session, base uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.base, c.welcomeLSN = session, base, 0
	c.wanted, c.floor, c.welcomed, c.over = false, 0, false, false
	c.heard, c.helloAt = time.Time{}, time.Time{}
	c.sent = [beatsKept]time.Time{}
}

// link notes that the connection came or went. Each new connection is a new session.
func (c *contact) link(up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connected = up
	c.welcomed = false
	if up {
		c.wanted = true
	}
}

// greeted: the server knows nothing of the session told. It may be behind the one that the server knows when the
// state folder is an old copy or the journal was lost; then the next one must be above that.
func (c *contact) greeted(session uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if session == 0 && c.welcomed {
		session = c.session
	}
	if session < c.session || session > 1<<62 { // answer to a session that is gone already, or nonsense
		return false
	}
	c.wanted, c.floor = true, session
	return true
}

// helloLeaves notes that HELLO leaves now. False: the session has changed.
func (c *contact) helloLeaves(session uint64, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.connected || c.wanted || c.session != session {
		return false
	}
	c.helloAt = now
	return true
}

// answerable reports whether a Welcome of that session may be taken: it was asked for, not long ago.
func (c *contact) answerable(session uint64, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connected && !c.wanted && session == c.session && !c.helloAt.IsZero() && now.Sub(c.helloAt) <= c.lease
}

// welcome opens the session for operations. lsn is that of the record about it.
func (c *contact) welcome(session, lsn uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if session != c.session || c.welcomed {
		return
	}
	c.welcomed, c.welcomeLSN, c.heard = true, lsn, c.helloAt
	c.opened, c.lastHeard = now, c.heard
}

// nextBeat numbers a heartbeat; 0 when none is to be sent.
func (c *contact) nextBeat(now time.Time) (session, beat uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.leased(now) {
		return 0, 0
	}
	c.beat++
	c.sent[c.beat%beatsKept] = now
	return c.session, c.beat
}

// answered renews the lease, from when the heartbeat was sent: an answer that waited in a buffer renews nothing.
func (c *contact) answered(session, beat uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if session != c.session || !c.leased(now) || beat > c.beat || c.beat-beat >= beatsKept {
		return
	}
	if at := c.sent[beat%beatsKept]; at.After(c.heard) {
		c.heard, c.lastHeard = at, at
	}
}

// Leased reports whether operations of this session may be taken in now.
func (c *contact) Leased(session uint64, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return session == c.session && c.leased(now)
}

// leased also ends the session for good when the lease is over. mu is held.
func (c *contact) leased(now time.Time) bool {
	if c.welcomed && !c.over && now.Sub(c.heard) > c.lease {
		c.over, c.wanted = true, true
	}
	return c.connected && c.welcomed && !c.over && !c.wanted
}

// view is what the main loop looks at.
type view struct {
	connected bool
	wanted    bool
	ready     bool
	floor     uint64
	leaseEnds time.Time // zero when there is none
}

func (c *contact) view(now time.Time) view {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := view{ready: c.leased(now), connected: c.connected, wanted: c.wanted && c.connected, floor: c.floor}
	if v.ready {
		v.leaseEnds = c.heard.Add(c.lease + time.Millisecond)
	}
	return v
}

// position is the lsn to tell (see the package comment).
func (c *contact) position(synced uint64) (session, lsn uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.welcomeLSN == 0 || synced < c.welcomeLSN {
		return c.session, c.base
	}
	return c.session, synced
}
