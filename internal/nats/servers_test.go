package nats_test

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/nats"
)

// roamer is an agent that may use several servers.
func (a *authority) roamer(agent gozzard.AgentID, addresses ...string) *end {
	a.t.Helper()
	return link(a.t, nats.LinkOptions{URL: strings.Join(addresses, ","), Agent: agent, TLS: a.agentTLS(0, agent),
		Machine: "machine"})
}

// TestLinkMovesToAnotherServer: when a server is gone, its agents are at the others.
func TestLinkMovesToAnotherServer(t *testing.T) {
	a := newAuthority(t)
	all := a.cluster(3)
	addresses := []string{all[0].Addr(), all[1].Addr(), all[2].Addr()}
	at := map[string]int{}
	var agents []*end
	for i := range 60 {
		agents = append(agents, a.roamer(agentID(i), addresses...))
	}
	for _, e := range agents {
		eventually(t, "the agent", e.isUp)
		at[e.Address()]++
	}
	for _, addr := range addresses {
		if at[addr] < 5 {
			t.Errorf("the agents are not spread: %v", at)
		}
	}

	all[0].stop()
	all[0].Close()
	begin := time.Now()
	clear(at)
	for i, e := range agents {
		eventually(t, "the agent at another server", func() bool { return e.isUp() && e.Address() != addresses[0] })
		at[e.Address()]++
		eventually(t, "a command", func() bool {
			must(t, all[1].hub.Send(agentID(i), 0, &gozzard.Command{Kind: gozzard.CommandGreet}))
			return len(e.got()) > 0
		})
	}
	t.Logf("all at other servers after %v: %v", time.Since(begin), at)
}

// rejecting is a gate that accepts no agent.
type rejecting struct{ gate }

func (rejecting) Admit(*tls.ConnectionState, string) (gozzard.AgentID, int, time.Time, error) {
	return "", 0, time.Time{}, errors.New("no")
}

// TestLinkSkipsWhatDoesNotWork: nothing listens, another installation listens, a server that rejects the agent, and one
// that accepts the connection and says nothing.
func TestLinkSkipsWhatDoesNotWork(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	good := a.member(a.options("good"))
	foreign := other.member(other.options("foreign"))
	closed := a.options("closed")
	closed.Gate = rejecting{}
	refuses := a.member(closed)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	gone := a.member(a.options("gone"))
	gone.stop()
	gone.Close()

	for what, addr := range map[string]string{"nothing": gone.Addr(), "another installation": foreign.Addr(),
		"a rejection": refuses.Addr(), "silence": silent.Addr().String()} {
		t.Run(what, func(t *testing.T) {
			// The order is random, so several agents make it likely that one begins with the bad address.
			var agents []*end
			for i := range 5 {
				agents = append(agents, a.roamer(agentID(i), addr, good.Addr()))
			}
			for _, e := range agents {
				eventually(t, "the good one", e.isUp)
				if e.Address() != good.Addr() {
					t.Errorf("is at %s", e.Address())
				}
				e.stop()
			}
		})
	}
}

// TestLinkLearnsServers: servers that are named later count more than those of the options, and an agent leaves a server
// that is not named any more.
func TestLinkLearnsServers(t *testing.T) {
	a := newAuthority(t)
	all := a.cluster(3)
	e := a.roamer("a", all[0].Addr())
	eventually(t, "the agent", e.isUp)

	// A server that never was on a list may be the only one that this agent can reach: it stays.
	must(t, e.SetServers([]string{all[1].Addr(), all[2].Addr()}))
	must(t, e.SetServers([]string{all[1].Addr(), all[2].Addr()}))
	must(t, e.Reconnect())
	eventually(t, "a named server", func() bool { return e.isUp() && e.Address() != all[0].Addr() })
	at := map[string]*member{all[1].Addr(): all[1], all[2].Addr(): all[2]}

	// Its server leaves.
	home := at[e.Address()]
	delete(at, home.Addr())
	for addr := range at {
		must(t, e.SetServers([]string{addr}))
		eventually(t, "the other server", func() bool { return e.isUp() && e.Address() == addr })
	}
	home.stop()
	home.Close()

	// All named servers are gone: the one of the options is left.
	for _, m := range at {
		m.stop()
		m.Close()
	}
	eventually(t, "the server of the options", func() bool { return e.isUp() && e.Address() == all[0].Addr() })

	for _, bad := range []string{"", "host", "http://host:1", "nats://u:p@host:1"} {
		if err := e.SetServers([]string{bad}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// TestLinkReturnsToFormerServers: an agent that is moved to a server which dies goes back to one that it knew before.
func TestLinkReturnsToFormerServers(t *testing.T) {
	a := newAuthority(t)
	all := a.cluster(3)
	e := a.roamer("a", all[0].Addr())
	eventually(t, "the agent", e.isUp)
	must(t, e.SetServers([]string{all[1].Addr()}))
	must(t, e.Reconnect())
	eventually(t, "the named server", func() bool { return e.isUp() && e.Address() == all[1].Addr() })

	for _, m := range []*member{all[0], all[2]} {
		m.stop()
		m.Close()
	}
	before := e.Stats().Connects
	must(t, e.SetServers([]string{all[2].Addr()}))
	eventually(t, "the former server", func() bool {
		return e.Stats().Connects > before && e.isUp() && e.Address() == all[1].Addr()
	})
}

// TestSecretStaysOnTheMachine: an agent with a join secret never sends it to another machine.
func TestSecretStaysOnTheMachine(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	if _, err := nats.NewLink(nats.LinkOptions{URL: b.Addr() + ",192.0.2.1:4230", Agent: "a", Secret: secret,
		Command: func(*gozzard.Command) {}}); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("got %v", err)
	}
	e := link(t, nats.LinkOptions{URL: b.Addr(), Agent: "a"})
	if err := e.SetServers([]string{"192.0.2.1:4230"}); err == nil {
		t.Error("a list with another machine was accepted")
	}
}

// TestLinkLeavesServerThatDoesNothing: a server accepts the connection and never answers, as one that is cut off from its
// record. The link goes to another one, also to one that it does not know any more, and stays where it is served.
func TestLinkLeavesServerThatDoesNothing(t *testing.T) {
	a := newAuthority(t)
	serves, idle := a.member(a.options("serves")), a.member(a.options("idle"))
	e := link(t, nats.LinkOptions{URL: idle.Addr(), Agent: agentID(1), TLS: a.agentTLS(0, agentID(1)), Machine: "machine",
		Unserved: 300 * time.Millisecond})
	eventually(t, "the agent", e.isUp)
	time.Sleep(time.Second)
	if n := e.upCount(); n != 1 {
		t.Fatalf("without another server there were %d connections", n)
	}

	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				_ = serves.hub.Send(agentID(1), 0, &gozzard.Command{Kind: gozzard.CommandGreet})
			}
		}
	}()
	must(t, e.SetServers([]string{serves.Addr()})) // the agent learns it, and then that it has left
	must(t, e.SetServers([]string{idle.Addr()}))
	must(t, e.Reconnect())
	eventually(t, "the server that answers", func() bool { return e.isUp() && e.Address() == serves.Addr() })
	n := e.upCount()
	time.Sleep(time.Second)
	if e.upCount() != n || e.Address() != serves.Addr() {
		t.Errorf("the agent is at %s after %d more connections", e.Address(), e.upCount()-n)
	}
}
