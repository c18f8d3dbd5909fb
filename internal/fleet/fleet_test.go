package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// all are the rights to see everything.
var all = gozzard.Everything()

func agentName(i int) gozzard.AgentID { return gozzard.AgentID(fmt.Sprintf("agent-%d", i)) }

func addr(cloud, i int) gozzard.HostAddr {
	return gozzard.HostAddr{Cloud: cloud, IP: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}
}

func hostAt(agent gozzard.AgentID, addrs ...gozzard.HostAddr) fleet.Host {
	return fleet.Host{Info: gozzard.HostInfo{Agent: agent, Addrs: addrs, Hostname: "h-" + string(agent)}, Session: 1,
		Online: true, LastSeen: time.Unix(100, 0)}
}

func status(ns, name string) gozzard.Status {
	return gozzard.Status{Key: gozzard.Key{Namespace: ns, Name: name}, State: gozzard.StateRunning,
		Wanted: gozzard.StateRunning, PID: 42,
		Labels: map[string]string{"proc_name": name, "biz": "3"}, Version: "1.2.3", ReportedAt: 1700000000,
		RegisteredAt: 1600000000, CPU: 1.5, Mem: 2.5,
		FD: 12, Disk: 7, Net: 8, Hosted: true, StartedAt: 1650000000, Message: "running"}
}

func names(rows []fleet.Row) string {
	var out []string
	for _, r := range rows {
		out = append(out, r.Status.Name)
	}
	return strings.Join(out, " ")
}

func TestRowComesBackAsReported(t *testing.T) {
	x := fleet.New()
	x.PutHost(hostAt("a1", addr(3, 1), addr(3, 2)))
	want := status("游戏", "网关服")
	x.Apply("a1", []gozzard.Status{want}, nil)

	got, ok := x.Get("a1", want.Key)
	if !ok {
		t.Fatal("row not found")
	}
	if diff := cmp.Diff(fleet.Row{Agent: "a1", Addr: addr(3, 1), Status: want, Condition: gozzard.ConditionRunning}, got,
		cmpopts.EquateComparable(gozzard.HostAddr{})); diff != "" {
		t.Errorf("row differs (-want +got):\n%s", diff)
	}
}

func TestStaleUntilReportedAndWhileOffline(t *testing.T) {
	x := fleet.New()
	x.PutHost(hostAt("a1", addr(0, 1)))
	x.Seed("a1", status("ns", "p"))

	stale := func() bool {
		r, ok := x.Get("a1", gozzard.Key{Namespace: "ns", Name: "p"})
		if !ok {
			t.Fatal("row not found")
		}
		return r.Stale
	}
	if !stale() {
		t.Error("a row of a host that has not reported is not stale")
	}

	x.Apply("a1", nil, nil)

	if stale() {
		t.Error("stale after a report")
	}

	x.SetOnline("a1", false, time.Unix(200, 0))

	if !stale() {
		t.Error("not stale while the host is offline")
	}
	if known, online := x.HostCounts(); known != 1 || online != 0 {
		t.Errorf("counts %d known, %d online", known, online)
	}

	x.Touch("a1", time.Unix(300, 0))

	if h, _ := x.Host("a1"); h.Online || !h.LastSeen.Equal(time.Unix(300, 0)) {
		t.Errorf("host is %+v", h)
	}
}

func TestNewestHostOwnsAnAddress(t *testing.T) {
	x := fleet.New()
	x.PutHost(hostAt("old", addr(0, 1)))
	x.PutHost(hostAt("new", addr(0, 1), addr(0, 2)))

	if h, ok := x.HostByAddr(addr(0, 1)); !ok || h.Info.Agent != "new" {
		t.Errorf("address belongs to %q", h.Info.Agent)
	}

	x.PutHost(hostAt("new", addr(0, 2)))

	if h, ok := x.HostByAddr(addr(0, 1)); ok {
		t.Errorf("address still belongs to %q", h.Info.Agent)
	}

	x.PutHost(hostAt("old", addr(0, 1)))

	if h, ok := x.HostByAddr(addr(0, 1)); !ok || h.Info.Agent != "old" {
		t.Errorf("address belongs to %q", h.Info.Agent)
	}
}

func TestPageKeepsItsOrder(t *testing.T) {
	x := fleet.New()
	for _, n := range []string{"c", "a", "b"} {
		x.Apply("a1", []gozzard.Status{status("ns", n)}, nil)
	}

	changed := status("ns", "a")
	changed.State, changed.Message = gozzard.StateStopped, "gone"
	x.Apply("a1", []gozzard.Status{changed, status("ns", "d"), status("other", "z")}, nil)
	total, rows := x.Page(all, "ns", 0, 10)
	if total != 4 || names(rows) != "c a b d" {
		t.Errorf("page is %d: %s", total, names(rows))
	}

	x.Apply("a1", nil, []gozzard.Key{{Namespace: "ns", Name: "a"}})
	x.Apply("a1", []gozzard.Status{status("ns", "a")}, nil)

	if total, rows := x.Page(all, "ns", 1, 2); total != 4 || names(rows) != "b d" {
		t.Errorf("second page is %d: %s", total, names(rows))
	}
	if total, rows := x.Page(all, "ns", 9, 2); total != 4 || len(rows) != 0 {
		t.Errorf("page past the end is %d: %s", total, names(rows))
	}
	if total, rows := x.Page(all, "", 0, 10); total != 5 || names(rows) != "c b d z a" {
		t.Errorf("page of all is %d: %s", total, names(rows))
	}
	if total, _ := x.Page(all, "none", 0, 10); total != 0 {
		t.Errorf("a namespace of nothing has %d", total)
	}
}

func TestFullReport(t *testing.T) {
	x := fleet.New()
	x.Apply("a1", []gozzard.Status{status("ns", "stays"), status("ns", "goes"), status("ns", "recorded")}, nil)
	x.Seed("a1", status("ns", "recorded"))
	x.Seed("a1", status("ns", "awaited"))

	if x.Full("a1", 7, 1, 2, []gozzard.Status{status("ns", "stays")}) {
		t.Error("complete after the first of two parts")
	}
	if x.Full("a1", 7, 1, 2, []gozzard.Status{status("ns", "stays")}) {
		t.Error("complete after the same part twice")
	}

	x.Apply("a1", []gozzard.Status{status("ns", "meanwhile")}, nil)

	if !x.Full("a1", 7, 0, 2, []gozzard.Status{status("ns", "more")}) {
		t.Error("not complete after both parts")
	}
	if _, rows := x.Page(all, "ns", 0, 10); names(rows) != "stays recorded awaited meanwhile more" {
		t.Errorf("rows are %s", names(rows))
	}
	if r, _ := x.Get("a1", gozzard.Key{Namespace: "ns",
		Name: "recorded"}); r.Status.State != gozzard.StateUnregistered || r.Status.PID != -1 {
		t.Errorf("a recorded process that the host no longer has is %v", r.Status)
	}

	if r, _ := x.Get("a1", gozzard.Key{Namespace: "ns", Name: "awaited"}); r.Status.State != gozzard.StateUnregistered {
		t.Errorf("a recorded process that the host never had is %v", r.Status)
	}
	if !x.Full("a1", 7, 0, 2, nil) {
		t.Error("a repeated part of a complete round is not answered")
	}

	// A host that restarts counts its rounds from the beginning.
	h := hostAt("a1", addr(0, 1))
	h.Session = 2
	x.PutHost(h)

	if !x.Full("a1", 7, 0, 1, nil) {
		t.Error("not complete with its only part")
	}
	if _, rows := x.Page(all, "ns", 0, 10); names(rows) != "recorded awaited" {
		t.Errorf("rows are %s", names(rows))
	}

	x.Remove("a1", gozzard.Key{Namespace: "ns", Name: "recorded"})

	if x.Len() != 1 {
		t.Errorf("%d rows are left", x.Len())
	}
	if x.Full("a1", 8, 5, 2, nil) || x.Full("a1", 8, 0, 0, nil) || x.Full("a1", 8, 0, 1<<31, nil) {
		t.Error("a part that cannot be one completes a report")
	}
}

func TestHostileReportsAreBounded(t *testing.T) {
	x := fleet.New()
	x.Apply("a1", []gozzard.Status{status("", "p"), status("ns", "../x"), status("ns", "a\nb")}, nil)

	if x.Len() != 0 || x.Dropped() != 3 {
		t.Errorf("%d rows, %d dropped", x.Len(), x.Dropped())
	}

	long := status("ns", "p")
	long.Message, long.Version = strings.Repeat("中", 10000), strings.Repeat("v", 10000)
	x.Apply("a1", []gozzard.Status{long}, nil)
	r, _ := x.Get("a1", long.Key)
	if len(r.Status.Message) > 1024 || !strings.HasPrefix(long.Message, r.Status.Message) ||
		len(r.Status.Version) > 256 {
		t.Errorf("kept %d bytes of message and %d of version", len(r.Status.Message), len(r.Status.Version))
	}

	rows := make([]gozzard.Status, 0, fleet.MaxRowsPerHost+10)
	for i := range fleet.MaxRowsPerHost + 10 {
		rows = append(rows, status("ns", fmt.Sprintf("q%06d", i)))
	}

	var left []int
	x.OnLeftOut(func(agent gozzard.AgentID, tooMany, badKeys int) { left = append(left, tooMany, badKeys) })
	x.Apply("a1", rows, nil)

	if x.Len() != fleet.MaxRowsPerHost {
		t.Errorf("one host has %d rows", x.Len())
	}

	x.Full("a2", 1, 0, 1, []gozzard.Status{status("ns", "../x")})

	if !slices.Equal(left, []int{11, 0, 0, 1}) {
		t.Errorf("left out %v", left)
	}

	x.Apply("a2", []gozzard.Status{status("ns", "p")}, nil)

	if x.Len() != fleet.MaxRowsPerHost+1 {
		t.Error("another host has no room")
	}
}

func TestReadersAndWritersTogether(t *testing.T) {
	x := fleet.New()
	const hosts, rounds = 8, 20
	var writers, readers sync.WaitGroup
	done := make(chan struct{})

	for h := range hosts {
		agent := agentName(h)
		x.PutHost(hostAt(agent, addr(0, h)))
		writers.Add(1)
		go func() {
			defer writers.Done()

			for i := range rounds {
				var rows []gozzard.Status
				for p := range 40 {
					s := status(fmt.Sprintf("ns%d", p%3), fmt.Sprintf("p%d", p+i%5))
					s.Message = fmt.Sprintf("round %d", i)
					rows = append(rows, s)
				}
				x.Apply(agent, rows[:20], []gozzard.Key{rows[30].Key})
				x.Full(agent, uint64(i), 0, 2, rows[:20])
				x.Full(agent, uint64(i), 1, 2, rows[20:])
				x.SetOnline(agent, i%2 == 0, time.Unix(int64(i), 0))
			}
		}()
	}

	for range 2 {
		readers.Add(1)
		go func() {
			defer readers.Done()

			for {
				select {
				case <-done:
					return
				default:
				}
				if total, rows := x.Page(all, "ns1", 3, 50); len(rows) > total {
					t.Errorf("%d rows of %d", len(rows), total)
				}
				_, rows := x.Find(all, fleet.Filter{Names: []string{"p1*"},
					Agents: []gozzard.AgentID{agentName(1), agentName(2)}}, 0, 100)
				for _, r := range rows {
					if !strings.HasPrefix(r.Status.Name, "p1") {
						t.Errorf("found %s", r.Status.Key)
					}
				}
				x.Find(all, fleet.Filter{Names: []string{"*9"}}, 0, 100)
				x.CountByCondition()
				x.Hosts(all)
				time.Sleep(time.Millisecond) // the machine has few cores: leave some to the writers
			}
		}()
	}

	writers.Wait()
	close(done)
	readers.Wait()

	if x.Len() != hosts*40 {
		t.Errorf("%d rows, want %d", x.Len(), hosts*40)
	}
}

// TestPagesSurviveChurn removes and adds thousands of rows, so that blocks of an order empty, join and fill again.
func TestPagesSurviveChurn(t *testing.T) {
	x := fleet.New()
	rng := rand.New(rand.NewPCG(1, 2))
	var want []string
	next := 0
	for round := range 12 {
		var rows []gozzard.Status
		for range 2000 { // together with the rest of those before, never more than the limit of a host
			n := fmt.Sprintf("p%06d", next)
			next++
			rows = append(rows, status("ns", n))
			want = append(want, n)
		}
		x.Apply("a1", rows, nil)
		keep := 1.0 / float64(1+round%5)
		var removed []gozzard.Key
		want = slices.DeleteFunc(want, func(n string) bool {
			gone := rng.Float64() > keep
			if gone {
				removed = append(removed, gozzard.Key{Namespace: "ns", Name: n})
			}
			return gone
		})
		rng.Shuffle(len(removed), func(i, j int) { removed[i], removed[j] = removed[j], removed[i] })
		x.Apply("a1", nil, removed)

		start := rng.IntN(len(want) + 1)
		total, page := x.Page(all, "ns", start, len(want))
		if total != len(want) || names(page) != strings.Join(want[start:], " ") {
			t.Fatalf("round %d: page from %d has %d of %d rows, want %d of %d", round, start, len(page), total,
				len(want)-start, len(want))
		}
		if total, found := x.Find(all, fleet.Filter{Names: []string{"*7"}}, 0, 1<<20); total != len(found) ||
			names(found) != names(lookUp(x, want)) {
			t.Fatalf("round %d: a search finds %d of %d", round, len(found), total)
		}
	}
}

// lookUp gets each wanted name that ends in 7 separately.
func lookUp(x *fleet.Index, want []string) (rows []fleet.Row) {
	for _, n := range want {
		if strings.HasSuffix(n, "7") {
			r, _ := x.Get("a1", gozzard.Key{Namespace: "ns", Name: n})
			rows = append(rows, r)
		}
	}
	return rows
}
