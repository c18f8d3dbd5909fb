//go:build linux

package cluster_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// C17: two servers reach each other through a NATS cluster with the documented configuration. Whatever happens to it, each
// server operates its hosts, and log and list of servers say what is wrong. Afterwards each operates the hosts of both.
func TestC17ExternalNATS(t *testing.T) {
	t.Parallel() // it mostly waits
	i, c := newExternal(t, false)
	a, b := i.servers[0], i.servers[1]
	agents := []*ft.Program{a.join(faultHost(1)), a.join(faultHost(2))}
	begun := 0
	works := func(everywhere bool) {
		t.Helper()
		begun++
		for n, agent := range agents {
			ip, name := faultHost(n+1), fmt.Sprintf("web%d-%d", begun, n)
			if !everywhere {
				i.atHome(agent, ip).operate(ip, name)
				continue
			}
			for _, m := range i.servers {
				m.online(ip, true)
			}
			i.operate(ip, name)
		}
	}
	works(true)
	i.logsEverywhere()

	// One broker dies.
	victim := c.of(a.Program)
	if victim < 0 {
		t.Fatal("a server has no broker")
	}
	c.nodes[victim].Kill(syscall.SIGKILL)
	ft.Until(t, time.Minute, a.Output, func() bool { return c.of(a.Program) >= 0 })
	i.hearEachOther(true)
	works(true)
	c.nodes[victim].Again()

	// All are frozen, and go on.
	for _, p := range c.nodes {
		p.Kill(syscall.SIGSTOP)
	}
	i.hearEachOther(false)
	a.says("connection to the NATS cluster was lost")
	works(false)
	for _, p := range c.nodes {
		p.Kill(syscall.SIGCONT)
	}
	i.hearEachOther(true)
	works(true)

	// The user may not publish or subscribe, until the brokers allow it.
	b.restart("second", natsPassword)
	b.says("the NATS cluster denies what servers need")
	i.hearEachOther(false)
	works(false)
	c.second = "gozzard." + c.installation + ".sv.>"
	c.reload()
	i.hearEachOther(true)

	// The account is a wrong one, and then the password, until its file is corrected.
	b.restart("elsewhere", natsPassword)
	i.hearEachOther(false)
	a.says("another server runs, but is not heard")
	works(false)
	denials := func() int { return strings.Count(strings.ToLower(b.Output()), "authorization violation") }
	before := denials()
	b.restart("gozzard", "wrong")
	ft.Until(t, time.Minute, b.Output, func() bool { return denials() > before })
	b.login("gozzard", natsPassword)
	i.hearEachOther(true)
	works(true)
	i.keysThroughNATS()
	fmt.Println("fault C17: a NATS cluster between servers that is late, loses a broker, freezes, denies, has another account: 0 operations lost")
}

// keysThroughNATS rotates both keys through the NATS cluster, without a restart. Servers that start later hear each other, too.
func (i *installation) keysThroughNATS() {
	i.t.Helper()
	a, b := i.servers[0], i.servers[1]
	before, first := a.read("signing.key"), a.read("ca.key")
	b.cli("key", "rotate", "signing")
	i.sameKey()
	a.cli("key", "rotate", "authority")
	i.sameFile("ca-next.key")
	b.cli("key", "rotate", "authority", "--finish", "--confirm", "2") // its hosts have certificates for a day
	i.sameFile("ca.key")
	if a.read("signing.key") == before || a.read("ca.key") == first {
		i.t.Error("the keys are those before")
	}
	i.newCredentials()
	b.Kill(syscall.SIGTERM)
	b.Again()
	b.answers()
	i.hearEachOther(true)
}

// atHome is the installation with the home of an agent alone.
func (i *installation) atHome(agent *ft.Program, ip string) *installation {
	i.t.Helper()
	var home *member
	ft.Until(i.t, time.Minute, agent.Output, func() bool { home = i.homeOf(agent); return home != nil })
	home.online(ip, true)
	one := *i
	one.servers = []*member{home}
	return &one
}

// logsEverywhere reads the log of a process through each server: the question goes to the home of the host.
func (i *installation) logsEverywhere() {
	i.t.Helper()
	for n := 1; n <= 2; n++ {
		name := fmt.Sprint("talker", n)
		out := i.servers[0].cli("run", "--name", name, "--host", faultHost(n), "--user", "root", "--", "sh", "-c",
			"while :; do echo I am here; sleep 1; done")
		if !strings.Contains(out, "1 done of 1") {
			i.t.Errorf("run: %s", out)
		}
		for _, m := range i.servers {
			ft.Until(i.t, time.Minute, func() string { return m.listen + " does not show the log" }, func() bool {
				out, err := m.try("logs", name)
				return err == nil && strings.Contains(out, "I am here")
			})
		}
		i.servers[0].cli("stop", name)
	}
}
