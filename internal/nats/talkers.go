package nats

import (
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	talkersEvery = 2 * time.Second
	talkersKept  = 16 // the connections that have said most
)

// talkers finds agents whose noise never arrives: what is sent to subjects that are not theirs is refused by the
// broker, one message at a time, at the cost of a processor. They are among those who have said most before long.
type talkers struct {
	at   time.Time
	said map[uint64]said // by connection
}

// said is how much an agent has sent.
type said struct{ messages, bytes int64 }

// look returns the names of agents that have said more beside the hub than the limits allow since the last look.
func (t *talkers) look(s *server.Server, g *floodgate, now time.Time) (loud []string) {
	l := &g.limits
	conns, err := s.Connz(&server.ConnzOptions{Sort: server.ByInMsgs, Limit: talkersKept, Username: true})
	if err != nil { // only of options that are wrong
		return nil
	}

	span := now.Sub(t.at).Seconds()
	seen := make(map[uint64]said, len(conns.Conns))
	for _, c := range conns.Conns {
		if c.AuthorizedUser == hubUser || c.AuthorizedUser == "" {
			continue
		}
		is := said{c.InMsgs, c.InBytes}
		was, known := t.said[c.Cid]
		seen[c.Cid] = is
		heard := g.arrivedSince(c.AuthorizedUser) // what came in at the hub is judged there
		if !known && c.Start.Before(t.at) {
			// it has been here for long and is among the first now: what it said before the last look is not known
			continue
		}
		if l.Messages > 0 && float64(is.messages-was.messages-heard.messages) > l.Messages*span+
			float64(l.MessageBurst) ||
			l.Bytes > 0 && float64(is.bytes-was.bytes-heard.bytes) > l.Bytes*span+float64(l.ByteBurst) {
			loud = append(loud, c.AuthorizedUser)
		}
	}

	t.at, t.said = now, seen
	return loud
}

// watch puts agents out that are loud without being heard, until stop is closed.
func (h *Hub) watch(stop <-chan struct{}) {
	tick := time.NewTicker(talkersEvery)
	defer tick.Stop()
	t := talkers{at: h.gate.now()}
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		for _, name := range t.look(h.opts.Broker.server, h.gate, h.gate.now()) {
			out := h.gate.loud(name)
			h.opts.Refused(RuleFlood)
			h.opts.Broker.keepOut(name, out)
			if h.said.first("put out " + name) {
				h.opts.Log.Warn("agent floods the fabric and is put out; gozzard hosts shows it", "peer", name, "out",
					out.Round(time.Second))
			}
		}
	}
}
