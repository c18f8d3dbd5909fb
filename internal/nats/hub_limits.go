package nats

import (
	"time"

	"github.com/gozzard/gozzard"
)

// Flag describes what is wrong with an agent that sends too much or messages that cannot be read. It is "" when there
// was nothing in the last hour.
func (h *Hub) Flag(agent gozzard.AgentID) string { return h.limiter.flag(agent) }

// withinLimits reports whether a message may be processed. It mutes or bans a sender that exceeds its limits.
func (h *Hub) withinLimits(subject string, size int, soft bool) bool {
	name := agentNameOf(subject)
	d := h.limiter.check(name, size, soft)
	if !d.drop {
		return true
	}

	h.flooded.Add(1)
	h.opts.Refused(RuleFlood)

	if d.muted > 0 && h.logged.first("muted "+name) {
		h.opts.Log.Warn("agent is muted: it sends more than its limits allow; gozzard hosts shows it",
			"sender", name, "muted", d.muted)
	}
	if d.ban > 0 {
		h.ban(name, d.ban)
	}
	return false
}

// rejectMalformed counts a report that cannot be decoded, and bans a sender of many.
func (h *Hub) rejectMalformed(name string) {
	h.opts.Refused(RuleMalformed)

	d := h.limiter.countMalformed(name)
	if d == 0 {
		return
	}
	h.opts.Broker.ban(name, d)
	if h.logged.first("malformed ban " + name) {
		h.opts.Log.Warn("agent is banned: it sends messages that cannot be read; gozzard hosts shows it",
			"sender", name, "banned", d)
	}
}

// banBusyAgents bans agents that flood the broker with messages that do not reach the hub, until stop is closed.
func (h *Hub) banBusyAgents(stop <-chan struct{}) {
	tick := time.NewTicker(busyInterval)
	defer tick.Stop()

	busy := busyAgents{at: h.limiter.now()}
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}

		st, now := h.conn.Stats(), h.limiter.now()
		passed := traffic{messages: int64(st.InMsgs + st.OutMsgs), bytes: int64(st.InBytes + st.OutBytes)}
		if !busy.suspects(h.opts.Broker.server, h.limiter, passed, now) {
			continue
		}
		for _, name := range busy.find(h.opts.Broker, h.limiter, now) {
			d := h.limiter.muteBusy(name)
			h.opts.Refused(RuleFlood)
			h.ban(name, d)
		}
	}
}

// ban bans an agent that floods the fabric.
func (h *Hub) ban(name string, d time.Duration) {
	h.opts.Broker.ban(name, d)
	if h.logged.first("ban " + name) {
		h.opts.Log.Warn("agent is banned: it floods the fabric; gozzard hosts shows it",
			"sender", name, "banned", d.Round(time.Second))
	}
}

// agentNameOf is the part of a subject that names the agent.
func agentNameOf(subject string) string {
	if len(subject) > len(subjectResult) && subject[:len(subjectResult)] == subjectResult {
		return subject[len(subjectResult):]
	}
	return subject[min(len(subject), len(subjectStatus)):]
}
