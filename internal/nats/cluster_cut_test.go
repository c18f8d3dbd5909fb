package nats_test

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gozzard/gozzard"
)

// bridge is the network between two peers. It forwards connections until it is cut.
type bridge struct {
	net.Listener
	to string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]struct{}
	wg    sync.WaitGroup
}

func newBridge(t *testing.T) *bridge {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &bridge{Listener: l, conns: map[net.Conn]struct{}{}}
	c.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.wg.Go(func() { c.carry(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); c.set(true); c.wg.Wait() })
	return c
}

func (c *bridge) carry(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer out.Close()

	c.mu.Lock()
	if c.cut {
		c.mu.Unlock()
		return
	}
	c.conns[in], c.conns[out] = struct{}{}, struct{}{}
	c.mu.Unlock()
	c.wg.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
	_, _ = io.Copy(in, out)
}

func (c *bridge) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut = cut; cut {
		for conn := range c.conns {
			_ = conn.Close()
		}
		clear(c.conns)
	}
}

// TestClusterCutInTwo: each half serves its agents; when it is healed, the halves find each other by themselves.
func TestClusterCutInTwo(t *testing.T) {
	a := newAuthority(t)
	var all []*member
	var bridges []*bridge
	var agents []*end
	for i := range 2 {
		c := newBridge(t)
		o := a.options(fmt.Sprintf("s%d", i))
		free, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		c.to = free.Addr().String()
		must(t, free.Close())
		o.Cluster.Listen, o.Cluster.Address = c.to, c.Addr().String()
		all, bridges = append(all, a.member(o)), append(bridges, c)
		agents = append(agents, a.agent(all[i], agentID(i)))
		eventually(t, "the agent", agents[i].isUp)
	}
	introduce(t, all...)

	for round := range 3 {
		for _, c := range bridges {
			c.set(true)
		}
		eventually(t, "the cut", func() bool { return len(all[0].Peers())+len(all[1].Peers()) == 0 })
		for i, e := range agents {
			before := len(all[i].inbox.all())
			must(t, e.Send(&gozzard.Report{Kind: gozzard.ReportResults}))
			eventually(t, "a report in its half", func() bool { return len(all[i].inbox.all()) > before })
			must(t, all[1-i].hub.Send(agentID(i), 0, &gozzard.Command{Kind: gozzard.CommandGreet}))
			must(t, all[1-i].hub.Tell("", []byte(fmt.Sprint("lost ", round))))
		}

		for _, c := range bridges {
			c.set(false)
		}
		eventually(t, "the healing", func() bool { return connected(all...) })
		for i := range agents {
			text := fmt.Sprint("healed ", round)
			eventually(t, "a message of the other half", func() bool {
				must(t, all[1-i].hub.Tell("", []byte(text)))
				return slices.Contains(all[i].messages(), told{all[1-i].id, text})
			})
			eventually(t, "a command of the other half", func() bool {
				must(t, all[1-i].hub.Send(agentID(i), 0, &gozzard.Command{Kind: gozzard.CommandAck}))
				return slices.ContainsFunc(agents[i].got(),
					func(c *gozzard.Command) bool { return c.Kind == gozzard.CommandAck })
			})
		}
	}
	for i, e := range agents {
		for _, one := range all[i].messages() {
			if strings.HasPrefix(one.text, "lost") {
				t.Errorf("heard %q through the cut", one.text)
			}
		}
		if slices.ContainsFunc(e.got(), func(c *gozzard.Command) bool { return c.Kind == gozzard.CommandGreet }) {
			t.Error("got a command through the cut")
		}
		if n := e.Stats().Connects; n != 1 {
			t.Errorf("the agent connected %d times", n)
		}
	}
}
