package nats_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/nats"
)

// TestClusterReportsStayAtTheirServer: a report reaches the server whose broker the agent is connected to, and no other,
// also while the hub of that server is away.
func TestClusterReportsStayAtTheirServer(t *testing.T) {
	const each = 3000
	a := newAuthority(t)
	all := a.cluster(3)
	var agents []*end
	for i, m := range all {
		agents = append(agents, a.agent(m, agentID(i)))
	}
	send := func(i int, beat uint64) {
		t.Helper()
		must(t, agents[i].Send(&gozzard.Report{Kind: gozzard.ReportResults, Beat: beat}))
		must(t, agents[i].Send(&gozzard.Report{Kind: gozzard.ReportHeartbeat, Beat: beat}))
	}

	for i := range agents {
		eventually(t, "the agent", agents[i].isUp)
	}
	for beat := range uint64(each) {
		for i := range agents {
			send(i, beat)
		}
	}
	for i, m := range all {
		eventually(t, "all reports of the agent", func() bool { return len(m.inbox.all()) >= 2*each })
		for _, r := range m.inbox.all() {
			if r.from != agentID(i) {
				t.Fatalf("server %s got a report of %s", m.id, r.from)
			}
		}
	}

	// Without its hub, reports of this broker go nowhere. The next hub gets the later ones.
	all[0].stop()
	for beat := range uint64(100) {
		send(0, each+beat)
	}
	all[0].openHub(t)
	eventually(t, "the agent at the new hub", func() bool {
		send(0, 1_000_000)
		return slices.ContainsFunc(all[0].inbox.all(), func(r received) bool { return r.Beat == 1_000_000 })
	})
	for i, m := range all[1:] {
		if n := len(m.inbox.all()); n != 2*each {
			t.Errorf("server %d has %d reports, want %d", i+1, n, 2*each)
		}
	}
}

// TestClusterChangesWhileAgentsAreConnected: a server joins, another leaves, and no agent notices. A command of one
// server reaches agents of all others.
func TestClusterChangesWhileAgentsAreConnected(t *testing.T) {
	a := newAuthority(t)
	all := a.cluster(2)
	agents := []*end{a.agent(all[0], "a0"), a.agent(all[1], "a1")}
	for _, e := range agents {
		eventually(t, "the agent", e.isUp)
	}

	third := a.member(a.options("s2"))
	all = append(all, third)
	introduce(t, all...)
	greet := func(from *member, to gozzard.AgentID, e *end) {
		t.Helper()
		before := len(e.got())
		eventually(t, from.id+" at "+string(to), func() bool {
			must(t, from.hub.Send(to, 0, &gozzard.Command{Kind: gozzard.CommandGreet}))
			time.Sleep(10 * time.Millisecond)
			return len(e.got()) > before
		})
	}
	for _, m := range all {
		greet(m, "a0", agents[0])
		greet(m, "a1", agents[1])
	}

	// It leaves again.
	third.stop()
	third.Close()
	must(t, all[0].SetRoutes([]string{all[1].ClusterAddr()}))
	must(t, all[1].SetRoutes(nil))
	eventually(t, "two servers", func() bool { return connected(all[:2]...) })
	greet(all[0], "a1", agents[1])
	greet(all[1], "a0", agents[0])

	for i, e := range agents {
		if s := e.Stats(); s.Connects != 1 || !e.isUp() {
			t.Errorf("agent %d connected %d times", i, s.Connects)
		}
	}
}

// TestAgentsUseAnyServer: the certificate of an agent is good at every server, and a connection that was cut comes back.
func TestAgentsUseAnyServer(t *testing.T) {
	a := newAuthority(t)
	for i, m := range a.cluster(2) {
		e := a.agent(m, "roamer")
		eventually(t, "the agent", e.isUp)
		m.Cut("roamer", 0)
		eventually(t, "the agent again", func() bool { return e.isUp() && e.upCount() == 2 })
		must(t, e.Send(&gozzard.Report{Kind: gozzard.ReportHello, Beat: uint64(i)}))
		eventually(t, "its report", func() bool { return len(m.inbox.all()) == 1 })
		e.stop()
	}
}

func TestServersTellEachOther(t *testing.T) {
	const n = 2000
	a := newAuthority(t)
	all := a.cluster(3)
	eventually(t, "the subscriptions of all", func() bool {
		for _, m := range all {
			must(t, m.hub.Tell("", []byte("ready")))
		}
		return !slices.ContainsFunc(all, func(m *member) bool {
			return !slices.Contains(m.messages(), told{"s0", "ready"}) && m.id != "s0" ||
				!slices.Contains(m.messages(), told{"s1", "ready"}) && m.id != "s1" ||
				!slices.Contains(m.messages(), told{"s2", "ready"}) && m.id != "s2"
		})
	})

	// Messages to all and to one stay in order.
	for i := range n {
		to := ""
		if i%2 == 0 {
			to = "s1"
		}
		must(t, all[0].hub.Tell(to, []byte(fmt.Sprint(i))))
	}
	numbers := func(m *member) (list []told) {
		for _, one := range m.messages() {
			if one.text != "ready" {
				list = append(list, one)
			}
		}
		return list
	}
	eventually(t, "all messages", func() bool { return len(numbers(all[1])) == n && len(numbers(all[2])) == n/2 })
	for i, one := range numbers(all[1]) {
		if one != (told{"s0", fmt.Sprint(i)}) {
			t.Fatalf("message %d is %+v", i, one)
		}
	}
	if got := numbers(all[0]); len(got) != 0 {
		t.Errorf("a server heard itself: %v", got[:1])
	}

	// What cannot be told.
	for _, err := range []error{all[0].hub.Tell("no.server", nil), all[0].hub.Tell("*", nil), all[0].hub.Tell("all", nil),
		all[0].hub.Tell("s1", make([]byte, nats.MaxMessage+1))} {
		if err == nil {
			t.Error("was told")
		}
	}
}

func TestAServerWithoutPeers(t *testing.T) {
	b := broker(t, "")
	h := hub(t, nats.HubOptions{Broker: b, Receive: new(inbox).receive, Peer: func(string, []byte) { t.Error("heard") }})
	must(t, h.Tell("", []byte("x")))
	if err := h.Tell("s1", nil); err == nil {
		t.Error("told a server outside of a cluster")
	}
	if err := b.SetRoutes(nil); err == nil {
		t.Error("set routes outside of a cluster")
	}
	if b.ClusterAddr() != "" || len(b.Peers()) != 0 {
		t.Errorf("got %q and %v", b.ClusterAddr(), b.Peers())
	}
}

// TestTS6AgentsCannotUseTheSubjectsOfServers: an agent neither hears what servers tell each other nor speaks for one.
func TestTS6AgentsCannotUseTheSubjectsOfServers(t *testing.T) {
	a := newAuthority(t)
	all := a.cluster(2)
	evil := new(attacker)
	conn, err := natsgo.Connect("nats://"+all[0].Addr(), natsgo.Secure(a.agentTLS(0, "evil")), natsgo.TLSHandshakeFirst(),
		natsgo.Name("machine/1"), natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
			evil.mu.Lock()
			defer evil.mu.Unlock()
			evil.denied = append(evil.denied, err.Error())
		}))
	must(t, err)
	t.Cleanup(conn.Close)
	evil.Conn = conn

	n := 0
	for _, s := range []string{"sv.all.s1", "sv.s0.s1", "sv.s1.s0", "sv.all", "sv.s0", "sv.all.evil", "sv.0.evil"} {
		must(t, evil.Publish(s, []byte("forged")))
		must(t, evil.PublishRequest(s, "sv.all.s1", []byte("forged")))
		n += 2
		eventually(t, s+" to be refused", func() bool { return evil.deniedCount(t) == n })
	}
	for _, s := range []string{"sv.>", "sv.*.*", "sv.all.*", "sv.s0.*", "sv.*.s1", "sv.all", "*.all.*", ">"} {
		for _, queue := range []string{"", "hub"} {
			listen := func(m *natsgo.Msg) { t.Errorf("heard %s", m.Subject) }
			if queue == "" {
				_, err = evil.Subscribe(s, listen)
			} else {
				_, err = evil.QueueSubscribe(s, queue, listen)
			}
			must(t, err)
			n++
			eventually(t, s+" to be refused", func() bool { return evil.deniedCount(t) == n })
		}
	}

	// A reply subject on a report that it may send does not help: no one answers.
	must(t, evil.PublishRequest("res.0.evil", "sv.all.s1", []byte("forged")))
	eventually(t, "its report", func() bool { return all[0].hub.Stats().Results == 1 })
	eventually(t, "the message", func() bool {
		must(t, all[1].hub.Tell("", []byte("honest"))) // one that comes before the route is ready is lost
		return len(all[0].messages()) > 0
	})
	must(t, evil.Flush())
	for _, m := range all {
		for _, one := range m.messages() {
			if one != (told{"s1", "honest"}) {
				t.Errorf("%s heard %+v", m.id, one)
			}
		}
	}
}

// TestTS1StrangersAtTheClusterPort: only a server of this installation can join.
func TestTS1StrangersAtTheClusterPort(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	m := a.member(a.options("s0"))

	// A bare TLS client reads the first line of the broker only with the certificate of a server.
	try := func(change func(*tls.Config)) error {
		c := a.peerTLS()
		c.VerifyConnection = nil
		change(c)
		conn, err := tls.Dial("tcp", m.ClusterAddr(), c)
		if err != nil {
			return err
		}
		defer conn.Close()
		must(t, conn.SetDeadline(time.Now().Add(patience)))
		_, err = bufio.NewReader(conn).ReadString('\n')
		return err
	}
	must(t, try(func(*tls.Config) {}))
	for what, change := range map[string]func(*tls.Config){
		"no certificate":         func(c *tls.Config) { c.Certificates = nil },
		"an agent":               func(c *tls.Config) { c.Certificates = a.agentTLS(0, "a").Certificates },
		"the server of agents":   func(c *tls.Config) { c.Certificates = a.fabricTLS().Certificates },
		"another authority":      func(c *tls.Config) { c.Certificates = other.peerTLS().Certificates },
		"a server with TLS 1.2":  func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 },
		"another's, self-signed": func(c *tls.Config) { c.Certificates = []tls.Certificate{*other.certificate("peer", peerName)} },
	} {
		if err := try(change); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}

	// Whole servers that do not belong here, in both directions.
	foreign, elsewhere := other.member(other.options("s1")), a.options("s2")
	elsewhere.Cluster.Name = "another"
	namesake := a.member(elsewhere)
	for _, stranger := range []*member{foreign, namesake} {
		must(t, stranger.SetRoutes([]string{m.ClusterAddr()}))
	}
	must(t, m.SetRoutes([]string{foreign.ClusterAddr(), namesake.ClusterAddr()}))
	friend := a.member(a.options("s3"))
	must(t, friend.SetRoutes([]string{m.ClusterAddr()}))
	eventually(t, "the friend", func() bool { return slices.Equal(m.Peers(), []string{"s3"}) })
	time.Sleep(2500 * time.Millisecond) // strangers try again every second
	if got := m.Peers(); !slices.Equal(got, []string{"s3"}) || len(foreign.Peers())+len(namesake.Peers()) != 0 {
		t.Errorf("connected to %v; strangers to %v and %v", got, foreign.Peers(), namesake.Peers())
	}
}

// TestClusterHidesAddresses: agents learn no addresses from the broker.
func TestClusterHidesAddresses(t *testing.T) {
	a := newAuthority(t)
	all := a.cluster(2)
	conn, err := tls.Dial("tcp", all[0].Addr(), a.agentTLS(0, "curious"))
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	line, err := bufio.NewReader(conn).ReadString('\n')
	must(t, err)
	_, clusterPort, err := net.SplitHostPort(all[0].ClusterAddr())
	must(t, err)
	for _, secret := range []string{"connect_urls", all[1].Addr(), all[1].ClusterAddr(), clusterPort} {
		if strings.Contains(line, secret) {
			t.Errorf("%s is in %s", secret, line)
		}
	}
}

// TestPeersAreNotLockedOut: a flood of handshakes from the address of a peer, at the port of the agents and at that of
// the cluster, does not keep the peer out.
func TestPeersAreNotLockedOut(t *testing.T) {
	a := newAuthority(t)
	m := a.member(a.options("s0"))
	stop, done := make(chan struct{}), new(sync.WaitGroup)
	for _, addr := range []string{m.Addr(), m.Addr(), m.Addr(), m.ClusterAddr()} {
		done.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}); err == nil {
					_ = c.Close()
				}
			}
		})
	}
	time.Sleep(200 * time.Millisecond)
	peer := a.member(a.options("s1"))
	introduce(t, m, peer)
	close(stop)
	done.Wait()
}

func TestClusterOptions(t *testing.T) {
	a := newAuthority(t)
	for want, change := range map[string]func(*nats.BrokerOptions){
		"not an id":           func(o *nats.BrokerOptions) { o.Cluster.Server = "" },
		"letters, digits":     func(o *nats.BrokerOptions) { o.Cluster.Server = "a.b" },
		`must not be "all"`:   func(o *nats.BrokerOptions) { o.Cluster.Server = "all" },
		"address for agents":  func(o *nats.BrokerOptions) { o.Listen = "" },
		"needs certificates":  func(o *nats.BrokerOptions) { o.TLS, o.Gate, o.Secret = nil, nil, secret },
		"needs TLS":           func(o *nats.BrokerOptions) { o.Cluster.TLS = nil },
		"check of the peers":  func(o *nats.BrokerOptions) { o.Cluster.TLS.VerifyConnection = nil },
		"form host:port":      func(o *nats.BrokerOptions) { o.Cluster.Listen = "" },
		`"nowhere"`:           func(o *nats.BrokerOptions) { o.Cluster.Address = "nowhere" },
		"not a port":          func(o *nats.BrokerOptions) { o.Cluster.Listen = "127.0.0.1:99999" },
		"address already in ": func(o *nats.BrokerOptions) { o.Cluster.Listen = busyPort(t) },
	} {
		o := a.options("s0")
		change(&o)
		b, err := nats.StartBroker(o)
		if err == nil {
			b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}

	m := a.member(a.options("s0"))
	for _, bad := range []string{"", "host", ":1", "host:0", "host:x", "nats-route://host:1"} {
		if err := m.SetRoutes([]string{bad}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func busyPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// namesOf is a gate that notes the machines of the agents it is asked about.
type namesOf struct {
	gate
	mu    sync.Mutex
	asked []string
}

func (g *namesOf) Admit(cs *tls.ConnectionState, machine string) (gozzard.AgentID, int, time.Time, error) {
	g.mu.Lock()
	g.asked = append(g.asked, machine)
	g.mu.Unlock()
	return g.gate.Admit(cs, machine)
}

// TestRoutesChangeBeforeConnect: the routes change while an agent has connected, and not yet said its name. The gate is not
// asked about it: without the name of its machine it would be taken for a copy of another one.
func TestRoutesChangeBeforeConnect(t *testing.T) {
	a := newAuthority(t)
	names := new(namesOf)
	o := a.options("s0")
	o.Gate = names
	m, other := a.member(o), a.member(a.options("s1"))

	// It says nothing, until the broker closes its connection.
	conn, err := tls.Dial("tcp", m.Addr(), a.agentTLS(0, "early"))
	must(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1)) // of INFO: the broker knows the connection
	must(t, err)
	introduce(t, m, other)
	must(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("the connection is not closed: %v", err)
	}

	// An agent that does gets in.
	e := a.agent(m, "early")
	eventually(t, "the agent", e.isUp)
	names.mu.Lock()
	defer names.mu.Unlock()
	for _, machine := range names.asked {
		if machine != "machine" {
			t.Errorf("the gate was asked about an agent of machine %q", machine)
		}
	}
}
