package enrol_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/blueking"

	"go.uber.org/goleak"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func admin() gozzard.Caller {
	return gozzard.Caller{App: "app", User: "root", Rights: gozzard.Everything()}
}

// clock is a time that tests change.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// rig is a server that enrols: record, control plane, authority, registry, API over TLS, and the fabric.
type rig struct {
	t         *testing.T
	clock     clock
	dir       string
	store     *sqlstore.Store
	authority *enrol.Authority
	registry  *enrol.Registry
	broker    *nats.Broker
	hub       *nats.Hub
	url       string
	servers   []gozzard.ServerAddress

	mu      sync.Mutex
	rights  map[string]*gozzard.Rights // of creators of tokens, by app/user; of all others everything
	refused map[string]int
	reports []gozzard.AgentID
	resumed map[bool]int // connections by whether they were resumed with a ticket
}

// watchedGate is the registry, and counts the connections that were resumed.
type watchedGate struct {
	*enrol.Registry
	r *rig
}

func (g *watchedGate) Admit(cs *tls.ConnectionState, machine string) (gozzard.AgentID, int, time.Time, error) {
	g.r.mu.Lock()
	g.r.resumed[cs.DidResume]++
	g.r.mu.Unlock()
	return g.Registry.Admit(cs, machine)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigIn(t, t.TempDir(), 0)
}

// newRigIn is a rig on a data folder, with a clock that is ahead.
func newRigIn(t *testing.T, dir string, ahead time.Duration) *rig {
	t.Helper()
	r := &rig{t: t, refused: map[string]int{}, resumed: map[bool]int{}, dir: dir}
	r.clock.forward(ahead)
	var err error
	storetest.NewSQLite(t, filepath.Join(dir, "r.db"))
	r.store, err = sqlstore.OpenSQLite(t.Context(), filepath.Join(dir, "r.db"), sqlstore.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, r.store.Close()) })
	r.authority, err = enrol.OpenAuthority(dir, r.clock.now)
	must(t, err)
	signer, err := signing.OpenSigner(dir, nil)
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	r.url = "https://" + l.Addr().String()
	r.registry, err = enrol.NewRegistry(t.Context(), enrol.RegistryOptions{Store: r.store, Authority: r.authority,
		Address: func() string { return r.broker.Addr() }, Key: signer.Key, Now: r.clock.now, Rights: r.rightsOf,
		Servers: func(int) []gozzard.ServerAddress { return r.servers },
		Refused: func(rule string) { r.mu.Lock(); r.refused[rule]++; r.mu.Unlock() }})

	must(t, err)
	r.broker, err = nats.StartBroker(nats.BrokerOptions{Listen: "127.0.0.1:0", TLS: r.authority.FabricTLS(),
		Gate: &watchedGate{Registry: r.registry, r: r}})
	must(t, err)
	t.Cleanup(r.broker.Close)
	r.registry.OnCut(r.broker.Cut)

	r.hub, err = nats.NewHub(nats.HubOptions{Broker: r.broker,
		Receive: func(from gozzard.AgentID, _ int, _ *gozzard.Report) {
			r.mu.Lock()
			r.reports = append(r.reports, from)
			r.mu.Unlock()
		}})

	must(t, err)
	run(t, r.hub.Run)
	run(t, r.registry.Run)
	book, err := auth.New(auth.Config{})
	must(t, err)
	plane, err := control.New(t.Context(), control.Options{Store: r.store, Topology: r.store, Dispatch: r.hub,
		Live: fleet.New()})
	must(t, err)
	srv := &http.Server{Handler: api.New(api.Options{Plane: plane, Enrol: r.registry,
		Authenticate: blueking.ByHeaders(book), Challenge: blueking.AuthorizationHeader}), ReadHeaderTimeout: patience}
	done := make(chan struct{})
	go func() { _ = srv.Serve(tls.NewListener(l, r.authority.APITLS([]string{"127.0.0.1"}, nil))); close(done) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// rightsOf are the present rights of a creator of tokens.
func (r *rig) rightsOf(c gozzard.Caller) *gozzard.Rights {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rights, ok := r.rights[c.App+"/"+c.User]; ok {
		return rights
	}
	return gozzard.Everything()
}

// grant makes a caller with grants. Later calls for the same user change the present rights.
func (r *rig) grant(user string, grants ...gozzard.Grant) gozzard.Caller {
	c := gozzard.Caller{App: "app", User: user, Rights: &gozzard.Rights{Grants: grants}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rights == nil {
		r.rights = map[string]*gozzard.Rights{}
	}
	r.rights["app/"+user] = c.Rights
	return c
}

func (r *rig) refusals(rule string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused[rule]
}

func (r *rig) token(w enrol.TokenRequest) enrol.Token {
	r.t.Helper()
	if w.TTL == 0 {
		w.TTL = time.Hour
	}
	if w.Uses == 0 {
		w.Uses = 1
	}
	token, _, err := r.registry.CreateToken(r.t.Context(), admin(), w)
	must(r.t, err)
	return token
}

// join enrols an agent that answers as 10.0.0.n.
func (r *rig) join(token enrol.Token, agent gozzard.AgentID, n byte, dir string) (*enrol.Membership, error) {
	return enrol.Join(r.t.Context(), enrol.JoinOptions{Server: r.url, Token: token, Dir: dir, Agent: agent,
		IPs: []netip.Addr{ip(n)}, Machine: "machine"})
}

func ip(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }

// member enrols with a fresh token.
func (r *rig) member(agent gozzard.AgentID, n byte) *enrol.Membership {
	r.t.Helper()
	m, err := r.join(r.token(enrol.TokenRequest{}), agent, n, r.t.TempDir())
	must(r.t, err)
	return m
}

// end is an agent's end of the fabric.
type end struct {
	link *nats.Link
	keep *enrol.Renewer

	mu  sync.Mutex
	up  bool
	ups int
	got int
}

func (r *rig) link(m *enrol.Membership, machine string) *end {
	r.t.Helper()
	e := &end{keep: enrol.NewRenewer(m, machine, nil)}
	var err error
	e.link, err = nats.NewLink(nats.LinkOptions{URL: m.Address, Agent: m.Agent, Cloud: m.Cloud, TLS: e.keep.TLS(),
		Machine: machine,
		Command: func(*gozzard.Command) { e.mu.Lock(); e.got++; e.mu.Unlock() },
		Up:      func() { e.mu.Lock(); e.up, e.ups = true, e.ups+1; e.mu.Unlock() },
		Down:    func() { e.mu.Lock(); e.up = false; e.mu.Unlock() }})
	must(r.t, err)
	run(r.t, e.link.Run)
	return e
}

func (e *end) isUp() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.up
}
