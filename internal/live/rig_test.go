package live_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/live"
	"github.com/gozzard/gozzard/internal/topology"
)

// TestMain fails when a test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func agentName(i int) gozzard.AgentID { return gozzard.AgentID(fmt.Sprintf("agent-%d-x", i)) }

func addr(cloud, i int) gozzard.HostAddr {
	return gozzard.HostAddr{Cloud: cloud, IP: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}
}

func hostAt(agent gozzard.AgentID, session uint64, online bool, addrs ...gozzard.HostAddr) fleet.Host {
	return fleet.Host{Info: gozzard.HostInfo{Agent: agent, Addrs: addrs, CPUs: 2}, Session: session, Online: online}
}

func status(ns, name string) gozzard.Status {
	return gozzard.Status{Key: gozzard.Key{Namespace: ns, Name: name}, State: gozzard.StateRunning,
		Wanted: gozzard.StateRunning, Condition: gozzard.ConditionRunning, PID: 42, ReportedAt: 1700000000, CPU: 1.5,
		Hosted: true, StartedAt: 1650000000, MemBytes: 1 << 20}
}

// viewer follows a hub as a client does.
type viewer struct {
	t      testing.TB
	rights *gozzard.Rights
	view   *live.View
	table  *client.LiveTable
	sent   bytes.Buffer // all bytes that it got, without compression
}

func join(t testing.TB, hub *live.Hub, rights *gozzard.Rights) *viewer {
	t.Helper()
	view, err := hub.Join(rights)
	if err != nil {
		t.Fatal(err)
	}
	v := &viewer{t: t, rights: rights, view: view}
	v.snapshot()
	return v
}

func (v *viewer) snapshot() {
	v.t.Helper()
	data, err := v.view.Snapshot()
	if err != nil {
		v.t.Fatal(err)
	}
	unzip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		v.t.Fatal(err)
	}
	plain, err := io.ReadAll(unzip)
	if err != nil {
		v.t.Fatal(err)
	}
	v.sent.Write(plain)
	if v.table, err = client.ParseLiveSnapshot(plain); err != nil {
		v.t.Fatal(err)
	}
}

// read applies all batches that there are. It reports false if the viewer needed a new snapshot, and took it.
func (v *viewer) read() bool {
	v.t.Helper()
	for {
		frames, next, changed, ok := v.view.After(v.table.Epoch, v.table.Seq)
		if !ok {
			v.snapshot()
			return false
		}
		for _, f := range frames {
			v.sent.Write(f)
			v.apply(f)
		}
		if v.table.Seq != next {
			v.t.Fatalf("the table is at %d, want %d", v.table.Seq, next)
		}
		if changed != nil {
			return true
		}
	}
}

func (v *viewer) apply(frame []byte) {
	v.t.Helper()
	_, data, ok := bytes.Cut(frame, []byte("\ndata: "))
	if !ok || !bytes.HasPrefix(frame, []byte("event: changes\nid: ")) || !bytes.HasSuffix(frame, []byte("\n\n")) {
		v.t.Fatalf("not an event: %q", frame)
	}
	var b client.LiveBatch
	if err := json.Unmarshal(data, &b); err != nil {
		v.t.Fatal(err)
	}
	if err := v.table.Apply(&b); err != nil {
		v.t.Fatal(err)
	}
}

// lines are the rows of the viewer as text, sorted.
func (v *viewer) lines() string {
	t, out := v.table, []string{}
	for _, r := range t.Rows {
		out = append(out, fmt.Sprintf("%s %d %s %s/%s %v mem=%d pid=%d started=%d restarts=%d cpu=%d %s %05b",
			t.Hosts.Agent[r.Host], t.Hosts.Cloud[r.Host], t.Hosts.IP[r.Host], t.Names.Space[r.Name], t.Names.Name[r.Name],
			place(t.Places[r.Place]), r.Mem, r.PID, r.Started, r.Restarts, r.CPU, t.States[r.State], r.Flags))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func place(p client.LivePlace) string { return fmt.Sprintf("%v:%v:%v:%v", p[0], p[1], p[2], p[3]) }

// wanted is what lines should be, by a query.
func wanted(x *fleet.Index, rights *gozzard.Rights, places *placeBook) string {
	_, rows := x.Find(rights, fleet.Filter{}, 0, 1<<20)
	out := []string{}
	for i := range rows {
		r := &rows[i]
		flags := 0
		for bit, on := range []bool{r.Status.Hosted, r.Stale, r.Status.Kind == gozzard.ShownPeriodic,
			r.Status.Health == gozzard.HealthFailing, r.Status.Wanted == gozzard.StateRunning} {
			if on {
				flags |= 1 << bit
			}
		}

		cpus, ref := 1, gozzard.HostRef{Agent: r.Agent}
		if h, ok := x.Host(r.Agent); ok {
			cpus, ref = max(h.Info.CPUs, 1), h.Info.Ref()
		}
		ip := ""
		if r.Addr.IP.IsValid() {
			ip = r.Addr.IP.String()
		}

		p := places.PlaceOf(ref, r.Status.Key)
		out = append(out, fmt.Sprintf("%s %d %s %s/%s %d:%s:%s:%s mem=%d pid=%d started=%d restarts=%d cpu=%d %s %05b",
			r.Agent, r.Addr.Cloud, ip, r.Status.Namespace, r.Status.Name, p.Biz, p.Name, p.Set, p.Module,
			r.Status.MemBytes>>10, r.Status.PID, r.Status.StartedAt, r.Status.Restarts,
			int(r.Status.CPU*float32(cpus)*10), r.Condition, flags))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// hosts are the hosts of the viewer as text, sorted, without those that are gone.
func (v *viewer) hosts() string {
	out := []string{}
	for i, agent := range v.table.Hosts.Agent {
		if v.table.Hosts.Online[i] != client.LiveGone {
			out = append(out, fmt.Sprint(agent, " ", v.table.Hosts.IP[i], " ", v.table.Hosts.Online[i]))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// wantedHosts is what hosts should be, by queries.
func wantedHosts(x *fleet.Index, rights *gozzard.Rights) string {
	lines := map[string]bool{}
	add := func(agent gozzard.AgentID, addrs []gozzard.HostAddr, online bool) {
		ip, state := "", 0
		if len(addrs) > 0 {
			ip = addrs[0].IP.String()
		}
		if online {
			state = 1
		}
		lines[fmt.Sprint(agent, " ", ip, " ", state)] = true
	}

	for _, h := range x.Hosts(rights) {
		add(h.Info.Agent, h.Info.Addrs, h.Online)
	}
	_, rows := x.Find(rights, fleet.Filter{}, 0, 1<<20)
	for i := range rows {
		h, _ := x.Host(rows[i].Agent)
		add(rows[i].Agent, h.Info.Addrs, h.Online)
	}
	return strings.Join(slices.Sorted(maps.Keys(lines)), "\n")
}

// placeBook is places that a test changes.
type placeBook struct {
	generation uint64
	set        string // every process of a business is in this set; "": in none
}

func (b *placeBook) PlaceOf(_ gozzard.HostRef, key gozzard.Key) topology.Place {
	biz, ok := gozzard.BusinessOf(key.Namespace)
	if b == nil || !ok || b.set == "" {
		return topology.Place{}
	}
	return topology.Place{Biz: biz, Name: "business", Set: b.set, Module: key.Name}
}

func (b *placeBook) PlacesChanged(since uint64) ([]string, uint64) {
	if since == b.generation {
		return nil, since
	}
	return []string{gozzard.BusinessNamespace(2)}, b.generation
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen within a minute", what)
		}
	}
}
