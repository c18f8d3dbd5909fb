//go:build linux

package cluster_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// C14: the clocks of two servers are ten minutes apart, and each of them is killed under load. Operations that the one accepts
// for hosts of the other one are executed: what counts is the clock of the database. Both say that their clocks are wrong.
func TestC14ClocksApart(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 0)
	for _, wrong := range []string{"-5m", "5m"} {
		i.env = []string{"GOZZARD_CLOCK_OFFSET=" + wrong}
		i.add()
	}
	f := newLoaded(t, i)

	end := f.begin()
	l := line{id: "C14", fault: "clocks of two servers 10 minutes apart, each of them killed", times: *faultTimes,
		since: "the kill, on its hosts", goal: true}
	for range l.times {
		for _, victim := range f.servers {
			time.Sleep(time.Second) // operations are under way
			hosts := f.agentsOf(victim)
			began := time.Now()
			victim.Kill(syscall.SIGKILL)
			l.took = append(l.took, f.served(hosts, began)...)
			victim.Again()
			victim.answers()
		}
	}
	end()

	for _, m := range f.servers {
		ft.Until(t, time.Minute, func() string { return m.listen + " does not list wrong clocks: " + m.cli("servers") }, func() bool {
			out := m.cli("servers")
			return strings.Contains(out, "ahead of that of the database") && strings.Contains(out, "behind that of the database")
		})
		if !strings.Contains(m.Output(), "the clock of this server is not that of the database") {
			t.Errorf("%s does not log that its clock is wrong", m.listen)
		}
	}
	f.judge(l, ledger.Floor{OK: 40, Percent: 80})
}
