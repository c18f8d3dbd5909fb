package nats

import (
	"net/netip"
	"slices"
)

// RuleRelayArea is the rule that rejects agents which come through a relay of other cloud areas, as the metrics count it.
const RuleRelayArea = "relay_area"

// Passage is how an agent behind a relay reached the broker.
type Passage struct {
	Relay string // id
	From  string // address of the host, as the relay says
	Areas []int  // cloud areas of the relay
}

// Through finds the passage of a connection by the address, as host:port, that it has for the broker. ok is false for a
// connection that came directly. It may be nil: then all came directly.
type Through func(remote string) (p Passage, ok bool)

// mayBring reports whether a connection from an address may be that of an agent of a cloud area.
func (t Through) mayBring(remote string, cloud int) bool {
	if t == nil {
		return true
	}
	p, ok := t(remote)
	return !ok || slices.Contains(p.Areas, cloud)
}

// origin is what counts as one client: the network that a connection came from, behind a relay as the relay says. All
// IPv6 addresses of one /64 network are one, because one machine can use any number of them.
func (t Through) origin(remote string) string {
	if t != nil {
		if p, ok := t(remote); ok {
			return p.Relay + " " + networkOf(p.From)
		}
	}
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "" // all connections that are not TCP share this one
	}
	return network(ap.Addr()).String()
}
