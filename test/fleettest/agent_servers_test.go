//go:build linux

package fleettest_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/enrol"
	live "github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/sqlstore"
	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/storetest"
)

// brokers is a control plane with two brokers, as two servers that share a record have them. The reports of both reach
// the plane, and its commands leave by the second one.
type brokers struct {
	t      *testing.T
	store  *sqlstore.Store
	url    string // of the API
	agents [2]*nats.Broker
	plane  *control.Plane
	hub    *nats.Hub // of the second

	registry *enrol.Registry

	mu    sync.Mutex
	named []gozzard.ServerAddress
	at    int // broker that the newest report came from
}

func newBrokers(t *testing.T) *brokers {
	t.Helper()
	b := &brokers{t: t, at: -1}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	// Record, keys and the API for hosts.
	dir := t.TempDir()
	path := filepath.Join(dir, "r.db")
	storetest.NewSQLite(t, path)
	var err error
	b.store, err = sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	must(err)
	t.Cleanup(func() { _ = b.store.Close() })
	authority, err := enrol.OpenAuthority(dir, nil)
	must(err)
	signer, err := signing.OpenSigner(dir, nil)
	must(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	b.url = "https://" + l.Addr().String()
	b.registry, err = enrol.NewRegistry(t.Context(), enrol.RegistryOptions{Store: b.store, Authority: authority,
		Address: func() string { return b.agents[0].Addr() }, Key: signer.Key,
		Rights: func(gozzard.Caller) *gozzard.Rights { return gozzard.Everything() }})
	must(err)

	// Two brokers with their hubs.
	for i, id := range []string{"first", "second"} {
		b.agents[i], err = nats.StartBroker(nats.BrokerOptions{Listen: "127.0.0.1:0", TLS: authority.FabricTLS(),
			Gate: b.registry, Cluster: &nats.ClusterOptions{Server: id, Listen: "127.0.0.1:0", TLS: authority.PeerTLS(id)}})
		must(err)
		t.Cleanup(b.agents[i].Close)
		h, err := nats.NewHub(nats.HubOptions{Broker: b.agents[i], Signer: signer, Receive: b.receive(i)})
		must(err)
		b.run(h.Run)
		b.hub = h
	}
	must(b.agents[0].SetRoutes([]string{b.agents[1].ClusterAddr()}))
	b.named = []gozzard.ServerAddress{{Agents: b.agents[0].Addr(), API: b.url}, {Agents: b.agents[1].Addr(), API: b.url}}

	// The control plane and the API.
	b.plane, err = control.New(t.Context(), control.Options{Store: b.store, Topology: b.store, Dispatch: b.hub,
		Live: live.New(), Servers: func(int) []gozzard.ServerAddress {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.named
		}})
	must(err)
	b.run(b.plane.Run)
	b.run(b.registry.Run)
	book, err := auth.New(auth.Config{})
	must(err)
	srv := &http.Server{Handler: api.New(api.Options{Plane: b.plane, Enrol: b.registry,
		Authenticate: blueking.ByHeaders(book), Challenge: blueking.AuthorizationHeader}), ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(tls.NewListener(l, authority.APITLS([]string{"127.0.0.1"}, nil))) }()
	t.Cleanup(func() { _ = srv.Close() })
	return b
}

func (b *brokers) run(f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = f(ctx); close(done) }()
	b.t.Cleanup(func() { cancel(); <-done })
}

func (b *brokers) receive(i int) func(gozzard.AgentID, int, *gozzard.Report) {
	return func(from gozzard.AgentID, cloud int, r *gozzard.Report) {
		b.mu.Lock()
		b.at = i
		b.mu.Unlock()
		b.plane.Receive(from, cloud, r)
	}
}

// home is the broker that the newest report came from.
func (b *brokers) home() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

// TestAgentFailsOver: an enrolled agent learns the servers from a signed command, goes to another one when its own is
// gone, knows them after a restart, and believes no list that is not signed.
func TestAgentFailsOver(t *testing.T) {
	b := newBrokers(t)
	state := filepath.Join(t.TempDir(), "agent")
	token, _, err := b.registry.CreateToken(t.Context(), gozzard.Caller{App: "app", User: "root", Rights: gozzard.Everything()},
		enrol.TokenRequest{TTL: time.Hour, Uses: 1})
	if err != nil {
		t.Fatal(err)
	}
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(token.String()), 0o600); err != nil {
		t.Fatal(err)
	}

	// Join by a list of which the first server cannot be reached. The enrolment names the first broker only.
	out, err := exec.Command(ft.Binary(t), "agent", "join", "--data", state, "--token-file", tokenFile, "--ip", "127.0.0.1",
		"--server", "https://127.0.0.1:1,"+b.url, "--allow-root").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	agent := ft.Start(t, "agent", nil, "agent", "--data", state)
	file := filepath.Join(state, "servers.json")
	known := func() string { text, _ := os.ReadFile(file); return string(text) }
	ft.Until(t, time.Minute, func() string { return "the list of servers: " + known() }, func() bool {
		return b.home() == 0 && strings.Contains(known(), b.agents[1].Addr())
	})

	// A list that is not signed changes nothing.
	m, err := enrol.LoadMembership(state)
	if err != nil {
		t.Fatal(err)
	}
	forger, err := nats.NewHub(nats.HubOptions{Broker: b.agents[1], Receive: func(gozzard.AgentID, int, *gozzard.Report) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer forger.Close()
	before := known()
	ft.Until(t, time.Minute, func() string { return "the rejection of a list that is not signed" }, func() bool {
		for session := range uint64(3) {
			if err := forger.Send(m.Agent, 0, &gozzard.Command{Kind: gozzard.CommandAck, Session: session, Beat: 1,
				Servers: []gozzard.ServerAddress{{Agents: "192.0.2.1:4230"}}}); err != nil {
				t.Fatal(err)
			}
		}
		return strings.Contains(agent.Output(), "it is not from this agent's server")
	})
	if now := known(); now != before {
		t.Errorf("the list is now %s", now)
	}

	// Its server dies.
	begin := time.Now()
	b.agents[0].Close()
	ft.Until(t, time.Minute, func() string { return "the agent at the second broker" }, func() bool { return b.home() == 1 })
	t.Logf("at the second broker after %v", time.Since(begin))

	// A restarted agent finds the second one: its enrolment names only the one that is gone.
	agent.Kill(9)
	b.mu.Lock()
	b.at = -1
	b.mu.Unlock()
	agent.Again()
	ft.Until(t, time.Minute, func() string { return "the restarted agent" }, func() bool { return b.home() == 1 })

	// A change of the list reaches an agent that stays connected.
	b.mu.Lock()
	b.named = append([]gozzard.ServerAddress{{Agents: "192.0.2.7:4230"}}, b.named[1])
	b.mu.Unlock()
	b.plane.ServersChanged()
	ft.Until(t, time.Minute, func() string { return "the new list: " + known() }, func() bool {
		return strings.Contains(known(), "192.0.2.7:4230") && !strings.Contains(known(), b.agents[0].Addr())
	})
}
