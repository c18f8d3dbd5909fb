//go:build linux

package cluster_test

import (
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestRelayLeavesDrainedServer: the hosts behind a relay leave a drained server with it, and it stays with the last server
// that takes relays.
func TestRelayLeavesDrainedServer(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newRelayed(t, 2)
	r := i.servers[0].relay("plant", relayArea)
	r.host(i.servers[0], faultHost(1))
	r.knows(2)
	for range 2 { // there and back
		from := r.upstream()
		if from == nil {
			t.Fatal("the relay has no server")
		}
		to := i.servers[0]
		if to == from {
			to = i.servers[1]
		}
		to.cli("servers", "drain", from.id(), "--wait")
		ft.Until(t, time.Minute, r.Output, func() bool { return r.upstream() == to })
		for _, m := range i.servers {
			m.online(faultHost(1), true)
		}
		i.operate(faultHost(1), "web")
		to.cli("servers", "undrain", from.id())
		r.knows(2)
	}

	// A server that takes no relays does not help them.
	third, at := i.add(), r.upstream()
	for _, m := range i.servers[:2] {
		if m != at {
			third.cli("servers", "drain", m.id())
		}
	}
	r.knows(1)
	third.cli("servers", "drain", at.id())
	time.Sleep(25 * time.Second) // it would have left
	if now := r.upstream(); now == nil || now != at {
		t.Error("the relay left the last server that takes relays")
	}
	i.operate(faultHost(1), "last")
}
