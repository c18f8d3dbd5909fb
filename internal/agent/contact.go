package agent

import (
	"sync"
	"time"
)

// beatsKept is how many unanswered heartbeats are remembered. An answer to an older one is of no use.
const beatsKept = 16

// contact is the state of the connection, the session and the lease. It has a separate lock that is never held over
// anything slow, so heartbeats are sent and answered even while the disk hangs.
type contact struct {
	lease     time.Duration
	heartbeat time.Duration // at most between two heartbeats

	mu         sync.Mutex
	connected  bool
	wanted     bool   // a new session must be opened
	floor      uint64 // the new session must be above this one
	session    uint64
	base       uint64    // the journal position in reports until welcomeLSN is durable
	welcomeLSN uint64    // the position of the record of the Welcome; 0 before it
	welcomed   bool      // the server has answered HELLO
	over       bool      // the lease has ended: this session will not be used again
	helloAt    time.Time // when HELLO was last sent
	heard      time.Time // when the newest message that the server has answered was sent
	opened     time.Time // when a session was last opened for operations
	lastHeard  time.Time // like heard, but kept when a new session begins
	beat       uint64    // the number of the last heartbeat
	beatAt     time.Time // when it was sent
	beatDue    time.Time // when the server wants the next one; zero if it did not say
	unanswered int       // heartbeats since the last one that was answered
	slow       bool      // the newest answer took longer than slowAnswer
	sent       [beatsKept]time.Time
	trips      [beatsKept]time.Duration // how long the answers of the last heartbeats took; 0 means not known
}

// open begins a session.
func (c *contact) open(session, base uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.base, c.welcomeLSN = session, base, 0
	c.wanted, c.floor, c.welcomed, c.over = false, 0, false, false
	c.heard, c.helloAt, c.beatDue, c.unanswered, c.slow = time.Time{}, time.Time{}, time.Time{}, 0, false
	c.sent, c.trips = [beatsKept]time.Time{}, [beatsKept]time.Duration{}
}

// setConnected records that the connection was made or lost. Each new connection needs a new session.
func (c *contact) setConnected(up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connected = up
	c.welcomed = false
	if up {
		c.wanted = true
	}
}

// requestSession records that a new session is needed, because the server does not know the given one. If the state
// folder is an old copy or the journal was lost, the agent's session may be behind the one that the server knows. The
// next session must be above both.
func (c *contact) requestSession(session uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if session == 0 && c.welcomed {
		session = c.session
	}
	if session < c.session || session > 1<<62 { // an answer to an earlier session, or nonsense
		return false
	}
	c.wanted, c.floor = true, session
	return true
}

// beginHello records that HELLO is sent now. It returns false if the session has changed meanwhile.
func (c *contact) beginHello(session uint64, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.connected || c.wanted || c.session != session {
		return false
	}
	c.helloAt = now
	return true
}

// mayWelcome reports whether a Welcome for the session is acceptable: HELLO was sent, and not long ago.
func (c *contact) mayWelcome(session uint64, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connected && !c.wanted && session == c.session && !c.helloAt.IsZero() && now.Sub(c.helloAt) <= c.lease
}

// welcome opens the session for operations. lsn is the position of its record.
func (c *contact) welcome(session, lsn uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if session != c.session || c.welcomed {
		return
	}
	c.welcomed, c.welcomeLSN, c.heard = true, lsn, c.helloAt
	c.opened, c.lastHeard = now, c.heard
}

// nextBeat numbers a heartbeat, or a full report that is one too. It returns 0 if none may be sent.
func (c *contact) nextBeat(now time.Time) (session, beat uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.leased(now) {
		return 0, 0
	}
	c.beat++
	c.sent[c.beat%beatsKept], c.trips[c.beat%beatsKept] = now, 0
	c.beatAt = now
	c.unanswered++
	return c.session, c.beat
}

// untilBeat is how long to wait for the next heartbeat: until the server wants it, or a period after the last one, two
// thirds of it if the server is slow, or only beatAgain if the last one has no answer. Without a session nothing was
// sent, so nothing is due early.
func (c *contact) untilBeat(period time.Duration, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.leased(now) {
		return 0
	}
	switch wish := c.beatDue.Sub(c.beatAt); {
	case c.unanswered == 1:
		period = min(period, beatAgain)
	case c.slow:
		period = period * 2 / 3
	case wish >= c.heartbeat/2 && wish <= c.heartbeat: // no server makes an agent flood it or lose its lease
		period = wish
	}
	return period - now.Sub(c.beatAt)
}

// renew extends the lease, counted from the time at which the answered heartbeat was sent. So an answer that waited in
// a buffer extends nothing. next is when the server wants the next heartbeat, counted from now; 0 if it did not say.
func (c *contact) renew(session, beat uint64, next time.Duration, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if session != c.session || !c.leased(now) || beat > c.beat || c.beat-beat >= beatsKept {
		return
	}
	if at := c.sent[beat%beatsKept]; at.After(c.heard) {
		c.heard, c.lastHeard, c.unanswered = at, at, 0
		c.trips[beat%beatsKept] = now.Sub(at)
		c.slow = now.Sub(at) > slowAnswer
		c.beatDue = time.Time{}
		if next > 0 {
			c.beatDue = now.Add(next)
		}
	}
}

// roundTrip is the fastest of the last heartbeats that were answered. It returns 0 while there is none.
func (c *contact) roundTrip() (fastest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.trips {
		if d > 0 && (fastest == 0 || d < fastest) {
			fastest = d
		}
	}
	return fastest
}

// Leased reports whether operations of the session may be accepted now.
func (c *contact) Leased(session uint64, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return session == c.session && c.leased(now)
}

// leased is Leased for the current session. It ends the session for good when the lease is over. The caller holds mu.
func (c *contact) leased(now time.Time) bool {
	if c.welcomed && !c.over && now.Sub(c.heard) > c.lease {
		c.over, c.wanted = true, true
	}
	return c.connected && c.welcomed && !c.over && !c.wanted
}

// view is what the main loop needs to know about the contact.
type view struct {
	connected bool
	wanted    bool // a new session must be opened
	ready     bool // the session is open for operations and reports
	floor     uint64
	leaseEnds time.Time // zero if there is no lease
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

// position is the journal position for reports. The package comment explains it.
func (c *contact) position(synced uint64) (session, lsn uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.welcomeLSN == 0 || synced < c.welcomeLSN {
		return c.session, c.base
	}
	return c.session, synced
}
