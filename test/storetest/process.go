package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
)

func register(t *testing.T, s control.Store, list ...record.Process) *record.NewTask {
	t.Helper()
	n := newTask(nil)
	n.Register = list
	_, err := s.Accept(t.Context(), n)
	must(t, err)
	return n
}

func process(agent gozzard.AgentID, namespace, name string) record.Process {
	return record.Process{
		ID:     gozzard.ProcID{Agent: agent, Key: gozzard.Key{Namespace: namespace, Name: name}},
		Labels: map[string]string{"k": "值"}, Spec: spec(name), Hosted: true, Wanted: gozzard.StateRunning,
		RegisteredAt: start,
	}
}

func processesList(t *testing.T, s control.Store) {
	a, b, c, d := process("A", "ns", "甲"), process("a", "Ns", "z"), process("a", "ns", "B"), process("a", "ns", "a")
	b.Labels, b.Spec, b.Hosted, b.Wanted = nil, nil, false, gozzard.StateStopped
	first := register(t, s, d, b, a, c)
	equal(t, "all, in key order", processes(t, s, nil), []record.Process{a, b, c, d})
	for p, err := range s.Processes(t.Context(), nil) {
		must(t, err)
		equal(t, "the task that brought "+p.ID.String(), p.Task, first.Task.Seq)
	}
	missing := process("a", "ns", "missing").ID
	equal(t, "named", processes(t, s, []gozzard.ProcID{d.ID, missing, a.ID, d.ID}), []record.Process{a, d})
	equal(t, "only missing ones", len(processes(t, s, []gozzard.ProcID{missing})), 0)
	equal(t, "none named", len(processes(t, s, []gozzard.ProcID{})), 0)

	again := a
	again.Spec, again.Labels, again.Hosted, again.Wanted = spec("new"), map[string]string{}, false, gozzard.StateStopped
	again.RegisteredAt = start.Add(time.Hour)
	twice := again
	twice.Spec = spec("newest")
	register(t, s, again, twice)
	// Only a verdict changes whether it is supervised and wanted.
	twice.RegisteredAt, twice.Hosted, twice.Wanted = a.RegisteredAt, a.Hosted, a.Wanted
	equal(t, "registered again", processes(t, s, []gozzard.ProcID{a.ID}), []record.Process{twice})
}

func processesPages(t *testing.T, s control.Store) {
	var list []record.Process
	var ids []gozzard.ProcID
	for i := range 2345 {
		p := process(agentID(i/10), "ns", fmt.Sprintf("p%d", i%10))
		p.Spec = spec("shared")
		list = append(list, p)
		ids = append(ids, p.ID)
	}

	register(t, s, list...)
	equal(t, "all", processes(t, s, nil), list)
	equal(t, "named", processes(t, s, ids), list)
	n := 0
	for _, err := range s.Processes(t.Context(), nil) {
		must(t, err)
		if n == 0 {
			register(t, s, process("zzz", "ns", "late")) // a read that is under way does not block writes
		}
		if n++; n == 1500 {
			break
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	for _, err := range s.Processes(ctx, nil) {
		if err == nil {
			t.Fatal("a process was read although the context had ended")
		}
	}
}

func rebind(t *testing.T, s control.Store) {
	at := func(agent gozzard.AgentID, seen time.Duration, addrs ...gozzard.HostAddr) {
		h := host(agent, 1, 1, 1)
		h.Info.Addrs, h.LastSeen = addrs, start.Add(seen)
		_, _, err := s.OpenSession(t.Context(), h)
		must(t, err)
	}

	at("old", 0, addr(1))
	at("older", -time.Hour, addr(2), addr(1))
	at("new", time.Hour, addr(1))
	at("elsewhere", 0, addr(3))
	otherCloud := addr(1)
	otherCloud.Cloud++
	at("other-cloud", 0, otherCloud)

	kept := process("new", "ns", "has")
	taken := process("old", "ns", "p")
	lost := process("older", "ns", "p")
	lost.Spec = spec("lost")
	only := process("older", "ns", "q")
	apart, cloud := process("elsewhere", "ns", "p"), process("other-cloud", "ns", "p")
	register(t, s, kept, process("old", "ns", "has"), taken, lost, only, apart, cloud)
	g := record.GroupLimits{Agent: "old", Addr: addr(1), Namespace: "ns", Group: "g", CPULimit: 5}
	own := record.GroupLimits{Agent: "new", Addr: addr(1), Namespace: "ns", Group: "own", CPULimit: 6}
	lesser := own
	lesser.Agent, lesser.CPULimit = "old", 7
	must(t, s.SetGroups(t.Context(), []record.GroupLimits{g, own, lesser}, gozzard.AuditRow{At: start}))

	must(t, s.Rebind(t.Context(), addr(1), "new", gozzard.AuditRow{At: start, Act: "rebind"}))
	taken.ID.Agent, only.ID.Agent, g.Agent = "new", "new", "new"
	equal(t, "processes", processes(t, s, nil), []record.Process{apart, kept, taken, only, cloud})
	got, err := s.Groups(t.Context(), "ns", []gozzard.AgentID{"old", "older", "new"})
	must(t, err)
	equal(t, "groups", got, []record.GroupLimits{g, own})
	must(t, s.Rebind(t.Context(), addr(1), "new", gozzard.AuditRow{At: start, Act: "rebind"}))
	must(t, s.Rebind(t.Context(), addr(77), "new", gozzard.AuditRow{At: start, Act: "rebind"}))
	equal(t, "processes after repeats", len(processes(t, s, nil)), 5)
}

// forget: a host goes with everything that belongs to it, and nothing of another host. When it comes back it is new.
func forget(t *testing.T, s control.Store) {
	gone, stays := host("gone", 5, 1, 7), host("stays", 5, 2, 7)
	gone.Info.Addrs, stays.Info.Addrs = []gozzard.HostAddr{addr(1)}, []gozzard.HostAddr{addr(2)}
	gone.Protocol = 3
	for _, h := range []record.Host{gone, stays} {
		_, opened, err := s.OpenSession(t.Context(), h)
		must(t, err)
		equal(t, "opened", opened, true)
	}
	kept := process("stays", "ns", "p")
	register(t, s, process("gone", "ns", "p"), process("gone", "ns", "q"), kept)
	g := record.GroupLimits{Agent: "gone", Addr: addr(1), Namespace: "ns", Group: "g", CPULimit: 5}
	other := g
	other.Agent, other.Addr = "stays", addr(2)
	must(t, s.SetGroups(t.Context(), []record.GroupLimits{g, other}, gozzard.AuditRow{At: start}))

	n, err := s.Forget(t.Context(), gone.Info.Ref(), gozzard.AuditRow{At: start, Act: "forget:gone"})
	must(t, err)
	equal(t, "processes that went", n, 2)
	equal(t, "processes", processes(t, s, nil), []record.Process{kept})
	left, err := s.Groups(t.Context(), "ns", []gozzard.AgentID{"gone", "stays"})
	must(t, err)
	equal(t, "groups", left, []record.GroupLimits{other})
	hosts, err := s.Hosts(t.Context())
	must(t, err)
	equal(t, "hosts", len(hosts), 1)
	rows, err := s.Audit(t.Context(), 1)
	must(t, err)
	equal(t, "audit", rows[0].Act, "forget:gone")

	// It comes back with any session number and protocol, and needs nothing.
	back := host("gone", 2, 1, 7)
	back.Protocol, back.NewestGen = 2, 1000
	now, opened, err := s.OpenSession(t.Context(), back)
	must(t, err)
	equal(t, "opened", opened, true)
	equal(t, "restored", now.RestoredJournal, now.JournalSince)
	equal(t, "lifted", now.Lifted, true)

	n, err = s.Forget(t.Context(), gozzard.HostRef{Agent: "nobody"}, gozzard.AuditRow{At: start, Act: "forget:nobody"})
	must(t, err)
	equal(t, "processes of nobody", n, 0)
}

func groups(t *testing.T, s control.Store) {
	a := record.GroupLimits{Agent: "a", Addr: addr(1), Namespace: "业务", Group: "组一", CPULimit: 12.5,
		MemLimit: 0.25, CPUWeight: 3, MemWeight: 4, Labels: map[string]string{"x": "y"}, SupplierID: 9}
	b, other := a, a
	b.Agent, b.Labels, b.Addr = "b", nil, gozzard.HostAddr{}
	other.Namespace = "别的"
	audit := gozzard.AuditRow{At: start, Caller: gozzard.Caller{App: "app", User: "u"}, Act: "set_groups",
		RequestHash: [32]byte{7}, Targets: 3}
	must(t, s.SetGroups(t.Context(), []record.GroupLimits{b, a, other}, audit))
	got, err := s.Groups(t.Context(), "业务", []gozzard.AgentID{"b", "a", "unknown", "b"})
	must(t, err)
	equal(t, "groups", got, []record.GroupLimits{a, b})
	changed, twice := a, a
	changed.CPULimit, twice.CPULimit = 50, 60
	must(t, s.SetGroups(t.Context(), []record.GroupLimits{changed, twice}, audit))
	got, err = s.Groups(t.Context(), "业务", []gozzard.AgentID{"a"})
	must(t, err)
	equal(t, "changed", got, []record.GroupLimits{twice})
	got, err = s.Groups(t.Context(), "业务", nil)
	must(t, err)
	equal(t, "of no agent", len(got), 0)
	rows, err := s.Audit(t.Context(), 10)
	must(t, err)
	equal(t, "audit rows", len(rows), 2)
	audit.Seq = rows[0].Seq
	equal(t, "audit row", rows[0], audit)
}

func auditLimit(t *testing.T, s control.Store) {
	for range 5 {
		accept(t, s, nil)
	}
	for limit, want := range map[int]int{-1: 0, 0: 0, 2: 2, 5: 5, 100: 5} {
		rows, err := s.Audit(t.Context(), limit)
		must(t, err)
		equal(t, fmt.Sprintf("rows with limit %d", limit), len(rows), want)
	}
}

// offer accepts a task whose one attempt brings a definition of a process.
func offer(t *testing.T, s control.Store, p record.Process) gozzard.Attempt {
	t.Helper()
	n := newTask(attempts(1))
	a := &n.Attempts[0]
	a.Agent, a.Key, a.Spec, a.Labels, a.State = p.ID.Agent, p.ID.Key, p.Spec, p.Labels, gozzard.AttemptDispatched
	n.Register = []record.Process{p}
	_, err := s.Accept(t.Context(), n)
	must(t, err)
	return *a
}

// settleRejected: if a host does not take a definition, the record has again what the host has.
func settleRejected(t *testing.T, s control.Store) {
	p := process("a", "ns", "web")
	version := func(name string) record.Process {
		v := p
		v.Spec, v.Labels = spec(name), map[string]string{"version": name}
		return v
	}
	take := func(a gozzard.Attempt) { settle(t, s, []bool{true}, settlement(a, gozzard.AttemptFailed)) }
	lose := func(a gozzard.Attempt) { settle(t, s, []bool{true}, settlement(a, gozzard.AttemptNotExecuted)) }
	reject := func(a gozzard.Attempt) {
		row := settlement(a, gozzard.AttemptNotExecuted)
		row.Rejected = &p.ID
		settle(t, s, []bool{true}, row)
	}
	has := func(what string, want ...record.Process) {
		t.Helper()
		equal(t, what, processes(t, s, []gozzard.ProcID{p.ID}), want)
	}

	// A process that the host never took is not recorded.
	reject(offer(t, s, version("never")))
	has("the first definition was rejected")

	// A definition that the host took stays, and comes back after those that it did not take.
	take(offer(t, s, version("good")))
	has("taken", version("good"))
	reject(offer(t, s, version("bad")))
	has("rejected", version("good"))
	reject(offer(t, s, version("good"))) // the same definition as recorded: it is not from this attempt
	has("the recorded definition was rejected", version("good"))
	lose(offer(t, s, version("lost")))
	reject(offer(t, s, version("worse")))
	has("rejected after one that never arrived", version("good"))

	// The newest definition decides. While the one before it is open, nothing says what the host has.
	first, second := offer(t, s, version("first")), offer(t, s, version("second"))
	reject(first)
	has("a newer one is on its way", version("second"))
	take(second)
	has("the newer one was taken", version("second"))
	first, second = offer(t, s, version("third")), offer(t, s, version("fourth"))
	take(first)
	reject(second)
	has("it is not known what the host has", version("fourth"))

	// What the host has is not pruned.
	take(offer(t, s, version("kept")))
	last := offer(t, s, version("last"))
	for n := 1; n > 0; {
		var err error
		n, err = s.Prune(t.Context(), start.Add(time.Hour), 100)
		must(t, err)
	}
	reject(last)
	has("after pruning", version("kept"))
}
