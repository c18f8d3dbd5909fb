package control

import "time"

// away is another server that is not heard.
type away struct {
	since  time.Time // up to here, everything that it told is known
	logged bool      // that it runs all the same
}

// meet notes that another server is heard. mu is held.
func (s *peers) meet(id string, now time.Time) *peer {
	k := &peer{complete: now}
	if a, ok := s.away[id]; ok {
		k.complete = a.since
		delete(s.away, id)
	}
	s.known[id] = k
	s.o.Log.Info("another server is there", "server", id)
	return k
}

// mustAsk reports whether to ask a server for everything, after its numbered news were taken in. It asks again when the answer
// does not come, and when more was missed since it asked.
func (k *peer) mustAsk(now time.Time) bool {
	if !k.gap {
		k.complete = now
		return false
	}
	waits := now.Sub(k.askedAt) < tellPause || now.Sub(k.part) < tellPause
	if now.Sub(k.askedAt) < askPause || waits && !k.again {
		return false
	}
	k.askedAt, k.again = now, false
	return true
}

// told notes that a server has told everything.
func (k *peer) told(now time.Time) {
	if !k.again {
		k.gap, k.complete = false, now
	}
}

// Lag is how far the knowledge of this server is behind each of the other servers: the time since the last moment at which it
// knew everything that the other one had told. A server tells at least every 2 seconds that it lives.
func (p *Plane) Lag() map[string]time.Duration {
	s := p.peers
	if s == nil {
		return nil
	}
	now := s.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	lag := make(map[string]time.Duration, len(s.known)+len(s.away))
	for id, k := range s.known {
		lag[id] = now.Sub(k.complete)
	}
	for id, a := range s.away {
		lag[id] = now.Sub(a.since)
	}
	return lag
}

// HearsPeers reports whether another server is heard.
func (p *Plane) HearsPeers() bool {
	s := p.peers
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.known) > 0
}

// Expect says which other servers run, by the record. One of them that is not heard is logged once.
func (p *Plane) Expect(running []string) {
	s := p.peers
	now := s.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = make(map[string]bool, len(running))
	for _, id := range running {
		s.runs[id] = true
		if s.known[id] != nil {
			continue
		}
		a, ok := s.away[id]
		if !ok {
			a.since = now
		}
		if !a.logged && now.Sub(a.since) > s.o.Lease {
			a.logged = true
			s.o.Log.Warn("another server runs, but is not heard: its hosts are shown as offline here. Check that the servers reach "+
				"each other at their cluster addresses, or use the same account of the same NATS cluster", "server", id, "since", a.since)
		}
		s.away[id] = a
	}
}

// peerLate is the age of the newest news of a server after which this one does not rely on what it knows of it.
const peerLate = 5 * time.Second

// unsure reports whether another server may have hosts that this one shows as offline: it runs by the record and is not heard,
// or what it told was missed in part, or this server was frozen and has not heard it since.
func (s *peers) unsure(now time.Time) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.runs {
		if s.known[id] == nil {
			return true
		}
	}
	for _, k := range s.known {
		if k.gap || now.Sub(k.heard) > peerLate {
			return true
		}
	}
	return false
}
