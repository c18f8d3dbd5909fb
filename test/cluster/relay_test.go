//go:build linux

package cluster_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// TestRelay: hosts join through a relay and are operated through it by any server. A relay that loses its folder joins
// again, and one that is removed carries nothing any more.
func TestRelay(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newRelayed(t, 2)
	a, b := i.servers[0], i.servers[1]
	r := a.relay("plant", relayArea, 4)
	agent := r.host(a, faultHost(1))
	a.online(faultHost(1), true)
	b.online(faultHost(1), true)
	if !r.through(agent) || i.homeOf(agent) != nil {
		t.Fatal("the agent is not connected to the relay alone")
	}
	i.operate(faultHost(1), "web")

	// The servers say what they know of it.
	ft.Until(t, time.Minute, func() string { return a.cli("relays") }, func() bool {
		out := a.cli("relays")
		return strings.Contains(out, "plant") && strings.Contains(out, "3,4") && strings.Contains(out, "active") &&
			strings.Contains(out, r.agents) && strings.Contains(b.cli("relays"), r.id())
	})

	// A host that is revoked is cut off through the relay, too, and stays out.
	second := r.host(b, faultHost(2))
	b.online(faultHost(2), true)
	a.cli("hosts", "revoke", fmt.Sprintf("%d:%s", relayArea, faultHost(2)))
	a.online(faultHost(2), false)
	b.online(faultHost(2), false)
	ft.Until(t, time.Minute, second.Output, func() bool { return strings.Contains(second.Output(), "rejects this agent") })

	// Without its folder it joins again, and the hosts behind it are back.
	sessions := agent.Sessions()
	r.Kill(syscall.SIGKILL)
	if err := os.RemoveAll(r.data); err != nil {
		t.Fatal(err)
	}
	r.join(b, "plant-again", relayArea)
	r.again()
	ft.Until(t, time.Minute, agent.Output, func() bool { return agent.Sessions() > sessions })
	a.online(faultHost(1), true)
	i.operate(faultHost(1), "again")

	// A relay that is removed at one server is cut off at the other one, and the hosts behind it are gone.
	for _, m := range i.servers {
		if m != r.upstream() {
			m.cli("relays", "remove", r.id())
			break
		}
	}
	a.online(faultHost(1), false)
	ft.Until(t, time.Minute, r.Output, func() bool { return strings.Contains(r.Output(), "it was removed") })
	if out := b.cli("relays"); strings.Contains(out, r.id()) {
		t.Errorf("a removed relay is listed: %s", out)
	}
}

// operate starts and stops a daemon on a host, through each server.
func (i *installation) operate(ip, name string) {
	i.t.Helper()
	d := ft.NewDaemon(i.t, i.t.TempDir(), name)
	for round := range 4 {
		m := i.servers[round%len(i.servers)]
		task := m.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "shop", "name": name}, "op_type": round % 2,
			"hosts": []ft.J{{"ip": ip, "bk_cloud_id": i.cloud}}, "spec": d.Spec(nil)})
		for key, e := range m.Await(task) {
			if e.Code != 0 {
				i.t.Errorf("round %d through %s: %s: %d %s", round, m.listen, key, e.Code, e.Msg)
			}
		}
	}
	if starts, stops := d.Count("start"), d.Count("stop"); starts != 2 || stops != 2 {
		i.t.Errorf("%d starts and %d stops, want 2 of each", starts, stops)
	}
}

// C7: one of two relays of a network, the server that a relay is connected to, and both at once are killed under load. The
// hosts behind them go through the other relay, or through the same one to another server.
func TestC7RelaysKilledUnderLoad(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newRelayed(t, 2)
	f := &loaded{installation: i}
	relays := []*relay{i.servers[0].relay("one", relayArea), i.servers[1].relay("two", relayArea)}
	for n, r := range relays {
		r.knows(2)
		f.agents = append(f.agents, r.host(i.servers[n], faultHost(n+1)))
	}
	for _, agent := range f.agents {
		ft.Until(t, time.Minute, agent.Output, func() bool { return i.knownTo(agent) == 2 })
	}
	f.settle()

	for _, fault := range []struct {
		name          string
		relay, server bool // are killed
	}{
		{"one of two relays killed", true, false},
		{"the server of a relay killed", false, true},
		{"a relay and its server killed at once", true, true},
	} {
		f.fresh((fewOps() + 2) / 3) // the three lines are one test of relays
		l := line{id: "C7", fault: fault.name, times: *faultKills, since: "the kill, on the hosts behind both relays", goal: true}
		end := f.begin()
		for n := range l.times {
			time.Sleep(500 * time.Millisecond) // operations are under way
			l.took = append(l.took, f.killRelay(relays[n%2], fault.relay, fault.server)...)
		}
		end()
		f.judge(l, ledger.Floor{OK: 30, Percent: 50})
	}
}

// killRelay kills a relay, the server that it is connected to, or both, waits until the hosts are served, and starts again
// what was killed.
func (f *loaded) killRelay(r *relay, relay, server bool) []time.Duration {
	f.t.Helper()
	var upstream *member
	ft.Until(f.t, time.Minute, r.Output, func() bool { upstream = r.upstream(); return upstream != nil })
	began := time.Now()
	if relay {
		r.Kill(syscall.SIGKILL)
	}
	if server {
		upstream.Kill(syscall.SIGKILL)
	}
	took := f.served(f.hosts(), began)

	if relay {
		r.again()
	}
	if server {
		upstream.Again()
		upstream.answers()
	}
	return took
}
