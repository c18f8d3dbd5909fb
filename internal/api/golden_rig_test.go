package api_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/approval"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/configfile"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/live"
	"github.com/gozzard/gozzard/internal/notify"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/release"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/upgrade"
	"github.com/gozzard/gozzard/internal/waves"
	"github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/storetest"
)

// goldenNow is the time of the golden answers. It is far ahead, so that nothing in them is over by the real clock.
func goldenNow() time.Time { return time.Date(2126, 7, 1, 2, 3, 4, 5_000_000, time.UTC) }

// newGolden makes the API with every part, over data that is always the same.
func newGolden(t *testing.T) golden {
	t.Helper()
	dir := t.TempDir()

	// The record and the control plane.
	storetest.NewSQLite(t, filepath.Join(dir, "r.db"))
	store, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(dir, "r.db"), sqlstore.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	p := goldenPlane()
	real, err := control.New(t.Context(), control.Options{Store: store, Topology: store, Live: p.Index, Now: goldenNow})
	check(t, err)
	p.businesses = &businesses{real}

	// Accounts and logins.
	accounts, err := auth.Open(t.Context(), store, auth.Options{Now: goldenNow})
	check(t, err)
	apps := []auth.App{{Code: "admin", Secrets: []auth.Digest{auth.Hash(secret)}, AssertsUsers: true}}
	check(t, accounts.Import(t.Context(), auth.Config{Apps: apps}))
	there := fleettest.NewProvider(t)
	provider, err := auth.NewProvider(auth.ProviderOptions{Issuer: there.URL, ClientID: "gozzard", ClientSecret: "s",
		RedirectURL: "https://gozzard.example/login/oidc/callback"})
	check(t, err)

	// Hosts and releases.
	authority, err := enrol.OpenAuthority(dir, goldenNow)
	check(t, err)
	signer, err := signing.OpenSigner(dir, nil)
	check(t, err)
	registry, err := enrol.NewRegistry(t.Context(), enrol.RegistryOptions{Store: store, Authority: authority,
		Address: func() string { return "10.0.0.99:7070" }, Key: signer.Key, Now: goldenNow,
		Rights: accounts.Directory().RightsOf})
	check(t, err)
	relays, err := enrol.NewRelayDesk(t.Context(), enrol.RelayDeskOptions{Store: store, Authority: authority, Now: goldenNow,
		Rights: accounts.Directory().RightsOf, Servers: func() []string { return []string{"10.0.0.99:7072"} }})
	check(t, err)
	t.Cleanup(relays.Close)
	repository, err := release.OpenRepository(t.TempDir())
	check(t, err)
	releases, err := upgrade.New(t.Context(), upgrade.Options{Store: store, Repository: repository, Fleet: goldenFleet{},
		TwoPerson: true, Now: goldenNow})
	check(t, err)
	restore, err := enrol.OpenRestore(t.Context(), goldenRestore{}, nil)
	check(t, err)

	stopping := make(chan struct{})
	close(stopping) // a stream ends after what is there
	m := api.NewMetrics()
	m.Watch(p.Index, nil)

	configs := configfile.New(configfile.Options{Store: store, Plane: p, Now: goldenNow})
	jobs := waves.New(waves.Options{Store: store, Plane: jobPlane{p}, Worker: configs, Now: goldenNow})

	alerts, err := notify.New(notify.Options{Store: store, Plane: goldenSight{}, Fleet: p.Index, Rights: accounts.Directory().RightsOf,
		Settings: notify.Settings{Allow: []string{"127.0.0.0/8"}}, Now: goldenNow})
	check(t, err)
	letter := record.Notification{Receiver: "gone", Subscription: "s", Body: []byte(`{"resolved":1,"test":true}`),
		Created: goldenNow(), Tries: 3, Dead: true, Error: "the receiver answers 400"}
	check(t, store.SaveNotify(t.Context(), &record.NotifyChange{Messages: []record.Notification{letter, letter}}))

	desk := goldenRequests(t, store)
	h := api.New(api.Options{Plane: p, Authenticate: blueking.ByHeaders(accounts.Directory()),
		Challenge: blueking.AuthorizationHeader, Metrics: m, Accounts: accounts, Provider: provider, Enrol: registry,
		Join:    goldenJoin(t),
		Restore: restore, Audit: goldenAudit{}, Releases: releases, Stopping: stopping,
		Self: api.Self{Servers: goldenServers, Drain: goldenDrain}, Servers: goldenDesk(authority, accounts), Relays: relays,
		Configs: configs, Jobs: jobs, Notify: alerts,
		Keys: goldenKeys{}, Requests: desk, Live: live.New(live.Options{Fleet: p.Index}),
		Flag: func(agent gozzard.AgentID) string {
			if agent == "a2" {
				return "sends too many messages"
			}
			return ""
		}})

	return golden{h, p, there, desk}
}

// goldenJoin is a script whose program is a small file.
func goldenJoin(t *testing.T) *api.JoinScript {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	check(t, os.WriteFile(program, []byte("the program"), 0o600))
	return &api.JoinScript{Platform: "linux-amd64", Program: program, Version: "1.2.3",
		Authority: func() string { return "(authority)" }}
}

// golden is the API of the golden answers, with the parts that a scenario changes.
type golden struct {
	http.Handler
	plane    *plane
	provider *fleettest.Provider
	desk     *approval.Desk
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// goldenPlane is a plane with three hosts, their processes, some events, a log and two tasks.
func goldenPlane() *plane {
	p := newPlane()
	p.ring = newRing(goldenNow())
	for _, h := range goldenHosts() {
		p.PutHost(h)
	}

	p.Apply("a1", []gozzard.Status{
		{Key: gozzard.Key{Namespace: "shop", Name: "web"}, State: gozzard.StateRunning, Wanted: gozzard.StateRunning,
			PID: 77, Hosted: true, Labels: map[string]string{"tier": "front", "b": "<&>"}, Version: "1.2",
			Message: "up & <well>", RegisteredAt: 1700000001, StartedAt: 1700000002, ReportedAt: 1700000003, CPU: 1.25,
			Mem: 0.1, FD: 12, Disk: 1 << 40, Net: 3},
		{Key: gozzard.Key{Namespace: "游戏", Name: "网关服"}, State: gozzard.StateStopped, PID: -1},
	}, nil)
	p.Apply("a3", []gozzard.Status{{Key: gozzard.Key{Namespace: "shop", Name: "web"}, State: gozzard.StateRunning,
		PID: 5, CPU: 1e-7, Mem: 1e21}}, nil)

	web := gozzard.Key{Namespace: "shop", Name: "web"}
	of := func(e gozzard.Event) record.Event {
		e.Key = web
		return record.Event{Agent: "a1", Addr: at(0, "10.0.0.1"), Event: e}
	}
	caused := of(gozzard.Event{Kind: gozzard.EventExited, At: 1700000000002, PID: 78, Known: true})
	caused.Task, caused.App, caused.User = "21260701020304:1", "app", "me"
	p.record(of(gozzard.Event{Kind: gozzard.EventStarted, At: 1700000000000, PID: 77}),
		of(gozzard.Event{Kind: gozzard.EventExited, At: 1700000000001, Code: -1, Signal: "SIGSEGV", Core: true,
			Message: "core <dumped>"}), caused)
	p.log = func(gozzard.Target, gozzard.LogQuery) (gozzard.LogChunk, error) {
		return gozzard.LogChunk{Data: []byte("one\ntwo <3>\n"), Offset: 7, Next: 19}, nil
	}

	p.history = func(gozzard.Target, gozzard.HistoryQuery) (gozzard.History, error) {
		return gozzard.History{From: 1700000000, Step: 10, Points: []gozzard.HistoryPoint{
			{CPU: 1005, Mem: 4 << 20, FD: 8, Restarts: 0}, gozzard.EmptyPoint(),
			{CPU: gozzard.NotMeasured, Mem: gozzard.NotMeasured, FD: gozzard.NotMeasured, Restarts: 2}}}, nil
	}

	for id, attempts := range goldenTasks() {
		p.results[id] = record.TaskResults{Attempts: attempts, Task: gozzard.Task{ID: id, At: goldenNow(),
			Caller: gozzard.Caller{App: "admin", User: "me"}}}
	}

	return p
}

func goldenHosts() []fleet.Host {
	info := func(agent gozzard.AgentID, addrs ...gozzard.HostAddr) gozzard.HostInfo {
		return gozzard.HostInfo{Agent: agent, Addrs: addrs, Hostname: "host-" + string(agent), OS: "linux",
			Arch: "amd64", Version: "1.0.0", StartedAt: 1700000000, CPUs: 8, MemBytes: 1 << 34}
	}

	degraded := info("a2", at(0, "10.0.0.2"))
	degraded.Mode, degraded.Degraded = gozzard.ModeUser, []string{"no cgroups"}
	degraded.Metrics = "http://10.0.0.1:9436" // of another host
	first := info("a1", at(0, "10.0.0.1"))
	first.Metrics = "https://10.0.0.1:9436"
	return []fleet.Host{
		{Info: first, Session: 1, Online: true, LastSeen: time.Unix(1700000000, 0)},
		{Info: degraded, Session: 1, Online: true, LastSeen: time.Unix(1700000000, 5_000_000)},
		{Info: info("a3", at(3, "10.0.0.1"), at(3, "10.0.0.9"))},
	}
}

// goldenTasks are a task with every kind of attempt, and one without any.
func goldenTasks() map[gozzard.TaskID][]gozzard.Attempt {
	key := gozzard.Key{Namespace: "shop", Name: "web"}
	detail := &gozzard.Detail{PID: 5, Hosted: true, Cmdline: "web <x>", CPU: 0.5, Mem: 1e-9, Threads: 3}
	return map[gozzard.TaskID][]gozzard.Attempt{
		"20240102030405:7": {
			{Key: key, Agent: "a1", Addr: at(0, "10.0.0.1"), Action: gozzard.ActionStart, State: gozzard.AttemptOK,
				Outcome: gozzard.Outcome{Code: gozzard.CodeOK, Message: "ok", Hosted: true, Detail: detail}},
			{Key: key, Agent: "a2", Addr: at(0, "10.0.0.2"), Action: gozzard.ActionStart, State: gozzard.AttemptFailed,
				Outcome: gozzard.Outcome{Code: gozzard.CodeAlreadyRunning, Forced: true}},
			{Key: key, Addr: at(3, "10.0.0.9"), Action: gozzard.ActionStop, State: gozzard.AttemptFailed,
				Outcome: gozzard.Outcome{Code: gozzard.CodeUnreachable, Message: "no agent"}},
			{Key: key, Agent: "a3", Action: gozzard.ActionRestart},
		},
		"20240102030405:8": nil,
	}
}

// goldenFleet is a fleet of two hosts that never answer.
type goldenFleet struct{}

func (goldenFleet) Members() []gozzard.AgentID                 { return []gozzard.AgentID{"a1", "a2"} }
func (goldenFleet) Look(gozzard.AgentID) upgrade.HostView      { return upgrade.HostView{Online: true} }
func (goldenFleet) Order(gozzard.AgentID, gozzard.UpdateOrder) {}

// goldenRestore is a record that came out of a backup.
type goldenRestore struct{}

func (goldenRestore) RestoredFrom(context.Context) (time.Time, int, error) {
	return time.Unix(1700000000, 0), 2, nil
}

func (goldenRestore) ConfirmRestore(context.Context, int, enrol.AuditEntry) ([]enrol.AgentRecord, error) {
	return make([]enrol.AgentRecord, 2), nil
}

// goldenAudit is an audit of two rows.
type goldenAudit struct{}

func (goldenAudit) rows() heldAudit {
	return heldAudit{
		{AuditRow: gozzard.AuditRow{Seq: 1, At: goldenNow(), Caller: gozzard.Caller{App: "app", User: "me", Asserted: true},
			Act: "start", TaskID: "GSETASK:20240102030405:7", RequestHash: [32]byte{1}, Targets: 3, HostsHash: [32]byte{2},
			Origin:   gozzard.Origin{Door: "api", Source: "192.0.2.7", RequestID: "00112233445566778899aabbccddeeff"},
			Accounts: "root,shop", Content: [32]byte{5}},
			Hash: gozzard.AuditHash{3}},
		{AuditRow: gozzard.AuditRow{Seq: 2, Act: "app:delete shop", Legacy: true}, Hash: gozzard.AuditHash{4}},
	}
}

func (g goldenAudit) FindAudit(ctx context.Context, f gozzard.AuditFilter, limit int) ([]gozzard.AuditFound, int64, error) {
	return g.rows().FindAudit(ctx, f, limit)
}

func (g goldenAudit) AuditRow(ctx context.Context, seq int64) (gozzard.AuditFound, error) {
	return g.rows().AuditRow(ctx, seq)
}

func (g goldenAudit) AuditText(ctx context.Context, digest [32]byte) ([]byte, error) {
	if digest[0] == 5 {
		return []byte(`{"items":[{"action":"start","namespace":"shop","name":"web","definition":"03` + strings.Repeat("0", 62) +
			`","account":"shop","hosts":3}]}`), nil
	}
	return g.rows().AuditText(ctx, digest)
}

func (goldenAudit) AuditHead(context.Context) (gozzard.AuditHead, error) {
	return gozzard.AuditHead{Seq: 2, Hash: gozzard.AuditHash{4}}, nil
}

// newCSR makes a key of a host and a request for a certificate, as PEM.
func newCSR(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	check(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// joinBody is the request of a host that enrols with a token.
func joinBody(t *testing.T, token string) string {
	t.Helper()
	parsed, err := enrol.ParseToken(token)
	check(t, err)
	body, err := json.Marshal(enrol.JoinRequest{Token: parsed.ID + "." + parsed.Secret, Agent: "a9",
		IPs: []netip.Addr{netip.MustParseAddr("10.0.0.7")}, Machine: "machine", Hostname: "nine", CSR: newCSR(t)})
	check(t, err)
	return string(body)
}

// goldenDesk gives short keys to servers.
func goldenDesk(authority *enrol.Authority, accounts *auth.Accounts) *enrol.ServerDesk {
	return enrol.NewServerDesk(enrol.ServerDeskOptions{Pin: authority.Pin, Rights: accounts.Directory().RightsOf, Now: goldenNow,
		Keys: func() (enrol.ServerKeys, error) {
			return enrol.ServerKeys{Installation: "i", Authority: []byte("a"), Signing: []byte("s")}, nil
		},
		Note:   func(context.Context, enrol.AuditEntry) error { return nil },
		Barred: func() error { return nil }, Log: slog.New(slog.DiscardHandler)})
}

// serverJoinBody is the request of a server with a token.
func serverJoinBody(t *testing.T, token string) string {
	t.Helper()
	parsed, err := enrol.ParseServerToken(token)
	check(t, err)
	req, _, err := enrol.NewServerJoin(parsed)
	check(t, err)
	body, err := json.Marshal(req)
	check(t, err)
	return string(body)
}

// relayJoinBody is the request of a relay with a token.
func relayJoinBody(t *testing.T, token string) string {
	t.Helper()
	parsed, err := enrol.ParseRelayToken(token)
	check(t, err)
	body, err := json.Marshal(enrol.RelayJoinRequest{Token: parsed.ID + "." + parsed.Secret, CSR: newCSR(t)})
	check(t, err)
	return string(body)
}

// asHost makes a request that of a host over TLS 1.3, with a certificate in PEM unless that is "".
func asHost(t *testing.T, certificate string) func(*http.Request) {
	t.Helper()
	state := &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true}
	if certificate != "" {
		block, _ := pem.Decode([]byte(certificate))
		cert, err := x509.ParseCertificate(block.Bytes)
		check(t, err)
		state.PeerCertificates = []*x509.Certificate{cert}
	}
	return func(r *http.Request) {
		r.TLS = state
		r.Header.Set(enrol.MachineHeader, "machine")
		stranger(r)
	}
}

// stranger takes the credentials out of a request.
func stranger(r *http.Request) {
	r.Header.Del("X-Bkapi-Authorization")
	r.Header.Del("Authorization")
}

// goldenServers are two servers: one that answers, and one that is gone.
func goldenServers(context.Context) ([]client.Server, error) {
	at := goldenNow()
	return []client.Server{
		{ID: "s1", Name: "east", URL: "https://east:8443", Version: "1.2.3", Here: true, Started: client.At(at), Seen: client.At(at),
			Agents: 2, Leases: []string{"jobs", "prune"}},
		{ID: "s2", Name: "west", URL: "https://west:8443", Version: "1.2.2", Started: client.At(at.Add(-time.Hour)),
			Seen: client.At(at.Add(-time.Minute)), Silent: 60, Lag: 61, Ahead: 120, Leases: []string{}, Drained: true},
	}, nil
}

// goldenDrain drains one of these servers.
func goldenDrain(ctx context.Context, _ gozzard.Caller, id string, drained bool) (client.Server, error) {
	list, err := goldenServers(ctx)
	for _, s := range list {
		if s.ID == id {
			s.Drained = drained
			return s, err
		}
	}
	return client.Server{}, gozzard.Errorf(gozzard.ErrNotFound, "no server has the id %q", id)
}

// jobPlane is the plane of jobs. Only a retry asks for the right to one process.
type jobPlane struct{ *plane }

func (jobPlane) May(gozzard.Caller, gozzard.Action, gozzard.Key, gozzard.Target, []byte) bool {
	return true
}

// goldenSight sees everything. Nothing is sent here.
type goldenSight struct{}

func (goldenSight) Sight(*gozzard.Rights) func(gozzard.AgentID, gozzard.HostAddr, string) bool {
	return func(gozzard.AgentID, gozzard.HostAddr, string) bool { return true }
}

func (goldenSight) NotifyEvents() {}
