//go:build linux

package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
	"github.com/gozzard/gozzard/test/pgtest"
)

// C1: one of three servers is killed again and again under load. Its hosts go to another one, and callers do, too.
func TestC1ServersKilledUnderLoad(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newLoaded(t, newInstallation(t, 3))
	f.fresh(*faultOps)
	end := f.begin()
	var took []time.Duration
	for n := range *faultKills {
		time.Sleep(time.Duration(200+rand.IntN(800)) * time.Millisecond) // operations are under way
		victim := f.servers[rand.IntN(len(f.servers))]
		if n%2 == 0 { // the other half are any servers, with hosts or without
			victim = f.homeOf(f.agents[rand.IntN(len(f.agents))])
		}
		if victim == nil {
			t.Fatal("a host has no server although all are there")
		}
		hosts := f.agentsOf(victim)
		began := time.Now()
		victim.Kill(syscall.SIGKILL)
		took = append(took, f.served(hosts, began)...)
		victim.Again()
		victim.answers()
	}
	end()
	f.judge(line{id: "C1", fault: fmt.Sprintf("one of %d servers killed", len(f.servers)), times: *faultKills, took: took,
		since: "the kill, on its hosts", goal: true}, ledger.Floor{OK: 40, Percent: 50})
}

// C2: the server of a host is frozen under load, for longer than the record waits for it, and then goes on with what it believed.
func TestC2ServerFrozenUnderLoad(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newLoaded(t, newInstallation(t, 2))
	end := f.begin()
	var took []time.Duration
	for range *faultTimes {
		time.Sleep(time.Second) // operations are under way
		victim := f.homeOf(f.agents[rand.IntN(len(f.agents))])
		if victim == nil {
			t.Fatal("a host has no server although all are there")
		}
		hosts := f.agentsOf(victim)
		began := time.Now()
		victim.Kill(syscall.SIGSTOP)
		t.Cleanup(func() { victim.Kill(syscall.SIGCONT) }) // or it cannot be ended
		took = append(took, f.servedDuring(hosts, began, func() { victim.Kill(syscall.SIGCONT) })...)
		victim.answers()
		time.Sleep(time.Second) // it acts on what it believed
	}
	end()
	f.judge(line{id: "C2", fault: fmt.Sprintf("one of %d servers frozen for %s, then released", len(f.servers), *faultLong),
		times: *faultTimes, took: took, since: "the freeze, on its hosts"}, ledger.Floor{OK: 40, Percent: 25})
}

// C3, C15, C11: PostgreSQL crashes, is restarted, and is frozen, under load of two servers.
func TestC3C11C15PostgresUnderServers(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newLoaded(t, newInstallation(t, 2))
	t.Cleanup(f.pg.Thaw) // or it cannot be ended
	for _, fault := range []struct {
		line
		happen func()
	}{
		{line{id: "C3", fault: "PostgreSQL killed", times: 2 * *faultTimes}, func() { f.pg.End(syscall.SIGQUIT); f.pg.Again() }},
		{line{id: "C15", fault: "PostgreSQL restarted", times: 2 * *faultTimes}, func() { f.pg.End(syscall.SIGINT); f.pg.Again() }},
		{line{id: "C11", fault: fmt.Sprintf("PostgreSQL frozen for %s", *faultLong), times: *faultTimes}, func() {
			f.pg.Freeze()
			time.Sleep(*faultLong)
			f.pg.Thaw()
		}},
	} {
		f.fresh(fewOps())
		end := f.begin()
		for range fault.times {
			time.Sleep(time.Duration(300+rand.IntN(700)) * time.Millisecond) // operations are under way
			fault.happen()
			fault.took = append(fault.took, f.served(f.hosts(), time.Now())...)
		}
		end()
		fault.since = "the return of the database"
		f.judge(fault.line, ledger.Floor{OK: 40, Percent: 25})
	}
}

// C16: PostgreSQL is lost under load of two servers, and its synchronous standby takes over, again and again.
func TestC16PostgresFailsOver(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 0)
	primary, standby := i.pg, i.pg.Standby()
	primary.Synchronous()
	both := fmt.Sprintf("postgres://%s@/fleet?host=%s,%s", pgtest.User, primary.Dir, standby.Dir)
	for range 2 {
		i.add("--cluster-listen", freeAddr(t), "--record", both)
	}
	f := newLoaded(t, i)
	f.fresh(*faultOps)

	end := f.begin()
	var took []time.Duration
	for range *faultTimes {
		time.Sleep(time.Duration(500+rand.IntN(1000)) * time.Millisecond) // operations are under way
		began := time.Now()
		primary.End(syscall.SIGQUIT)
		standby.Promote()
		took = append(took, f.served(f.hosts(), began)...)

		// The lost one comes back as the standby.
		primary, standby = standby, primary
		standby.Follow(primary)
		primary.Synchronous()
	}
	end()
	f.judge(line{id: "C16", fault: "PostgreSQL lost, its synchronous standby promoted at once", times: *faultTimes, took: took,
		since: "the loss, on all hosts", goal: true}, ledger.Floor{OK: 40, Percent: 25})
}

// cable is what connects a server to the others and to the record.
type cable struct{ others, record *ft.Proxy }

// cut cuts cables, or repairs them.
func cut(cables []*ft.Proxy, yes bool) {
	for _, c := range cables {
		c.Hold(yes)
		c.Cut() // what was held belongs to connections that are given up
	}
}

// newCabled starts servers that reach each other and the record by cables.
func newCabled(t *testing.T, servers int) (i *installation, cables []cable) {
	t.Helper()
	i = newInstallation(t, 0)
	for range servers {
		listen, dir := freeAddr(t), shortDir(t)
		c := cable{others: ft.NewProxy(t, listen), record: ft.NewSocketProxy(t, pgtest.SocketIn(dir), pgtest.SocketIn(i.pg.Dir))}
		cables = append(cables, c)
		i.add("--cluster-listen", listen, "--cluster-address", c.others.Addr(), "--record",
			fmt.Sprintf("postgres://%s@/fleet?host=%s", pgtest.User, dir))
	}
	return i, cables
}

// C4, C12, C13: two servers do not reach each other. Both reach the record, or one does, or none. The hosts of a server that
// reaches neither the record nor the other server go to the other one, if that can operate them.
func TestC4C12C13ServersCutApart(t *testing.T) {
	t.Parallel() // it mostly waits
	i, cables := newCabled(t, 2)
	f := newLoaded(t, i)
	between := []*ft.Proxy{cables[0].others, cables[1].others}
	one := append(between[:2:2], cables[1].record)
	none := append(one[:3:3], cables[0].record)

	for _, fault := range []struct {
		line
		happen func() []time.Duration
	}{
		{line{id: "C4", fault: fmt.Sprintf("two servers cut apart for %s, both reach the database", *faultLong),
			since: "the cut, on all hosts"}, func() []time.Duration {
			began := time.Now()
			cut(between, true)
			took := f.servedDuring(append(f.hosts(), f.hosts()...), began, func() { cut(between, false) })
			if last := slices.Max(took); *faultLong >= time.Minute && last > *faultLong {
				t.Errorf("operations were executed %s after the cut, which was over then: servers that reach the record need not hear each other", last)
			}
			return took
		}},
		{line{id: "C12", fault: "two servers cut apart until all hosts are served, one reaches the database",
			since: "the cut, on all hosts"}, func() []time.Duration {
			began := time.Now()
			cut(one, true)
			defer cut(one, false)
			return f.served(f.hosts(), began)
		}},
		{line{id: "C13", fault: fmt.Sprintf("two servers cut apart for %s, none reaches the database", *faultLong),
			since: "the repair, on all hosts"}, func() []time.Duration {
			cut(none, true)
			time.Sleep(*faultLong)
			cut(none, false)
			return f.served(f.hosts(), time.Now())
		}},
	} {
		f.fresh(fewOps())
		fault.times = *faultTimes

		end := f.begin()
		for range fault.times {
			time.Sleep(time.Second) // operations are under way
			fault.took = append(fault.took, fault.happen()...)
		}
		end()
		f.judge(fault.line, ledger.Floor{OK: 40, Percent: 5}) // hosts are shown as offline before they go to the other server
	}
}

// C18: all agents are sent to a server that reaches neither the record nor the other server, because the other one is drained. It
// takes their connections, and opens no session. When the other one is undrained, they find it, though nobody can name it to them.
func TestC18MovedToServerCutOff(t *testing.T) {
	t.Parallel() // it mostly waits
	i, cables := newCabled(t, 2)
	f := newLoaded(t, i)
	good, off := i.servers[0], i.servers[1]
	at := func(m *member) func() bool {
		return func() bool { time.Sleep(time.Second); return len(f.agentsOf(m)) == len(f.agents) }
	}
	outputs := func() string { return f.agents[0].Output() + f.agents[1].Output() }

	alone := []*ft.Proxy{cables[0].others, cables[1].others, cables[1].record}
	cut(alone, true)
	good.cli("servers", "drain", good.id())
	ft.Until(t, 2*time.Minute, outputs, at(off))
	good.cli("servers", "undrain", good.id())
	ft.Until(t, 5*time.Minute, outputs, at(good))
	f.served(f.hosts(), time.Now())
}
