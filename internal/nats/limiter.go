package nats

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// limiter applies the Limits to every message, before anything else looks at it.
type limiter struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex
	senders map[string]*sender // by agent name
	sweep   int                // idle senders are removed when there are this many

	offenders map[gozzard.AgentID]*sender // muted within the last hour; older entries are removed when they are read
}

// sender is what the limiter remembers of one agent.
type sender struct {
	messages, bytes allowance
	seen            time.Time
	arrived         traffic // since busyAgents asked last

	dropped      int // messages beyond the limits, since the agent last kept them
	droppedBytes int
	malformed    int

	offence    string // the newest, as the verb and object of a sentence about the agent
	offended   time.Time
	offences   int
	mutedUntil time.Time
	muted      int // messages since the mute or the last ban
	mutedBytes int
}

// traffic is how much an agent has sent.
type traffic struct{ messages, bytes int64 }

// decision is what happens to a message and to its sender.
type decision struct {
	drop  bool
	muted time.Duration // above 0: this message muted the agent for so long
	ban   time.Duration // above 0: the caller must ban the agent for so long
}

func newLimiter(l Limits) *limiter {
	l.setDefaults()
	return &limiter{
		limits: l, now: time.Now, senders: map[string]*sender{}, sweep: sweepAt,
		offenders: map[gozzard.AgentID]*sender{},
	}
}

// check counts a message of an agent and decides about it. soft: the message is status, which is dropped first.
func (l *limiter) check(name string, size int, soft bool) decision {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()

	s := l.sender(name, now)
	s.arrived.messages++
	s.arrived.bytes += int64(size)

	// Drop everything of a muted agent, and ban it if it does not stop.
	if now.Before(s.mutedUntil) {
		s.muted++
		s.mutedBytes += size
		if s.muted < banMessages && s.mutedBytes < banBytes {
			return decision{drop: true}
		}
		s.muted, s.mutedBytes = 0, 0
		return decision{drop: true, ban: s.mutedUntil.Sub(now)}
	}

	// Accept what is within the limits.
	if s.spend(size, soft, now) {
		return decision{}
	}

	// Drop the rest, and mute an agent that sends much of it.
	s.dropped++
	s.droppedBytes += size
	if s.dropped < muteMessages && s.droppedBytes < muteBytes {
		return decision{drop: true}
	}
	return decision{drop: true, muted: l.mute(name, s, "floods the fabric", now)}
}

// spend reports whether a message is within the limits, and counts it against them.
func (s *sender) spend(size int, soft bool, now time.Time) bool {
	reserve := 0.0
	if soft {
		reserve = statusReserve
	}

	if !s.messages.covers(1, reserve, now) || !s.bytes.covers(size, reserve, now) {
		return false
	}
	s.messages.spend(1, now)
	s.bytes.spend(size, now)

	if s.messages.halfFull(now) && s.bytes.halfFull(now) {
		s.dropped, s.droppedBytes = 0, 0
	}
	return true
}

// expectAnswer gives an agent credit for one answer: data that the server asks for, such as the log of a process,
// never counts as a flood.
func (l *limiter) expectAnswer(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	s := l.sender(name, l.now())
	s.messages.credit++
	s.bytes.credit += answerBytes
}

// countMalformed counts a message that cannot be decoded. It returns for how long the agent must be banned, 0 for not.
func (l *limiter) countMalformed(name string) time.Duration {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()

	s := l.sender(name, now)
	s.malformed++
	if s.malformed < maxMalformed || now.Before(s.mutedUntil) {
		return 0
	}
	return l.mute(name, s, "sends messages that cannot be read", now)
}

// takeArrived returns how much of an agent has arrived since the last call.
func (l *limiter) takeArrived(name string) (n traffic) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if s := l.senders[name]; s != nil {
		n, s.arrived = s.arrived, traffic{}
	}
	return n
}

// muteBusy mutes an agent that busyAgents found. It returns for how long the agent must be banned.
func (l *limiter) muteBusy(name string) time.Duration {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()

	s := l.sender(name, now)
	if now.Before(s.mutedUntil) {
		return s.mutedUntil.Sub(now)
	}
	return l.mute(name, s, "floods the fabric", now)
}

// mute starts the period in which all messages of an agent are dropped. mu is held.
func (l *limiter) mute(name string, s *sender, offence string, now time.Time) time.Duration {
	if now.Sub(s.offended) > offenceLife {
		s.offences = 0
	}
	d := min(l.limits.Mute<<min(s.offences, 10), max(longestMute, l.limits.Mute))
	s.offences++

	l.offenders[agentOf(name)] = s
	s.offence, s.offended, s.mutedUntil = offence, now, now.Add(d)
	s.muted, s.mutedBytes, s.dropped, s.droppedBytes, s.malformed = 0, 0, 0, 0, 0
	return d
}

// flag describes the newest offence of an agent, "" for none in the last hour.
func (l *limiter) flag(agent gozzard.AgentID) string {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()

	s := l.offenders[agent]
	switch {
	case s == nil:
		return ""
	case now.Before(s.mutedUntil):
		return fmt.Sprintf("muted until %s: it %s", s.mutedUntil.UTC().Format(time.RFC3339), s.offence)
	case now.Sub(s.offended) < offenceLife:
		return fmt.Sprintf("was muted at %s: it %s", s.offended.UTC().Format(time.RFC3339), s.offence)
	}

	delete(l.offenders, agent)
	return ""
}

// sender returns the entry of an agent and makes it if there is none. An agent with the join secret can connect under
// any name, so idle senders are removed. mu is held.
func (l *limiter) sender(name string, now time.Time) *sender {
	s := l.senders[name]
	if s == nil {
		if len(l.senders) >= l.sweep {
			l.removeIdle(now)
			l.sweep = max(sweepAt, 2*len(l.senders))
		}
		s = &sender{
			messages: newAllowance(l.limits.Messages, l.limits.MessageBurst),
			bytes:    newAllowance(l.limits.Bytes, l.limits.ByteBurst),
		}
		l.senders[name] = s
	}

	s.seen = now
	return s
}

// removeIdle forgets senders that are silent and have no recent offence. mu is held.
func (l *limiter) removeIdle(now time.Time) {
	for name, s := range l.senders {
		if now.Sub(s.seen) > idleSender && now.Sub(s.offended) > offenceLife {
			delete(l.senders, name)
			delete(l.offenders, agentOf(name))
		}
	}
}

// agentOf is the agent in the name of an agent at the broker.
func agentOf(name string) gozzard.AgentID {
	_, agent, _ := strings.Cut(name, ".")
	return gozzard.AgentID(agent)
}
