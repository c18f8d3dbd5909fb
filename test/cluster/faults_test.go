//go:build linux

package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// C1: one of three servers is killed again and again under load. Its hosts go to another one, and callers do, too.
func TestC1ServersKilledUnderLoad(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newLoaded(t, newInstallation(t, 3))
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
	fmt.Printf("fault C1: one of %d servers killed %d times; operations on its hosts are executed again after %s\n",
		len(f.servers), *faultKills, spread(took))
	f.judge("C1", ledger.Floor{OK: 40, Percent: 50})
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
	fmt.Printf("fault C2: one of %d servers frozen %d times for %s; operations on its hosts are executed again after %s\n",
		len(f.servers), *faultTimes, *faultLong, spread(took))
	f.judge("C2", ledger.Floor{OK: 40, Percent: 25})
}

// C3: PostgreSQL crashes under load of two servers.
func TestC3PostgresKilledUnderServers(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newLoaded(t, newInstallation(t, 2))
	end := f.begin()
	var took []time.Duration
	kills := 2 * *faultTimes
	for range kills {
		time.Sleep(time.Duration(300+rand.IntN(700)) * time.Millisecond) // operations are under way
		f.pg.End(syscall.SIGQUIT)
		f.pg.Again()
		took = append(took, f.served([]int{1, 2}, time.Now())...)
	}
	end()
	fmt.Printf("fault C3: PostgreSQL crashed %d times under %d servers; operations are executed again after %s\n", kills,
		len(f.servers), spread(took))
	f.judge("C3", ledger.Floor{OK: 40, Percent: 25})
}

// C4: two servers do not reach each other, but both reach the record. Operations on hosts of the other server go on.
func TestC4ServersCutApart(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 0)
	var cables []*ft.Proxy
	for range 2 {
		listen := freeAddr(t)
		cable := ft.NewProxy(t, listen)
		cables = append(cables, cable)
		i.add("--cluster-listen", listen, "--cluster-address", cable.Addr())
	}
	f := newLoaded(t, i)

	// Cut them.
	end := f.begin()
	var took []time.Duration
	for range *faultTimes {
		time.Sleep(time.Second) // operations are under way
		began := time.Now()
		for _, cable := range cables {
			cable.Hold(true)
			cable.Cut()
		}
		took = append(took, f.servedDuring([]int{1, 2, 1, 2}, began, func() {
			for _, cable := range cables {
				cable.Hold(false)
				cable.Cut() // what was held belongs to connections that are given up
			}
		})...)
	}
	end()
	fmt.Printf("fault C4: two servers cut apart %d times for %s; operations on hosts of both are executed after %s\n",
		*faultTimes, *faultLong, spread(took))
	f.judge("C4", ledger.Floor{OK: 40, Percent: 25})
}
