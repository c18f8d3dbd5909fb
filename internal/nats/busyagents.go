package nats

import (
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	busyInterval = 2 * time.Second
	busyChecked  = 16 // connections with the most messages

	suspicion = 8 // agents are looked at from this part of the limits of one
	moreLooks = 5 // and this many times, because most connections need two looks
)

// busyAgents finds agents that publish to subjects they may not use. The broker drops those messages one by one, at
// the cost of a processor, and the hub never counts them. Such agents show up among the busiest connections.
type busyAgents struct {
	at    time.Time
	sent  map[uint64]traffic // by connection; nil: nothing is suspected
	total traffic            // of all connections together that did not reach the hub, since the start
	looks int                // that are left
}

// suspects reports whether agents send much that does not reach the hub. Only then find looks at each connection: a list
// of all costs a large fleet more than its heartbeats do. passed is what the hub received and sent since the start.
func (a *busyAgents) suspects(s *server.Server, l *limiter, passed traffic, now time.Time) bool {
	v, err := s.Varz(nil)
	if err != nil { // no error is known
		return true
	}

	// Compare what all agents sent with what arrived. A part of what one of them may send is enough for a look.
	before := a.total
	a.total = traffic{messages: v.InMsgs - passed.messages, bytes: v.InBytes - passed.bytes}
	since := traffic{messages: suspicion * (a.total.messages - before.messages),
		bytes: suspicion * (a.total.bytes - before.bytes)}
	if l.limits.exceededBy(since, now.Sub(a.at).Seconds()) {
		a.looks = moreLooks
	}
	if a.looks > 0 {
		a.looks--
		return true
	}

	a.at, a.sent = now, nil
	return false
}

// find returns the peers that have sent more than the limits allow since the last call, besides what reached the hub.
// The first call after a quiet time only counts.
func (a *busyAgents) find(b *Broker, l *limiter, now time.Time) (busy []string) {
	conns, err := b.server.Connz(&server.ConnzOptions{Sort: server.ByInMsgs, Limit: busyChecked, Username: true})
	if err != nil { // only if the options are wrong
		return nil
	}

	// Compare what each connection has sent with what arrived at the hub.
	span := now.Sub(a.at).Seconds()
	sent := make(map[uint64]traffic, len(conns.Conns))
	for _, c := range conns.Conns {
		name := b.agentOf(c)
		if name == "" {
			continue
		}

		total := traffic{c.InMsgs, c.InBytes}
		before, known := a.sent[c.Cid]
		sent[c.Cid] = total
		arrived := l.takeArrived(name) // the limiter has checked those messages
		if !known && c.Start.Before(a.at) {
			// The connection is old and new in this list: what it sent before the last call is unknown.
			continue
		}

		extra := traffic{
			messages: total.messages - before.messages - arrived.messages,
			bytes:    total.bytes - before.bytes - arrived.bytes,
		}
		if l.limits.exceededBy(extra, span) {
			busy = append(busy, name)
		}
	}

	a.at, a.sent = now, sent
	return busy
}

// agentOf is the agent of a connection; "" for the hub, and for connections that did not authenticate.
func (b *Broker) agentOf(c *server.ConnInfo) string {
	if name := b.auth.nameOf(c.Cid); name != "" || b.auth.gate != nil {
		return name
	}
	if _, err := parseAgentName(c.AuthorizedUser); err != nil {
		return ""
	}
	return c.AuthorizedUser
}

// exceededBy reports whether the traffic of so many seconds is more than rate and burst together.
func (l *Limits) exceededBy(t traffic, seconds float64) bool {
	return l.Messages > 0 && float64(t.messages) > l.Messages*seconds+float64(l.MessageBurst) ||
		l.Bytes > 0 && float64(t.bytes) > l.Bytes*seconds+float64(l.ByteBurst)
}
