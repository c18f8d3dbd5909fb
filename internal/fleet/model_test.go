package fleet_test

import (
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// model is a simple index: a list of rows in the order of their arrival.
type model struct {
	hosts  map[gozzard.AgentID]fleet.Host
	owner  map[gozzard.HostAddr]gozzard.AgentID
	talked map[gozzard.AgentID]bool
	newest map[gozzard.AgentID]bool // it has reported in its session
	swept  map[gozzard.AgentID]bool // it has sent a complete report in its session
	rounds map[gozzard.AgentID]*modelRound
	gone   map[gozzard.AgentID]bool
	rows   []*modelRow
}

type modelRow struct {
	agent  gozzard.AgentID
	s      gozzard.Status
	seeded bool
	seen   bool
}

type modelRound struct {
	round uint64
	parts uint32
	got   map[uint32]bool
	fresh map[gozzard.Key]bool
	done  bool
}

func (m *model) find(agent gozzard.AgentID, k gozzard.Key) *modelRow {
	for _, r := range m.rows {
		if r.agent == agent && r.s.Key == k {
			return r
		}
	}
	return nil
}

func (m *model) remove(row *modelRow) {
	m.rows = slices.DeleteFunc(m.rows, func(r *modelRow) bool { return r == row })
}

func (m *model) unseed(agent gozzard.AgentID, k gozzard.Key) {
	r := m.find(agent, k)
	if r == nil {
		return
	}
	r.seeded = false
	if !r.seen {
		m.remove(r)
	}
}

func (m *model) put(agent gozzard.AgentID, s gozzard.Status) *modelRow {
	r := m.find(agent, s.Key)
	if r == nil {
		r = &modelRow{agent: agent}
		m.rows = append(m.rows, r)
	}
	r.s = s
	if open := m.rounds[agent]; open != nil {
		open.fresh[s.Key] = true
	}
	return r
}

func (m *model) report(agent gozzard.AgentID, rows []gozzard.Status) {
	m.talked[agent], m.newest[agent] = true, true
	for _, s := range rows {
		m.put(agent, s).seen = true
	}
}

func (r *modelRow) unmanage() {
	r.seen = false
	r.s.Condition, r.s.Restarts, r.s.Exit, r.s.NextAt = 0, 0, gozzard.Ending{}, 0
	r.s.LastRun, r.s.MemBytes, r.s.Health, r.s.HealthMessage = gozzard.LastRun{}, 0, 0, ""
	r.s.State, r.s.PID, r.s.FD, r.s.CPU, r.s.Mem, r.s.Disk, r.s.Net, r.s.StartedAt = 0, -1, 0, 0, 0, 0, 0, 0
}

func (m *model) apply(agent gozzard.AgentID, rows []gozzard.Status, removed []gozzard.Key) {
	if m.gone[agent] {
		return
	}
	m.report(agent, rows)
	for _, k := range removed {
		switch r := m.find(agent, k); {
		case r == nil:
		case r.seeded:
			r.unmanage()
		default:
			m.remove(r)
		}
	}
}

func (m *model) full(agent gozzard.AgentID, round uint64, part, parts uint32, rows []gozzard.Status) bool {
	if m.gone[agent] {
		return false
	}
	open := m.rounds[agent]
	if open == nil || open.round != round || open.parts != parts {
		open = &modelRound{round: round, parts: parts, got: map[uint32]bool{}, fresh: map[gozzard.Key]bool{}}
		m.rounds[agent] = open
	}

	m.report(agent, rows)

	if open.done {
		return true
	}

	open.got[part] = true
	if len(open.got) < int(parts) {
		return false
	}

	open.done, m.swept[agent] = true, true
	for _, r := range slices.Clone(m.rows) {
		if r.agent != agent || open.fresh[r.s.Key] {
			continue
		}
		if !r.seeded {
			m.remove(r)
		} else if r.s.State != gozzard.StateUnregistered {
			r.unmanage()
		}
	}

	return true
}

func (m *model) seed(agent gozzard.AgentID, s gozzard.Status) {
	delete(m.gone, agent)
	r := m.find(agent, s.Key)
	if r == nil || !r.seen {
		r = m.put(agent, s)
	} else if open := m.rounds[agent]; open != nil {
		open.fresh[s.Key] = true
	}
	r.seeded = true
}

// forget: until the host is put again, or gets a row of the record, its reports have no effect.
func (m *model) forget(agent gozzard.AgentID) {
	delete(m.newest, agent)
	delete(m.swept, agent)
	m.gone[agent] = true
	m.rows = slices.DeleteFunc(m.rows, func(r *modelRow) bool { return r.agent == agent })
	for a, owner := range m.owner {
		if owner == agent {
			delete(m.owner, a)
		}
	}
	delete(m.hosts, agent)
	delete(m.talked, agent)
	delete(m.rounds, agent)
}

func (m *model) rebind(from, to gozzard.AgentID) {
	for _, r := range slices.Clone(m.rows) {
		if r.agent != from || from == to {
			continue
		}
		if own := m.find(to, r.s.Key); own != nil {
			own.seeded = own.seeded || r.seeded
			m.remove(r)
			continue
		}
		r.agent, r.seen = to, false
		delete(m.gone, to)
		if open := m.rounds[to]; open != nil {
			open.fresh[r.s.Key] = true
		}
	}
}

func (m *model) putHost(h fleet.Host) {
	old := m.hosts[h.Info.Agent]
	for _, a := range old.Info.Addrs {
		if m.owner[a] == h.Info.Agent {
			delete(m.owner, a)
		}
	}

	for _, a := range h.Info.Addrs {
		m.owner[a] = h.Info.Agent
	}

	if old.Session != h.Session {
		delete(m.rounds, h.Info.Agent)
		delete(m.newest, h.Info.Agent)
		delete(m.swept, h.Info.Agent)
	}

	m.hosts[h.Info.Agent] = h
	delete(m.gone, h.Info.Agent)
}

func (m *model) row(r *modelRow) fleet.Row {
	h := m.hosts[r.agent]
	out := fleet.Row{Agent: r.agent, Status: r.s, Stale: !h.Online || !m.talked[r.agent],
		Condition: m.condition(r)}
	if len(h.Info.Addrs) > 0 {
		out.Addr = h.Info.Addrs[0]
	}
	return out
}

func (m *model) condition(r *modelRow) gozzard.Condition {
	if !m.hosts[r.agent].Online || !m.newest[r.agent] || !r.seen && !m.swept[r.agent] {
		return gozzard.ConditionUnknown
	}
	return r.s.ConditionOf()
}

func (m *model) query(keep func(*modelRow) bool, start, limit int) (total int, rows []fleet.Row) {
	for _, r := range m.rows {
		if !keep(r) {
			continue
		}
		if total >= start && len(rows) < limit {
			rows = append(rows, m.row(r))
		}
		total++
	}
	return total, rows
}

func matches(patterns []string, s string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, s); err == nil && ok {
			return true
		}
	}
	return len(patterns) == 0
}

func (m *model) fits(f fleet.Filter, r *modelRow) bool {
	h := m.hosts[r.agent]
	if len(f.Clouds)+len(f.IPs) > 0 && !slices.ContainsFunc(h.Info.Addrs, func(a gozzard.HostAddr) bool {
		return (len(f.Clouds) == 0 || slices.Contains(f.Clouds, a.Cloud)) &&
			(len(f.IPs) == 0 || slices.Contains(f.IPs, a.IP) && m.owner[a] == r.agent)
	}) {
		return false
	}
	return matches(f.Namespaces, r.s.Namespace) && matches(f.Names, r.s.Name) &&
		(len(f.Agents) == 0 || slices.Contains(f.Agents, r.agent)) &&
		(len(f.Conditions) == 0 || slices.Contains(f.Conditions, m.condition(r))) &&
		(f.Hosted == nil || *f.Hosted == r.s.Hosted) &&
		!slices.ContainsFunc(f.Labels, func(l gozzard.LabelRule) bool { return !l.Match(r.s.Labels) })
}

var (
	genAgent = rapid.Map(rapid.IntRange(0, 3), agentName)
	genSpace = rapid.SampledFrom([]string{"ns", "nx", "游戏"})
	genName  = rapid.SampledFrom([]string{"a", "ab", "abc", "网关", "网关服", "z.1"})
	genKey   = rapid.Custom(func(t *rapid.T) gozzard.Key {
		return gozzard.Key{Namespace: genSpace.Draw(t, "ns"), Name: genName.Draw(t, "name")}
	})
	genState  = rapid.Map(rapid.IntRange(0, 2), func(i int) gozzard.RunState { return gozzard.RunState(i) })
	genStatus = rapid.Custom(func(t *rapid.T) gozzard.Status {
		s := gozzard.Status{Key: genKey.Draw(t, "key"), State: genState.Draw(t, "state"),
			Wanted: genState.Draw(t, "wanted"), Hosted: rapid.Bool().Draw(t, "hosted"),
			PID: rapid.Int32().Draw(t, "pid"), Version: rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "version"),
			Message: rapid.StringN(0, 4, -1).Draw(t, "message"), RegisteredAt: rapid.Int64().Draw(t, "registered"),
			CPU:  rapid.Float32().Draw(t, "cpu"),
			Disk: rapid.Int64().Draw(t, "disk"), StartedAt: 5, ReportedAt: 6, FD: 7, Net: 8, Mem: 9}
		genHistory(t, &s)
		s.Labels = rapid.SampledFrom([]map[string]string{nil, {"a": "b"}, {"a": "b", "c": "d"}, {"ab": ""},
			{"a": "b\x01c"}}).Draw(t, "labels")
		return s
	})
	genAddr = rapid.Custom(func(t *rapid.T) gozzard.HostAddr {
		return addr(rapid.IntRange(0, 1).Draw(t, "cloud"), rapid.IntRange(1, 4).Draw(t, "ip"))
	})
	genFilter = rapid.Custom(func(t *rapid.T) fleet.Filter {
		var f fleet.Filter
		some := func(name string) bool { return rapid.IntRange(0, 2).Draw(t, name) == 0 }
		if some("namespaces") {
			f.Namespaces = rapid.SliceOfN(rapid.SampledFrom([]string{"ns", "n?", "*", "*戏", "none"}), 1, 2).Draw(t,
				"namespaces")
		}

		if some("names") {
			f.Names = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a*", "*b*", "网?", "?关*", "*c*c", "z.?", ""}), 1,
				2).Draw(t, "names")
		}

		if some("clouds") {
			f.Clouds = rapid.SliceOfN(rapid.IntRange(0, 2), 1, 2).Draw(t, "clouds")
		}
		if some("ips") {
			for _, a := range rapid.SliceOfN(genAddr, 1, 2).Draw(t, "ips") {
				f.IPs = append(f.IPs, a.IP)
			}
		}

		if some("agents") {
			f.Agents = rapid.SliceOfN(genAgent, 1, 2).Draw(t, "agents")
		}
		if some("states") {
			f.Conditions = rapid.SliceOfN(rapid.SampledFrom(gozzard.Conditions()), 1, 4).Draw(t, "states")
		}
		if some("hosted") {
			b := rapid.Bool().Draw(t, "hosted")
			f.Hosted = &b
		}
		if some("labels") {
			f.Labels = rapid.SliceOfN(rapid.SampledFrom([]gozzard.LabelRule{{Key: "a"}, {Key: "a", Value: "b*",
				Kind: gozzard.LabelEqual}, {Key: "c", Value: "d", Kind: gozzard.LabelOther},
				{Key: "ab", Kind: gozzard.LabelMissing}}), 1, 2).Draw(t, "labels")
		}

		return f
	})
)

// genHistory draws what an agent of this version reports besides.
func genHistory(t *rapid.T, s *gozzard.Status) {
	s.Condition = gozzard.Condition(rapid.IntRange(0, 11).Draw(t, "condition"))
	s.Kind = gozzard.ShownKind(rapid.IntRange(0, 3).Draw(t, "kind"))
	s.Health = gozzard.Health(rapid.IntRange(0, 2).Draw(t, "health"))
	s.MemBytes = rapid.Int64Range(0, 1<<32-1).Draw(t, "memory") << 10
	end := rapid.SampledFrom([]gozzard.Ending{{}, {At: 5, Known: true, Code: -3, Core: true}, {Signal: "SIGKILL", OOM: true}})
	s.Exit = end.Draw(t, "exit")
	s.Restarts = rapid.SampledFrom([]uint32{0, 0, 7, 65535}).Draw(t, "restarts")
	s.NextAt = rapid.SampledFrom([]int64{0, 0, 9}).Draw(t, "next")
	s.HealthMessage = rapid.SampledFrom([]string{"", "", "SIGKILL", "refused"}).Draw(t, "sick")
	if rapid.Bool().Draw(t, "ran") {
		s.LastRun = gozzard.LastRun{StartedAt: 4, End: end.Draw(t, "run")}
	}
}

// TestIndexAgainstModel makes the same calls on the index and the model and compares all answers.
func TestIndexAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := fleet.New()
		m := &model{hosts: map[gozzard.AgentID]fleet.Host{}, owner: map[gozzard.HostAddr]gozzard.AgentID{},
			talked: map[gozzard.AgentID]bool{}, gone: map[gozzard.AgentID]bool{},
			newest: map[gozzard.AgentID]bool{}, swept: map[gozzard.AgentID]bool{},
			rounds: map[gozzard.AgentID]*modelRound{}}
		statuses := rapid.SliceOfN(genStatus, 0, 6)
		t.Repeat(map[string]func(*rapid.T){
			"put host": func(t *rapid.T) {
				h := hostAt(genAgent.Draw(t, "agent"), rapid.SliceOfNDistinct(genAddr, 0, 2, rapid.ID).Draw(t,
					"addrs")...)
				h.Session, h.Online = rapid.Uint64Range(1, 2).Draw(t, "session"), rapid.Bool().Draw(t, "online")
				x.PutHost(h)
				m.putHost(h)
			},
			"online": func(t *rapid.T) {
				agent, online := genAgent.Draw(t, "agent"), rapid.Bool().Draw(t, "online")
				x.SetOnline(agent, online, time.Unix(7, 0))
				if h, ok := m.hosts[agent]; ok {
					h.Online, h.LastSeen = online, time.Unix(7, 0)
					m.hosts[agent] = h
				}
			},
			"apply": func(t *rapid.T) {
				agent, rows, gone := genAgent.Draw(t, "agent"), statuses.Draw(t, "rows"),
					rapid.SliceOfN(genKey, 0, 2).Draw(t, "removed")
				x.Apply(agent, rows, gone)
				m.apply(agent, rows, gone)
			},
			"full": func(t *rapid.T) {
				agent, rows, parts := genAgent.Draw(t, "agent"), statuses.Draw(t, "rows"),
					rapid.Uint32Range(1, 2).Draw(t, "parts")
				round, part := rapid.Uint64Range(1, 2).Draw(t, "round"), rapid.Uint32Range(0, parts-1).Draw(t, "part")
				if got, want := x.Full(agent, round, part, parts, rows),
					m.full(agent, round, part, parts, rows); got != want {
					t.Fatalf("complete is %v, want %v", got, want)
				}
			},
			"seed": func(t *rapid.T) {
				agent, s := genAgent.Draw(t, "agent"), genStatus.Draw(t, "status")
				x.Seed(agent, s)
				m.seed(agent, s)
			},
			"remove": func(t *rapid.T) {
				agent, k := genAgent.Draw(t, "agent"), genKey.Draw(t, "key")
				x.Remove(agent, k)
				if r := m.find(agent, k); r != nil {
					m.remove(r)
				}
			},
			"unseed": func(t *rapid.T) {
				agent, k := genAgent.Draw(t, "agent"), genKey.Draw(t, "key")
				x.Unseed(agent, k)
				m.unseed(agent, k)
			},
			"forget": func(t *rapid.T) {
				agent := genAgent.Draw(t, "agent")
				x.Forget(agent)
				m.forget(agent)
			},
			"rebind": func(t *rapid.T) {
				from, to := genAgent.Draw(t, "from"), genAgent.Draw(t, "to")
				x.Rebind(from, to)
				m.rebind(from, to)
			},
			"": func(t *rapid.T) { compare(t, x, m) },
		})
	})
}

func sortedIDs(list []gozzard.ProcID) []gozzard.ProcID {
	slices.SortFunc(list, func(a, b gozzard.ProcID) int {
		return strings.Compare(string(a.Agent)+" "+a.Key.String(), string(b.Agent)+" "+b.Key.String())
	})
	return list
}

func compare(t *rapid.T, x *fleet.Index, m *model) {
	same := func(what string, want, got any) {
		if reflect.DeepEqual(want, got) { // much faster than the difference
			return
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(gozzard.HostAddr{}), cmpopts.EquateEmpty(),
			cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("%s (-model +index):\n%s", what, diff)
		}
	}

	start, limit := rapid.IntRange(0, 6).Draw(t, "start"), rapid.IntRange(0, 6).Draw(t, "limit")
	ns := rapid.OneOf(genSpace, rapid.Just("")).Draw(t, "page")
	total, rows := x.Page(all, ns, start, limit)
	wantTotal, wantRows := m.query(func(r *modelRow) bool { return ns == "" || r.s.Namespace == ns }, start, limit)
	same("page total", wantTotal, total)
	same("page", wantRows, rows)

	f := genFilter.Draw(t, "filter")
	total, rows = x.Find(all, f, start, limit)
	wantTotal, wantRows = m.query(func(r *modelRow) bool { return m.fits(f, r) }, start, limit)
	same("found total", wantTotal, total)
	same("found", wantRows, rows)

	counts := map[gozzard.Condition]int{}
	var seeded []gozzard.ProcID
	for _, r := range m.rows {
		counts[m.condition(r)]++
		if same("seeded", r.seeded, x.IsSeeded(r.agent, r.s.Key)); r.seeded {
			seeded = append(seeded, gozzard.ProcID{Agent: r.agent, Key: r.s.Key})
		}
		got, ok := x.Get(r.agent, r.s.Key)
		same("known", true, ok)
		same("row", m.row(r), got)
	}

	same("length", len(m.rows), x.Len())
	same("all seeded", sortedIDs(seeded), sortedIDs(x.Seeded()))
	same("states", counts, x.CountByCondition())
	online := 0
	for _, h := range m.hosts {
		if h.Online {
			online++
		}
	}

	known, on := x.HostCounts()
	same("hosts", []int{len(m.hosts), online}, []int{known, on})
	a := genAddr.Draw(t, "addr")
	h, _ := x.HostByAddr(a)
	same("owner", m.owner[a], h.Info.Agent)
}
