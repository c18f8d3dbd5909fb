package server

import "time"

// isolatedAfter is how long a server must not have reached the record before it takes itself for cut off.
const isolatedAfter = 15 * time.Second

// isolation is what a server does that reaches neither the record nor another server: it can do nothing for its agents, so it
// disconnects them, because other servers may be able to. While only the database is away, servers hear each other and agents
// stay where they are.
type isolation struct {
	s      *Server
	others bool      // ran when the record was last read
	failed time.Time // the first time after that at which it could not be read; zero: never
	cut    cutter    // nil: the server does not take itself for cut off
}

// reached notes that the record was read, and whether others run by it.
func (i *isolation) reached(others bool) {
	if i.cut != nil {
		i.s.options.Log.Info("this server reaches the record again, and keeps its agents")
	}
	i.others, i.failed, i.cut = others, time.Time{}, nil
}

// tick notes that the record could not be read, and disconnects agents if that lasts.
func (i *isolation) tick(now time.Time) {
	if i.failed.IsZero() { // not the last success: the server may have been frozen since
		i.failed = now
	}
	if !i.others || now.Sub(i.failed) < isolatedAfter || i.s.plane.HearsPeers() {
		return
	}
	if i.cut == nil {
		i.s.options.Log.Warn("this server reaches neither the record nor another server: it disconnects its agents, so that they go "+
			"to other servers. Check the network of this machine", "since", i.failed)
		i.cut = cutter{}
	}
	i.cut.tick(i.s, now)
}
