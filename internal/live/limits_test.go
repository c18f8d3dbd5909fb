package live_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/live"
)

// smallFleet has hosts with some processes each.
func smallFleet(hosts, each int) *fleet.Index {
	x := fleet.New()
	for h := range hosts {
		x.PutHost(hostAt(agentName(h), 1, true, addr(0, h)))
		x.Full(agentName(h), 1, 0, 1, report(h, each, 0))
	}
	return x
}

func report(h, each, round int) []gozzard.Status {
	list := make([]gozzard.Status, each)
	for i := range list {
		list[i] = status(fmt.Sprintf("space-%d", h%10), fmt.Sprintf("service-%d", i))
		list[i].CPU, list[i].MemBytes = float32((h+i+round)%100), int64(round)<<20
		list[i].PID = int32(1000*h + i)
	}
	return list
}

// A viewer that reads nothing costs no memory beyond the bound of its audience, and needs a new snapshot in the end.
func TestSlowViewer(t *testing.T) {
	x := smallFleet(20, 100)
	hub := live.New(live.Options{Fleet: x})
	slow, quick := join(t, hub, gozzard.Everything()), join(t, hub, gozzard.Everything())
	defer slow.view.Close()
	defer quick.view.Close()

	for round := range 100 {
		for h := range 20 {
			x.Apply(agentName(h), report(h, 100, round+1), nil)
		}
		hub.Tick()
		if n := quick.view.RingBytes(); n > live.RingLeast {
			t.Fatalf("the audience keeps %d bytes, more than %d", n, live.RingLeast)
		}
		if !quick.read() {
			t.Fatal("the quick viewer needed a new snapshot")
		}
	}
	if slow.read() {
		t.Fatal("the slow viewer went on, although more has changed than is kept")
	}
	if slow.read(); slow.lines() != quick.lines() {
		t.Fatal("the slow viewer has other rows after its new snapshot")
	}
}

// Names that come and go do not make the dictionaries of an audience grow without end.
func TestWornDictionaries(t *testing.T) {
	x := smallFleet(1, 10)
	hub := live.New(live.Options{Fleet: x})
	v := join(t, hub, gozzard.Everything())
	defer v.view.Close()

	epoch, most := v.table.Epoch, 0
	for round := range 40 {
		list := report(0, 10, round)
		for i := range 500 {
			list = append(list, status("space-0", fmt.Sprintf("churn-%d-%d", round, i)))
		}
		x.Full(agentName(0), uint64(round+2), 0, 1, list)
		hub.Tick()
		v.read()
		most = max(most, len(v.table.Names.Name))
	}
	if v.table.Epoch == epoch || most > 10_000 {
		t.Fatalf("epoch %s, then %s; %d names at most: want a new epoch before 10000", epoch, v.table.Epoch, most)
	}
	if got, want := v.lines(), wanted(x, gozzard.Everything(), nil); got != want {
		t.Fatalf("rows:\n%s\nwant:\n%s", got, want)
	}
}

// While nobody views, nothing is recorded; a viewer that comes back goes on where it was.
func TestRun(t *testing.T) {
	x := smallFleet(3, 4)
	hub := live.New(live.Options{Fleet: x})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = hub.Run(ctx) })
	defer wg.Wait()
	defer cancel()

	if rows, hosts := x.TakeChanges(nil, nil); len(rows)+len(hosts) > 0 {
		t.Fatalf("%d rows and %d hosts are recorded without a viewer", len(rows), len(hosts))
	}
	v := join(t, hub, gozzard.Everything())
	if c := hub.Counts(); c.Viewers != 1 || c.Audiences != 1 {
		t.Fatalf("counts %+v, want 1 viewer and 1 audience", c)
	}
	x.SetOnline(agentName(1), false, x.Hosts(gozzard.Everything())[0].LastSeen)
	eventually(t, "a change on the stream", func() bool { v.read(); return v.table.Seq > 0 })
	v.view.Close()

	x.Apply(agentName(2), report(2, 4, 9), nil)
	back, err := hub.Join(gozzard.Everything())
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	v.view = back
	want := wanted(x, gozzard.Everything(), nil)
	eventually(t, "the missed change", func() bool {
		if !v.read() {
			t.Fatal("the viewer that came back needed a new snapshot")
		}
		return v.lines() == want
	})
}

// Nothing that a viewer may not see is in any byte that it gets: names, hosts, and the places of hosts.
func TestForeignBytes(t *testing.T) {
	x := fleet.New()
	secret := func(i int) (gozzard.AgentID, gozzard.HostAddr) {
		return gozzard.AgentID(fmt.Sprintf("secret-agent-%d", i)), gozzard.HostAddr{IP: netip.AddrFrom4([4]byte{172, 16, 9, byte(i)})}
	}
	change := func(round int) {
		for i := range 20 {
			agent, at := secret(i)
			x.PutHost(hostAt(agent, uint64(round), round%2 == 0, at))
			x.Full(agent, uint64(round), 0, 1, []gozzard.Status{status("open", "secret-here"), status("secret-space", "secret-proc")})
			x.Full(agentName(i), uint64(round), 0, 1, append(report(i, 3, round), status("secret-space", "secret-proc")))
		}
	}
	for i := range 20 {
		x.PutHost(hostAt(agentName(i), 1, true, addr(0, i)))
	}
	change(1)

	hub := live.New(live.Options{Fleet: x})
	rights := &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleViewer, Namespaces: []string{"space-*", "open"},
		Hosts: gozzard.HostsListed, Nets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}}
	v := join(t, hub, rights)
	defer v.view.Close()
	for round := range 20 {
		change(round + 2)
		hub.Tick()
		v.read()
	}
	v.snapshot()
	for _, word := range []string{"secret", "172.16", "open"} {
		if n := bytes.Count(v.sent.Bytes(), []byte(word)); n > 0 {
			t.Errorf("%q is %d times in what the viewer got", word, n)
		}
	}
	if len(v.table.Rows) != 60 || len(v.table.Hosts.Agent) != 20 {
		t.Errorf("%d rows on %d hosts, want 60 on 20", len(v.table.Rows), len(v.table.Hosts.Agent))
	}
	for _, r := range v.table.Rows {
		if r.ID >= 60 {
			t.Errorf("id %d shows how many other rows there are", r.ID)
		}
	}

	// A host that moves out of sight leaves no text in a new snapshot.
	x.SetAddrs(agentName(0), []gozzard.HostAddr{{IP: netip.MustParseAddr("172.16.1.1")}})
	hub.Tick()
	if v.read(); len(v.table.Rows) != 57 || v.table.Hosts.Online[0] != client.LiveGone {
		t.Errorf("%d rows, host state %d: want 57, and gone", len(v.table.Rows), v.table.Hosts.Online[0])
	}
}

// The details of rows are of those that are visible, and of the epoch.
func TestRows(t *testing.T) {
	x := smallFleet(2, 3)
	hub := live.New(live.Options{Fleet: x})
	v := join(t, hub, gozzard.Everything())
	defer v.view.Close()

	rows, ids, ok := v.view.Rows(v.table.Epoch, []uint32{5, 1, 77, 4_000_000_000})
	if !ok || len(rows) != 2 || ids[0] != 5 || ids[1] != 1 {
		t.Fatalf("rows %v, ids %v, ok %t", rows, ids, ok)
	}
	if name := v.table.Names.Name[v.table.Rows[5].Name]; rows[0].Status.Name != name {
		t.Errorf("row 5 is %s, want %s", rows[0].Status.Name, name)
	}
	if _, _, ok := v.view.Rows("other", []uint32{1}); ok {
		t.Error("ids of another epoch have rows")
	}
	x.Forget(agentName(0))
	if rows, _, _ := v.view.Rows(v.table.Epoch, []uint32{0, 1, 2}); len(rows) != 0 {
		t.Errorf("%d rows of a host that is gone", len(rows))
	}
}

// Rights that show the same share an audience, others do not.
func TestAudiences(t *testing.T) {
	hub := live.New(live.Options{Fleet: smallFleet(2, 2)})
	space := func(role gozzard.Role, name string, accounts ...string) *gozzard.Rights {
		return &gozzard.Rights{Grants: []gozzard.Grant{{Role: role, Namespaces: []string{name}, Hosts: gozzard.HostsAny,
			Accounts: accounts}}}
	}
	a := join(t, hub, space(gozzard.RoleViewer, "space-1"))
	defer a.view.Close()
	if !a.view.Fits(space(gozzard.RoleOperator, "space-1", "www")) || a.view.Fits(space(gozzard.RoleViewer, "space-2")) ||
		a.view.Fits(gozzard.Everything()) || a.view.Fits(nil) {
		t.Error("the view fits other rights than those that show the same")
	}
	if len(a.table.Rows) != 2 {
		t.Errorf("%d rows, want 2", len(a.table.Rows))
	}
	if _, err := hub.Join(&gozzard.Rights{}); err == nil {
		t.Error("a viewer without rights joined")
	}
}

// A viewer that is expected finds its audience, and nothing stays behind if it does not come.
func TestExpectedViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Options{Fleet: smallFleet(20, 10)})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = hub.Run(ctx) }) // ends without an error
		defer running.Wait()
		defer stop()

		hub.Expect(nil) // has no rights: nothing is made
		synctest.Wait()
		if c := hub.Counts(); c.Audiences != 0 {
			t.Fatalf("%d audiences for a viewer without rights", c.Audiences)
		}

		hub.Expect(gozzard.Everything())
		synctest.Wait()
		if c := hub.Counts(); c.Audiences != 1 || c.Viewers != 0 {
			t.Fatalf("%d audiences and %d viewers, want 1 and 0", c.Audiences, c.Viewers)
		}
		v := join(t, hub, gozzard.Everything())
		if c := hub.Counts(); c.Audiences != 1 || c.Viewers != 1 {
			t.Fatalf("%d audiences and %d viewers, want 1 of each", c.Audiences, c.Viewers)
		}
		v.view.Close()

		time.Sleep(5 * time.Minute) // of the test's own clock
		if c := hub.Counts(); c.Audiences != 0 {
			t.Errorf("%d audiences are left without a viewer", c.Audiences)
		}
	})
}
