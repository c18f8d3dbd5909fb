//go:build linux

package cluster_test

import (
	"flag"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

var (
	faultKills = flag.Int("cluster.kills", 2, "how often a server is killed under load")
	faultOps   = flag.Int("cluster.operations", 100, "operations that are acknowledged under kills of servers and failovers of PostgreSQL, at least; a tenth under other faults")
	faultTimes = flag.Int("cluster.times", 1, "how often the other faults are repeated")
	faultLong  = flag.Duration("cluster.frozen", 6*time.Second, "how long a server is frozen or cut off; the record takes its lock away after 3 s")
)

// callers is how many callers send operations at the same time. Each begins at one of the servers and tries the next one
// when it gets no acknowledgement.
const callers = 6

// loaded is an installation with agents under load.
type loaded struct {
	*installation
	l      *ledger.Ledger
	agents []*ft.Program
	probes int
	parts  int // ledgers so far
	least  int // operations of the present ledger
}

// newLoaded enrols one host at each server, and lets each agent learn all servers.
func newLoaded(t *testing.T, i *installation) *loaded {
	t.Helper()
	f := &loaded{installation: i}
	for n, m := range i.servers {
		f.agents = append(f.agents, m.join(faultHost(n+1)))
	}
	for _, agent := range f.agents {
		ft.Until(t, time.Minute, agent.Output, func() bool { return i.knownTo(agent) == len(i.servers) })
	}
	f.settle()
	f.fresh(fewOps())
	return f
}

// fewOps is how many operations are acknowledged under most faults.
func fewOps() int { return max(100, *faultOps/10) }

// fresh begins a new ledger, for a line of the table. At least so many operations are acknowledged under its fault.
func (f *loaded) fresh(least int) {
	f.parts++
	f.l = ledger.New(f.t, f.apis()...)
	f.l.Addr, f.l.Cloud, f.l.Prefix = faultHost, f.cloud, fmt.Sprintf("part%d-", f.parts)
	f.least = max(least, 30)
	if *faultOps < 1000 { // many tests run beside this one
		f.l.Pause = 200 * time.Millisecond
	}
}

// faultHost is the address of a host of the fault tests, counted from 1 as the ledger does.
func faultHost(n int) string { return fmt.Sprintf("127.0.0.%d", 20+n) }

// apis calls each server. A caller gives up sooner than a person would: it can go to another server.
func (i *installation) apis() (list []*ft.API) {
	for _, m := range i.servers {
		api := m.For(i.t)
		api.Client = &http.Client{Timeout: 4 * time.Second, Transport: m.Client.Transport}
		list = append(list, api)
	}
	return list
}

// settle waits until every server knows that every host is online.
func (f *loaded) settle() {
	f.t.Helper()
	for _, m := range f.servers {
		for n := range f.agents {
			m.online(faultHost(n+1), true)
		}
	}
}

// begin starts the load. end waits until enough operations were acknowledged, and then for the callers.
func (f *loaded) begin() (end func()) {
	stop := f.l.Load(callers, len(f.agents), 1<<30)
	return func() {
		f.t.Helper()
		ft.Until(f.t, 40*time.Minute, func() string { return "too few operations are acknowledged" },
			func() bool { return len(f.l.Tasks()) >= f.least })
		stop()
	}
}

// judge ends a line: nothing may be lost, done twice or reported wrongly, and everything works again on all hosts.
func (f *loaded) judge(l line, least ledger.Floor) {
	f.t.Helper()
	f.settle()
	f.l.Afterwards(12, f.hosts()...)
	l.figures = f.l.Judge(l.id, least)
	l.failed = f.t.Failed()
	again := "without a pause"
	if len(l.took) > 0 {
		again = "again after " + spread(l.took) + ", counted from " + l.since
	}
	fmt.Printf("fault %s: %s, %d times; operations are executed %s\n", l.id, l.fault, l.times, again)
	l.add()
}

// hosts are the numbers of all hosts.
func (f *loaded) hosts() []int {
	list := make([]int, len(f.agents))
	for n := range list {
		list[n] = n + 1
	}
	return list
}

// agentsOf lists the hosts whose agents are connected to a server.
func (f *loaded) agentsOf(m *member) (list []int) {
	for n, agent := range f.agents {
		if connected(f.t, agent.PID(), m.agent) {
			list = append(list, n+1)
		}
	}
	return list
}

// served waits until operations on hosts are executed again, and returns how long that took since began for each host.
func (f *loaded) served(hosts []int, began time.Time) (took []time.Duration) {
	f.t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, n := range hosts {
		f.probes++
		round := f.probes
		wg.Go(func() {
			d := f.probe(n, round, began)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, d)
		})
	}
	wg.Wait()
	return took
}

// servedDuring is served beside a fault that lasts for a while: end ends it.
func (f *loaded) servedDuring(hosts []int, began time.Time, end func()) []time.Duration {
	f.t.Helper()
	done := make(chan []time.Duration)
	go func() { done <- f.served(hosts, began) }()
	time.Sleep(*faultLong - time.Since(began))
	end()
	return <-done
}

// probe repeats operations on a host until one is executed.
func (f *loaded) probe(host, round int, began time.Time) time.Duration {
	never := make(chan struct{})
	for try := 0; ; try++ {
		mark := fmt.Sprintf("probe%d-%d", round, try)
		f.l.Send(mark, host, callers+host, never)
		e, _ := f.l.Verdict(mark, f.l.Tasks()[mark], time.Now().Add(time.Minute))
		if e != nil && ledger.OutcomeOf(*e) == ledger.Executed {
			return time.Since(began)
		}
		if time.Since(began) > 2*time.Minute {
			f.t.Errorf("no operation on %s is executed any more: %+v", faultHost(host), e)
			return time.Since(began)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// spread prints the middle and the end of a list of times.
func spread(list []time.Duration) string {
	middle, ok := percentile(list, 50)
	if !ok {
		return "no times"
	}
	end, _ := percentile(list, 99)
	return fmt.Sprintf("p50 %.1f s, p99 %.1f s, %d in all", middle.Seconds(), end.Seconds(), len(list))
}

// answers waits until a server that was started again answers.
func (m *member) answers() {
	m.i.t.Helper()
	ft.Until(m.i.t, time.Minute, m.Output, func() bool {
		ans, err := m.Try("get_agent_status", ft.J{"hosts": []ft.J{host(faultHost(1))}})
		return err == nil && ans.Code == 0
	})
}
