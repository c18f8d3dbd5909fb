package live_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/live"
)

// world is a fleet that changes at random.
type world struct {
	x        *fleet.Index
	rng      *rand.Rand
	sessions uint64
	rounds   uint64
	places   *placeBook
	assigned map[int]map[gozzard.AgentID]bool
}

func (w *world) agent() gozzard.AgentID { return agentName(w.rng.IntN(6)) }

// addr is an address in one of two nets: 10.0.0.0/24 and 10.0.1.0/24.
func (w *world) addr() gozzard.HostAddr { return addr(w.rng.IntN(2), 256*w.rng.IntN(2)+w.rng.IntN(4)) }

func (w *world) key() gozzard.Key {
	spaces := []string{"mine", "foreign", gozzard.BusinessNamespace(2)}
	space := spaces[w.rng.IntN(len(spaces))]
	return gozzard.Key{Namespace: space, Name: fmt.Sprintf("%s-proc-%d", space, w.rng.IntN(5))}
}

func (w *world) status() gozzard.Status {
	k := w.key()
	s := status(k.Namespace, k.Name)
	s.CPU, s.MemBytes = float32(w.rng.IntN(3)), int64(w.rng.IntN(3))<<20
	s.PID, s.Restarts = int32(w.rng.IntN(2)), uint32(w.rng.IntN(2))
	s.Condition = gozzard.ConditionRunning + gozzard.Condition(w.rng.IntN(3))
	s.Kind, s.Health = gozzard.ShownKind(w.rng.IntN(3)), gozzard.Health(w.rng.IntN(3))
	return s
}

func (w *world) statuses() (list []gozzard.Status) {
	for range w.rng.IntN(4) {
		list = append(list, w.status())
	}
	return list
}

// change changes something: a host, its rows, or places.
func (w *world) change() {
	switch w.rng.IntN(13) {
	case 0, 1:
		w.sessions++
		w.x.PutHost(hostAt(w.agent(), w.sessions, w.rng.IntN(4) > 0, w.addr()))
	case 2:
		w.x.SetAddrs(w.agent(), []gozzard.HostAddr{w.addr(), w.addr()})
	case 3:
		w.x.SetOnline(w.agent(), w.rng.IntN(2) == 0, time.Unix(1, 0))

	case 4, 5, 6:
		w.x.Apply(w.agent(), w.statuses(), nil)
	case 7:
		w.x.Apply(w.agent(), w.statuses(), []gozzard.Key{w.key(), w.key()})
	case 8, 9:
		w.rounds++
		w.x.Full(w.agent(), w.rounds, 0, 1, w.statuses())

	case 10:
		w.x.Seed(w.agent(), w.status())
	case 11:
		w.x.Remove(w.agent(), w.key())
		if w.rng.IntN(4) == 0 {
			w.x.Rebind(w.agent(), w.agent())
		}
		if w.rng.IntN(4) == 0 {
			w.x.Forget(w.agent())
		}

	case 12:
		w.places.generation++
		w.places.set = fmt.Sprintf("set-%d", w.rng.IntN(3))
		w.assigned[2][w.agent()] = w.rng.IntN(2) == 0
	}
}

// TestModel compares viewers with queries, after random changes of the fleet. Viewers read at different paces.
func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		w := &world{x: fleet.New(), rng: rand.New(rand.NewPCG(seed, 7)), places: &placeBook{},
			assigned: map[int]map[gozzard.AgentID]bool{2: {}}}
		hub := live.New(live.Options{Fleet: w.x, Places: w.places})
		grant := func(g gozzard.Grant) *gozzard.Rights {
			g.Role = gozzard.RoleViewer
			return &gozzard.Rights{Grants: []gozzard.Grant{g},
				Assigned: func(biz int, h gozzard.HostRef) bool { return w.assigned[biz][h.Agent] }}
		}
		mine := grant(gozzard.Grant{Namespaces: []string{"mine"}, Hosts: gozzard.HostsAny})
		net := grant(gozzard.Grant{Hosts: gozzard.HostsListed, Nets: []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")}})
		biz := grant(gozzard.Grant{Businesses: []int{2}, Hosts: gozzard.HostsAssigned})

		for range 30 {
			w.change()
		}
		var viewers []*viewer
		for _, r := range []*gozzard.Rights{gozzard.Everything(), mine, net, biz} {
			viewers = append(viewers, join(t, hub, r))
		}

		for step := range 80 {
			for range w.rng.IntN(6) {
				w.change()
			}
			hub.Tick() // twice: the first may find that places have moved
			for i, v := range viewers {
				if w.rng.IntN(3) > 0 {
					continue
				}
				v.read()
				if got, want := v.lines(), wanted(w.x, v.rights, w.places); got != want {
					t.Fatalf("seed %d, step %d, viewer %d:\n%s\nwant:\n%s", seed, step, i, got, want)
				}
			}
		}

		// A new viewer has the same, and hosts are those of queries.
		for i, v := range viewers {
			v.read()
			fresh := join(t, hub, v.rights)
			fresh.read()
			if got, want := v.lines(), fresh.lines(); got != want {
				t.Fatalf("seed %d, viewer %d:\n%s\na new one:\n%s", seed, i, got, want)
			}
			if got, want := v.hosts(), wantedHosts(w.x, v.rights); got != want {
				t.Fatalf("seed %d, viewer %d, hosts:\n%s\nwant:\n%s", seed, i, got, want)
			}
			if got, want := fresh.hosts(), v.hosts(); got != want {
				t.Fatalf("seed %d, hosts of a new viewer %d:\n%s\nwant:\n%s", seed, i, got, want)
			}
			fresh.view.Close()
		}
		if n := bytes.Count(viewers[1].sent.Bytes(), []byte("foreign")); n > 0 {
			t.Fatalf("seed %d: the viewer of one namespace got %d foreign names", seed, n)
		}
		for _, v := range viewers {
			v.view.Close()
		}
	}
}
