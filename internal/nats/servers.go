package nats

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// anyServer stands for the servers of a link in the library, which knows one server only. The dialer replaces it.
	anyServer = "nats://127.0.0.1:1"

	// A server that does not answer must not keep a link from the others for long. Each round of the list is more
	// patient, up to dialTimeout: when all servers are slow, short attempts only make them slower.
	firstPatience = 8 * time.Second

	// Agents of a server that leaves move within this time, not all at once.
	moveWithin = 10 * time.Second

	// How many servers that are not on the list any more are remembered.
	maxFormer = 16
)

// servers are the addresses that a link may connect to, and which of them is next.
type servers struct {
	mu    sync.Mutex
	given []string // in the options; used after the known ones
	known []string // as the server named them

	// former are servers that were known, the newest last. They are used when no other one can be reached: the servers that an
	// agent is moved to may die at that moment.
	former []string

	order   []string // of this round
	at      int      // of the next one in order
	rounds  int      // that are over since the last connection
	current string   // that was dialled last
	last    string   // of the newest connection; when that is lost, it is tried after the others
	useless string   // it took a connection and did nothing; it is tried after all others, former ones too

	rejections int // in this round
}

// next returns the address to connect to and how long the attempt may take.
func (s *servers) next() (address string, patience time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.at == len(s.order) {
		if len(s.order) > 0 {
			s.rounds++
		}
		s.arrange()
	}
	s.current = s.order[s.at]
	s.at++

	if len(s.order) == 1 {
		return s.current, dialTimeout
	}
	return s.current, min(firstPatience<<min(s.rounds, 8), dialTimeout)
}

// arrange begins a round: the known servers in random order, so that a fleet spreads evenly, then those of the options, then
// those that were known before.
// The server of the connection that was lost comes after the other known ones. mu is held.
func (s *servers) arrange() {
	s.order, s.at, s.rejections = slices.Clone(s.known), 0, 0
	rand.Shuffle(len(s.order), func(i, j int) { s.order[i], s.order[j] = s.order[j], s.order[i] })

	rest := slices.DeleteFunc(slices.Clone(s.given), func(a string) bool { return slices.Contains(s.known, a) })
	rand.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	if len(s.order) == 0 {
		s.order, rest = rest, nil
	}
	for _, a := range slices.Backward(s.former) {
		if !slices.Contains(s.order, a) && !slices.Contains(rest, a) {
			rest = append(rest, a)
		}
	}

	if i := slices.Index(s.order, s.last); i >= 0 {
		s.order = append(slices.Delete(s.order, i, i+1), s.last)
	}
	s.last = ""
	s.order = append(s.order, rest...)

	if i := slices.Index(s.order, s.useless); i >= 0 {
		s.order = append(slices.Delete(s.order, i, i+1), s.useless)
	}
	s.useless = ""
}

// giveUp notes that the present server is of no use.
func (s *servers) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.useless = s.current
}

// round returns the number of the round that is about to begin, from 1. more says that this round is not over.
// othersRejected says that all servers of the round that is over have rejected the agent, maybe except for the newest one.
func (s *servers) round() (n int, more, othersRejected bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at > 0 && s.at < len(s.order) {
		return 0, true, false
	}
	if s.at == 0 {
		return 1, false, true
	}
	return s.rounds + 2, false, s.rejections+1 >= len(s.order)
}

// rejected notes that the newest server has rejected the agent.
func (s *servers) rejected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejections++
}

// connected notes that the newest attempt succeeded. The next attempt begins a new list.
func (s *servers) connected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.order, s.at, s.rounds = s.current, nil, 0, 0
}

// set replaces the known servers. It reports whether the present server was known and is not any more.
func (s *servers) set(known []string) (left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left = slices.Contains(s.known, s.last) && !slices.Contains(known, s.last)
	for _, a := range s.known {
		s.former = append(slices.DeleteFunc(s.former, func(f string) bool { return f == a }), a)
	}
	s.former = slices.DeleteFunc(s.former, func(a string) bool { return slices.Contains(known, a) })
	s.former = s.former[max(0, len(s.former)-maxFormer):]
	s.known = known
	s.order, s.at = nil, 0
	return left
}

// hasLeft reports whether the present server is not known.
func (s *servers) hasLeft() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last != "" && !slices.Contains(s.known, s.last)
}

// hasOthers reports whether there are other servers than the present one.
func (s *servers) hasOthers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isOther := func(a string) bool { return a != s.current }
	return slices.ContainsFunc(slices.Concat(s.known, s.given, s.former), isOther)
}

// address is the server of the present connection or attempt.
func (s *servers) address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// parseServers checks addresses of servers and returns them in the form host:port.
func (l *Link) parseServers(list []string) (addresses []string, err error) {
	for _, raw := range list {
		url, err := serverAddr(strings.TrimSpace(raw), l.opts.TLS != nil)
		if err != nil {
			return nil, err
		}
		if a := strings.TrimPrefix(url, "nats://"); !slices.Contains(addresses, a) {
			addresses = append(addresses, a)
		}
	}
	return addresses, nil
}

// SetServers sets the servers that the link may use from now on: host:port. Those of the options are used only if no
// other one can be reached. A link that is connected to a server which is not among them any more moves to another one
// within seconds.
func (l *Link) SetServers(list []string) error {
	if l.opts.Broker != nil {
		return nil // there is no other way to a broker of this process
	}
	known, err := l.parseServers(list)
	if err != nil {
		return fmt.Errorf("cannot use the servers %q: %w", list, err)
	}

	if l.servers.set(known) {
		select {
		case l.moves <- struct{}{}:
		default:
		}
	}
	return nil
}

// Address is the host:port of the server that the link is connected to, or tries to connect to; "" before the first
// attempt, and for a broker of this process.
func (l *Link) Address() string { return l.servers.address() }

// leaveServer moves to another server, unless the present one is known again.
func (l *Link) leaveServer() {
	if !l.servers.hasLeft() || !l.up.Load() {
		return
	}
	l.opts.Log.Info("this server leaves, the agent connects to another one", "server", l.Address())
	if err := l.Reconnect(); err != nil {
		l.opts.Log.Debug("cannot reconnect", "err", err)
	}
}

// serveWithin is how long the server of a new connection has to answer the agent.
func (l *Link) serveWithin() time.Duration {
	wait := l.opts.Unserved << min(l.unserved, 4)
	return wait + rand.N(wait/2)
}

// leaveUnserved moves to another server if this one takes connections and does nothing more: it may be cut off from the record.
func (l *Link) leaveUnserved(up bool) {
	switch {
	case l.served.Load():
		l.unserved = 0
		return
	case !up || !l.servers.hasOthers():
		return
	}

	l.unserved++
	l.opts.Log.Info("this server opens no session, the agent connects to another one", "server", l.Address())
	l.servers.giveUp()
	if err := l.Reconnect(); err != nil {
		l.opts.Log.Debug("cannot reconnect", "err", err)
	}
}
