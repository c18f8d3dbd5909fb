package nats

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// Limits is how much one agent may send. What is beyond is dropped before it is read, status first; an agent that
// goes on is muted for a while, and one that goes on even then is put out. A zero field gets its default, a rate
// below zero is none.
type Limits struct {
	Messages     float64 // a second
	MessageBurst int     // at once
	Bytes        float64
	ByteBurst    int
	Mute         time.Duration // for a first offence; each further one within an hour doubles it
}

// DefaultLimits are above what an agent of ours can send. It tells results at most every three milliseconds and
// changes every thirty, so it never has more than some 400 messages a second; and 2,000 processes that change at
// once, each with a message of several kilobytes, are within the burst. To read a full megabyte of status costs the
// server some ten milliseconds.
func DefaultLimits() Limits {
	return Limits{Messages: 500, MessageBurst: 8000, Bytes: 2 << 20, ByteBurst: 16 << 20, Mute: time.Minute}
}

// The rules by which an agent is refused, as they are counted.
const (
	RuleFlood     = "agent_flood"
	RuleMalformed = "agent_malformed"
	RuleKeptOut   = "agent_kept_out"
)

const (
	// A quarter of what is at hand is kept for results: status goes first.
	statusReserve = 4

	// So much has to be dropped before an agent is muted: one that is merely busy slows down, since nothing of what
	// it lost is acknowledged.
	muteMessages = 200
	muteBytes    = 4 << 20

	// So much of a muted agent is still taken off the fabric before its connection is ended.
	cutMessages = 1000
	cutBytes    = 16 << 20

	// So many messages that cannot be read end an agent's session.
	maxMalformed = 10

	// An answer to a question has at most so many.
	answerBytes = 300 << 10

	offenceLife = time.Hour // then an offence is forgotten
	longestMute = time.Hour
	idleSender  = 10 * time.Minute
	sweepAt     = 4096 // senders, before those that are idle are looked for
)

func (l *Limits) setDefaults() {
	d := DefaultLimits()

	if l.Messages == 0 {
		l.Messages, l.MessageBurst = d.Messages, d.MessageBurst
	}
	if l.MessageBurst <= 0 {
		l.MessageBurst = max(1, int(5*l.Messages))
	}
	if l.Bytes == 0 {
		l.Bytes, l.ByteBurst = d.Bytes, d.ByteBurst
	}
	if l.ByteBurst <= 0 {
		l.ByteBurst = max(MaxMessage, int(5*l.Bytes))
	}
	if l.Mute <= 0 {
		l.Mute = d.Mute
	}
}

// floodgate decides about every message before anything else is done with it.
type floodgate struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex
	senders map[string]*sender // by the name of the peer
	sweep   int                // how many there may be before idle ones are looked for

	offenders map[gozzard.AgentID]*sender // those of the last hour, some of them longer ago
}

// sender is what is remembered of one agent.
type sender struct {
	messages, bytes bucket
	heard           time.Time
	arrived         said // since the talkers were looked at

	dropped      int // beyond the limits, since it last kept them
	droppedBytes int
	malformed    int

	offence    string // the newest, in words
	offended   time.Time
	strikes    int
	mutedUntil time.Time
	muted      int // messages since it was muted, or put out last
	mutedBytes int
}

// bucket is a token bucket.
type bucket struct {
	tokens float64
	at     time.Time
}

func (b *bucket) fill(rate, burst float64, now time.Time) {
	if b.at.IsZero() {
		b.tokens = burst
	} else if d := now.Sub(b.at); d > 0 && b.tokens < burst { // above it is what the server asked for
		b.tokens = min(burst, b.tokens+rate*d.Seconds())
	}
	b.at = now
}

// ruling is what becomes of a message.
type ruling struct {
	drop   bool
	muted  time.Duration // not 0: the agent was muted by this very message
	putOut time.Duration // not 0: its connection has to end, and it is kept out so long
}

func newFloodgate(l Limits) *floodgate {
	l.setDefaults()
	return &floodgate{limits: l, now: time.Now, senders: map[string]*sender{}, sweep: sweepAt,
		offenders: map[gozzard.AgentID]*sender{}}
}

// admit takes a message of a peer into account. soft: it is status, which may go.
func (g *floodgate) admit(name string, size int, soft bool) ruling {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sender(name, now)
	s.arrived.messages++
	s.arrived.bytes += int64(size)
	if now.Before(s.mutedUntil) {
		s.muted++
		s.mutedBytes += size
		if s.muted < cutMessages && s.mutedBytes < cutBytes {
			return ruling{drop: true}
		}
		s.muted, s.mutedBytes = 0, 0
		return ruling{drop: true, putOut: s.mutedUntil.Sub(now)}
	}

	if g.take(s, size, soft, now) {
		return ruling{}
	}

	s.dropped++
	s.droppedBytes += size
	if s.dropped < muteMessages && s.droppedBytes < muteBytes {
		return ruling{drop: true}
	}

	return ruling{drop: true, muted: g.mute(name, s, "floods the fabric", now)}
}

// asked pays for an answer in advance: what the server wants to know, such as the log of a process, is never too much.
func (g *floodgate) asked(name string) {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sender(name, now)
	s.messages.fill(g.limits.Messages, float64(g.limits.MessageBurst), now)
	s.bytes.fill(g.limits.Bytes, float64(g.limits.ByteBurst), now)
	s.messages.tokens++
	s.bytes.tokens += answerBytes
}

// take reports whether a message is within the limits, and pays for it.
func (g *floodgate) take(s *sender, size int, soft bool, now time.Time) bool {
	l := &g.limits
	s.messages.fill(l.Messages, float64(l.MessageBurst), now)
	s.bytes.fill(l.Bytes, float64(l.ByteBurst), now)
	reserve := 0.0

	if soft {
		reserve = 1.0 / statusReserve
	}
	if l.Messages > 0 && s.messages.tokens-1 < reserve*float64(l.MessageBurst) ||
		l.Bytes > 0 && s.bytes.tokens-float64(size) < reserve*float64(l.ByteBurst) {
		return false
	}

	s.messages.tokens--
	s.bytes.tokens -= float64(size)
	if s.messages.tokens > float64(l.MessageBurst)/2 && s.bytes.tokens > float64(l.ByteBurst)/2 {
		s.dropped, s.droppedBytes = 0, 0
	}

	return true
}

// unreadable counts a message that could not be read, and tells for how long the agent is to be put out, 0 for not.
func (g *floodgate) unreadable(name string) time.Duration {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sender(name, now)
	if s.malformed++; s.malformed < maxMalformed || now.Before(s.mutedUntil) {
		return 0
	}
	return g.mute(name, s, "sends what cannot be read", now)
}

// arrivedSince is how much of an agent has come in since this was asked last.
func (g *floodgate) arrivedSince(name string) (n said) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.senders[name]; s != nil {
		n, s.arrived = s.arrived, said{}
	}
	return n
}

// loud is about an agent that was found to say more than it may without being heard; it tells for how long that one
// is to be put out.
func (g *floodgate) loud(name string) time.Duration {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sender(name, now)
	if now.Before(s.mutedUntil) {
		return s.mutedUntil.Sub(now)
	}
	return g.mute(name, s, "floods the fabric", now)
}

// mute begins the time in which nothing of an agent is listened to. mu is held.
func (g *floodgate) mute(name string, s *sender, offence string, now time.Time) time.Duration {
	if now.Sub(s.offended) > offenceLife {
		s.strikes = 0
	}
	d := min(g.limits.Mute<<min(s.strikes, 10), max(longestMute, g.limits.Mute))
	s.strikes++
	_, agent, _ := strings.Cut(name, ".")
	g.offenders[gozzard.AgentID(agent)] = s
	s.offence, s.offended, s.mutedUntil = offence, now, now.Add(d)
	s.muted, s.mutedBytes, s.dropped, s.droppedBytes, s.malformed = 0, 0, 0, 0, 0
	return d
}

// flag tells what is wrong with an agent, "" for nothing in the last hour.
func (g *floodgate) flag(agent gozzard.AgentID) string {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.offenders[agent]
	switch {
	case s == nil:
		return ""
	case now.Before(s.mutedUntil):
		return fmt.Sprintf("muted until %s: it %s", s.mutedUntil.UTC().Format(time.RFC3339), s.offence)
	case now.Sub(s.offended) < offenceLife:
		return fmt.Sprintf("was muted at %s: it %s", s.offended.UTC().Format(time.RFC3339), s.offence)
	}

	delete(g.offenders, agent)
	return ""
}

// sender finds what is known of a peer. The names are the broker's, but where agents come with a secret anybody who
// has it can take any name: what is idle goes. mu is held.
func (g *floodgate) sender(name string, now time.Time) *sender {
	s := g.senders[name]
	if s == nil {
		if len(g.senders) >= g.sweep {
			for n, old := range g.senders {
				if now.Sub(old.heard) > idleSender && now.Sub(old.offended) > offenceLife {
					delete(g.senders, n)
					_, agent, _ := strings.Cut(n, ".")
					delete(g.offenders, gozzard.AgentID(agent))
				}
			}
			g.sweep = max(sweepAt, 2*len(g.senders))
		}
		s = new(sender)
		g.senders[name] = s
	}

	s.heard = now
	return s
}

// peerOf is the part of a subject that names the agent.
func peerOf(subject string) string {
	if len(subject) > len(subjectResult) && subject[:len(subjectResult)] == subjectResult {
		return subject[len(subjectResult):]
	}
	return subject[min(len(subject), len(subjectStatus)):]
}

// Flag tells in words what is wrong with an agent that sends too much or what cannot be read, "" for nothing in the
// last hour.
func (h *Hub) Flag(agent gozzard.AgentID) string { return h.gate.flag(agent) }

// letIn reports whether a message is to be looked at, and acts on its sender.
func (h *Hub) letIn(subject string, size int, soft bool) bool {
	name := peerOf(subject)
	r := h.gate.admit(name, size, soft)
	if !r.drop {
		return true
	}

	h.flooded.Add(1)
	h.opts.Refused(RuleFlood)

	if r.muted > 0 && h.said.first("flood "+name) {
		h.opts.Log.Warn("agent sends more than it may and is muted; gozzard hosts shows it", "peer", name, "muted",
			r.muted)
	}

	if r.putOut > 0 {
		h.opts.Broker.keepOut(name, r.putOut)
		if h.said.first("put out " + name) {
			h.opts.Log.Warn("agent goes on flooding and is put out", "peer", name, "out", r.putOut.Round(time.Second))
		}
	}

	return false
}

// unreadable counts a report that cannot be read against its sender, and ends the session of one that sends many.
func (h *Hub) unreadable(name string) {
	h.opts.Refused(RuleMalformed)
	out := h.gate.unreadable(name)
	if out == 0 {
		return
	}
	h.opts.Broker.keepOut(name, out)
	if h.said.first("unreadable " + name) {
		h.opts.Log.Warn("agent sends what cannot be read and is put out; gozzard hosts shows it", "peer", name, "out",
			out)
	}
}
