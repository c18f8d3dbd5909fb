package nats

import "time"

// Limits is how much one agent may send. The hub drops messages beyond the limits before it decodes them, status
// first. An agent that continues is muted: all of its messages are dropped for a while. An agent that continues even
// then is banned: its connection is closed, and it cannot connect again until the mute ends. A zero field has the
// default value; a negative rate means no limit.
type Limits struct {
	Messages     float64 // messages per second
	MessageBurst int     // messages at once
	Bytes        float64 // bytes per second
	ByteBurst    int     // bytes at once

	// Mute is the duration of the first mute. Each further offence within an hour doubles it.
	Mute time.Duration
}

// DefaultLimits are above what an honest agent can send. An agent sends results at most every 3 milliseconds and
// changes at most every 30, so it stays below 400 messages per second. 2,000 processes that change at once, each with
// a message of several kilobytes, fit into the burst. Decoding one megabyte of status costs the server about ten
// milliseconds.
func DefaultLimits() Limits {
	return Limits{Messages: 500, MessageBurst: 8000, Bytes: 2 << 20, ByteBurst: 16 << 20, Mute: time.Minute}
}

// The rules that reject messages and connections of agents, as the metrics count them.
const (
	RuleFlood     = "agent_flood"     // a message beyond the limits
	RuleMalformed = "agent_malformed" // a message that cannot be decoded
	RuleBanned    = "agent_kept_out"  // a connection of a banned agent
)

const (
	// A quarter of the burst is reserved for results: status is dropped first.
	statusReserve = 1.0 / 4

	// An agent is muted after this many dropped messages or bytes. An agent that is only busy slows down before that,
	// because the server acknowledges nothing of what was dropped.
	muteMessages = 200
	muteBytes    = 4 << 20

	// A muted agent is banned after this many further messages or bytes.
	banMessages = 1000
	banBytes    = 16 << 20

	// An agent is banned after this many messages that cannot be decoded.
	maxMalformed = 10

	// The largest answer to one request of the server, such as the log of a process.
	answerBytes = 300 << 10

	offenceLife = time.Hour        // an offence is forgotten after this time
	longestMute = time.Hour        // unless Limits.Mute is longer
	idleSender  = 10 * time.Minute // a sender that is silent for this long is forgotten
	sweepAt     = 4096             // a map of peers is cleaned up when it has this many entries
)

// setDefaults fills in the zero fields. A rate without a burst gets the burst of five seconds.
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
