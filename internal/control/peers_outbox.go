package control

import (
	"slices"

	"github.com/gozzard/gozzard"
)

// outbox holds news until they are sent. Of one message, a receiver takes in reports and registrations first, and then
// what ended: silent hosts and removed processes. So what follows such an end of the same agent goes into another message.
type outbox struct {
	whole []gozzard.PeerNews // messages that are complete, oldest first
	news  gozzard.PeerNews   // the message that comes after them
	ended map[gozzard.AgentID]bool
}

// of is the message for a report of an agent, or a registration.
func (o *outbox) of(agent gozzard.AgentID) *gozzard.PeerNews {
	if o.ended[agent] {
		o.whole = append(o.whole, o.news)
		o.news = gozzard.PeerNews{}
		clear(o.ended)
	}
	return &o.news
}

// endOf is the message for the end of something of an agent.
func (o *outbox) endOf(agent gozzard.AgentID) *gozzard.PeerNews {
	if o.ended == nil {
		o.ended = map[gozzard.AgentID]bool{}
	}
	o.ended[agent] = true
	return &o.news
}

// take takes one message, and reports whether there is more.
func (o *outbox) take() (n gozzard.PeerNews, more bool) {
	from := &o.news
	if len(o.whole) > 0 {
		from = &o.whole[0]
	}
	n, *from = *from, gozzard.PeerNews{}

	// Keep back what is too much, and with it what must come last.
	if fit := fitting(n.Reports); fit < len(n.Reports) {
		from.Reports = slices.Clone(n.Reports[fit:])
		n.Reports, more = n.Reports[:fit], true
	}
	if len(n.Seeds) > peerItems {
		from.Seeds = slices.Clone(n.Seeds[peerItems:])
		n.Seeds, more = n.Seeds[:peerItems], true
	}
	if more {
		from.Silent, n.Silent = n.Silent, nil
		from.Removed, n.Removed = n.Removed, nil
	}

	switch {
	case more:
	case len(o.whole) > 0:
		o.whole, more = o.whole[1:], true
	default:
		clear(o.ended)
	}
	n.Tasks = sorted(n.Tasks)
	return n, more
}

// fitting is how many reports fit into a message.
func fitting(list []gozzard.PeerReport) int {
	bytes := 0
	for i := range min(len(list), peerItems) {
		r := list[i].Report
		bytes += 100 + 200*len(r.Statuses)
		if r.Logs != nil || r.History != nil || r.File != nil {
			bytes += peerBytes
		}
		if i > 0 && bytes > peerBytes {
			return i
		}
	}
	return min(len(list), peerItems)
}

// sorted sorts numbers and leaves each out that is there twice.
func sorted(list []gozzard.TaskSeq) []gozzard.TaskSeq {
	slices.Sort(list)
	return slices.Compact(list)
}
