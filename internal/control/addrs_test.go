package control_test

import (
	"net/netip"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// TestTS11AddressesWithoutEnrolment: an agent of a server that enrols no hosts reports 200 addresses, and some of
// another cloud area. It has the first 16, and that is one event.
func TestTS11AddressesWithoutEnrolment(t *testing.T) {
	r := newRig(t)
	var said []gozzard.HostAddr
	for n := range 200 {
		said = append(said, gozzard.HostAddr{Cloud: n % 2, IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})})
	}
	for session := uint64(1); session <= 3; session++ {
		n := len(r.commands(me, gozzard.CommandWelcome))
		r.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHello, Session: session,
			Journal: journalA, Hello: &gozzard.Hello{Host: gozzard.HostInfo{Agent: me, Addrs: said}}})
		r.until("no welcome", func() bool { return len(r.commands(me, gozzard.CommandWelcome)) > n })
	}

	h, ok := r.plane.Resolve(caller, gozzard.Target{Agent: me})
	if !ok || len(h.Info.Addrs) != gozzard.MaxHostAddrs {
		t.Fatalf("the host has %v", h.Info.Addrs)
	}
	for i, a := range h.Info.Addrs {
		if a != said[2*i] {
			t.Errorf("address %d is %s, want %s", i, a, said[2*i])
		}
	}
	if _, ok := r.plane.Resolve(caller, gozzard.Target{Addr: said[40]}); ok {
		t.Errorf("%s is an address of the host", said[40])
	}
	foreign := record.EventFilter{Kinds: []gozzard.EventKind{gozzard.EventForeignAddress}}
	r.until("there is no event", func() bool { return len(r.newest(caller, foreign, 1).Events) > 0 })
	page := r.newest(caller, foreign, 10)
	if len(page.Events) != 1 || page.Events[0].Agent != me {
		t.Errorf("the events are %+v", page.Events)
	}
}
