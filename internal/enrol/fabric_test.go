package enrol_test

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/wire"
)

// attacker is a bare client with the certificate of an agent.
type attacker struct {
	*natsgo.Conn
	mu     sync.Mutex
	denied int
}

func (a *attacker) count() int {
	_ = a.Flush()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.denied
}

func (r *rig) attack(c *tls.Config, opts ...natsgo.Option) (*attacker, error) {
	a := new(attacker)
	opts = append(opts, natsgo.Secure(c), natsgo.TLSHandshakeFirst(), natsgo.NoReconnect(),
		natsgo.Timeout(5*time.Second),
		natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
				a.denied++
			}
		}))

	conn, err := natsgo.Connect("nats://"+r.broker.Addr(), opts...)
	if err != nil {
		return nil, err
	}

	r.t.Cleanup(conn.Close)
	a.Conn = conn
	return a, nil
}

// TestTI4EnrolledAgent: with a certificate an agent can use its own subjects only, whatever name it gives.
func TestTI4EnrolledAgent(t *testing.T) {
	r := newRig(t)
	victim := r.link(r.member("victim", 1), "machine")
	eventually(t, "the victim", victim.isUp)
	evil := enrol.NewRenewer(r.member("evil", 2), "machine", nil)
	// the name that it gives does not count
	a, err := r.attack(evil.TLS(), natsgo.UserInfo("0.victim", "x"), natsgo.Name("machine/1"))
	must(t, err)
	var heard []string
	n := 0
	for _, s := range []string{">", "*.>", "op.>", "op.*.*", "op.0.*", "op.0.victim", "op.1.evil", "res.>",
		"st.0.victim", "_INBOX.>", "$SYS.>", "$JS.>", "$JS.API.>"} {
		for _, queue := range []string{"", "workers", "op.0.evil", ">"} {
			listen := func(m *natsgo.Msg) { a.mu.Lock(); heard = append(heard, m.Subject); a.mu.Unlock() }
			if queue == "" {
				_, err = a.Subscribe(s, listen)
			} else {
				_, err = a.QueueSubscribe(s, queue, listen)
			}
			if errors.Is(err, natsgo.ErrBadQueueName) {
				continue
			}
			must(t, err)
			n++
			eventually(t, s+" in "+queue+" to be refused", func() bool { return a.count() == n })
		}
	}

	report := wire.AppendReport(nil, &gozzard.Report{Kind: gozzard.ReportResults})
	for _, s := range []string{"res.0.victim", "st.0.victim", "op.0.victim", "op.0.evil", "res.1.evil", "_INBOX.x",
		"$SYS.REQ.SERVER.PING", "$JS.API.INFO"} {
		must(t, a.Publish(s, report))
		n++
		eventually(t, s+" to be refused", func() bool { return a.count() == n })
	}

	must(t, a.Publish("res.0.evil", report))

	eventually(t, "its own report", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.reports) == 1 &&
			r.reports[0] == "evil"
	})

	must(t, r.hub.Send("victim", 0, &gozzard.Command{Kind: gozzard.CommandAck}))
	eventually(t, "the command", func() bool { victim.mu.Lock(); defer victim.mu.Unlock(); return victim.got == 1 })
	a.mu.Lock()
	defer a.mu.Unlock()

	if len(heard) != 0 {
		t.Errorf("heard %q", heard)
	}
}

// TestTS1FabricCredentials: without the right certificate no client connects.
func TestTS1FabricCredentials(t *testing.T) {
	r := newRig(t)
	m := r.member("a", 1)
	other := newRig(t)
	foreign := other.member("a", 1)
	good := enrol.NewRenewer(m, "machine", nil).TLS()
	with := func(change func(*tls.Config)) *tls.Config {
		c := good.Clone()
		change(c)
		return c
	}

	foreignTLS := enrol.NewRenewer(foreign, "machine", nil).TLS()
	for what, c := range map[string]*tls.Config{
		"no certificate":  with(func(c *tls.Config) { c.GetClientCertificate = nil }),
		"another fleet's": with(func(c *tls.Config) { c.GetClientCertificate = foreignTLS.GetClientCertificate }),
		"TLS 1.2": with(func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = tls.VersionTLS12,
				tls.VersionTLS12
		}),
		"the server's own": with(func(c *tls.Config) {
			cert, err := r.authority.ServerCertificate(nil)
			must(t, err)
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
		}),
	} {
		if _, err := r.attack(c, natsgo.Name("machine/1")); err == nil {
			t.Errorf("%s: came in", what)
		}
	}

	if _, err := natsgo.Connect("nats://"+r.broker.Addr(), natsgo.UserInfo("hub", "x"), natsgo.NoReconnect(),
		natsgo.Timeout(time.Second)); err == nil {
		t.Error("came in without TLS")
	}

	if _, err := r.attack(good, natsgo.Name("machine/1")); err != nil {
		t.Errorf("the right one: %v", err)
	}
	if _, err := nats.NewLink(nats.LinkOptions{URL: "10.0.0.1:4230", Agent: "a", Secret: "x",
		Command: func(*gozzard.Command) {}}); err == nil {
		t.Error("a secret would leave the machine")
	}
}

// TestRevocation: a revoked agent is disconnected within five seconds and stays so.
func TestRevocation(t *testing.T) {
	r := newRig(t)
	m := r.member("a", 1)
	e := r.link(m, "machine")
	eventually(t, "the agent", e.isUp)
	begin := time.Now()
	_, err := r.registry.SetState(t.Context(), admin(), "a", enrol.StateRevoked)
	must(t, err)
	eventually(t, "the cut", func() bool { return !e.isUp() })
	took := time.Since(begin)
	t.Logf("cut after %s", took)

	if took > 5*time.Second {
		t.Errorf("it took %s", took)
	}

	eventually(t, "the refusal", func() bool { return r.refusals("revoked") > 0 })

	if err := e.keep.Renew(t.Context()); gozzard.KindOf(errors.Unwrap(err)) != gozzard.ErrUnauthenticated {
		t.Errorf("renewal: got %v", err)
	}

	_, err = r.registry.SetState(t.Context(), admin(), "a", enrol.StateActive)
	wantKind(t, "approve", err, gozzard.ErrConflict)
	rows, err := r.store.Audit(t.Context(), 10)
	must(t, err)

	if len(rows) != 3 || rows[0].Act != "enrol:revoke:a" || rows[0].Caller.User != "root" ||
		rows[1].Act != "enrol:join:a" {
		t.Errorf("the audit has %+v", rows)
	}
}

func TestApproval(t *testing.T) {
	r := newRig(t)
	m, err := r.join(r.token(enrol.TokenRequest{Approve: true}), "a", 1, t.TempDir())
	must(t, err)

	if m.State() != enrol.StatePending {
		t.Errorf("is %s", m.State())
	}
	if _, err := r.attack(enrol.NewRenewer(m, "machine", nil).TLS(), natsgo.Name("machine/1")); err == nil {
		t.Error("came in without approval")
	}

	_, err = r.registry.SetState(t.Context(), admin(), "a", enrol.StateActive)
	must(t, err)

	if _, err := r.attack(enrol.NewRenewer(m, "machine", nil).TLS(), natsgo.Name("machine/1")); err != nil {
		t.Errorf("approved: %v", err)
	}
}

// TestTS7Clone: two programs with one identity are both disconnected. An agent that restarts or reconnects is not taken
// for two.
func TestTS7Clone(t *testing.T) {
	r := newRig(t)
	m := r.member("a", 1)
	keep := enrol.NewRenewer(m, "machine", nil)
	// restarts before the server notices that the old connection is dead
	for _, run := range []string{"1", "1", "2", "2", "3"} {
		if _, err := r.attack(keep.TLS(), natsgo.Name("machine/"+run)); err != nil {
			t.Fatalf("run %s: %v", run, err)
		}
	}

	first, second := r.link(m, "machine"), r.link(m, "machine")
	eventually(t, "quarantine", func() bool { return r.registry.StateOf("a") == enrol.StateQuarantined })
	eventually(t, "both to be out", func() bool { return !first.isUp() && !second.isUp() })

	eventually(t, "the record", func() bool {
		list, err := r.store.Members(t.Context())
		must(t, err)
		return list[0].State == enrol.StateQuarantined && strings.Contains(list[0].Reason, "twice")
	})

	if r.refusals("clone") != 1 {
		t.Errorf("counted %d times", r.refusals("clone"))
	}

	again, err := enrol.NewRegistry(t.Context(), enrol.RegistryOptions{Store: r.store, Authority: r.authority})
	must(t, err)

	if s := again.StateOf("a"); s != enrol.StateQuarantined {
		t.Errorf("after a start of the server it is %s", s)
	}
}

// TestTS7OtherMachine: the first connection reveals a state folder that was copied to another machine.
func TestTS7OtherMachine(t *testing.T) {
	r := newRig(t)
	m := r.member("a", 1)
	e := r.link(m, "machine")
	eventually(t, "the agent", e.isUp)
	if _, err := r.attack(enrol.NewRenewer(m, "other", nil).TLS(), natsgo.Name("other/1")); err == nil {
		t.Error("another machine came in")
	}
	eventually(t, "the cut", func() bool { return !e.isUp() })
	if s := r.registry.StateOf("a"); s != enrol.StateQuarantined {
		t.Errorf("it is %s", s)
	}
}

// TestTT3Quarantine: an agent that uses an older protocol than before is put into quarantine, with the reason.
func TestTT3Quarantine(t *testing.T) {
	r := newRig(t)
	e := r.link(r.member("a", 1), "machine")
	eventually(t, "the agent", e.isUp)
	r.registry.Downgraded("a", 1, 2)
	eventually(t, "the cut", func() bool { return !e.isUp() })
	if list := r.registry.Agents(); len(list) != 1 || list[0].State != enrol.StateQuarantined ||
		!strings.Contains(list[0].Reason, "speaks protocol 1 after 2") {
		t.Errorf("%+v", list)
	}
}

func TestRenewal(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	m, err := r.join(r.token(enrol.TokenRequest{}), "a", 1, dir)
	must(t, err)
	copied := t.TempDir()
	b, err := os.ReadFile(filepath.Join(dir, "enrolment.json"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(copied, "enrolment.json"), b, 0o600))
	keep := enrol.NewRenewer(m, "machine", nil)
	r.clock.forward(20 * 24 * time.Hour) // expired for long: the host was off
	before := keep.NotAfter()
	must(t, keep.Renew(t.Context()))

	if !keep.NotAfter().After(before.Add(19 * 24 * time.Hour)) {
		t.Errorf("valid until %s, before until %s", keep.NotAfter(), before)
	}

	kept, err := enrol.LoadMembership(dir)
	must(t, err)

	if !kept.NotAfter().Equal(keep.NotAfter()) || kept.Identity == string(b) {
		t.Error("the new certificate is not kept")
	}

	must(t, keep.Renew(t.Context()))
	must(t, keep.Renew(t.Context()))
	old, err := enrol.LoadMembership(copied)
	must(t, err)

	if err := enrol.NewRenewer(old, "machine", nil).Renew(t.Context()); err == nil {
		t.Error("an old copy of the state folder was renewed")
	}
	if s := r.registry.StateOf("a"); s != enrol.StateQuarantined {
		t.Errorf("it is %s", s)
	}

	r.clock.forward(32 * 24 * time.Hour)
	_, err = r.registry.SetState(t.Context(), admin(), "a", enrol.StateActive)
	must(t, err)
	wantKind(t, "a renewal after a month", errors.Unwrap(keep.Renew(t.Context())), gozzard.ErrUnauthenticated)
}

// TestJoinedAgain: an agent that runs while its host joins again uses the new certificate from its next connection on. The
// old one would put the host in quarantine.
func TestJoinedAgain(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	m, err := r.join(r.token(enrol.TokenRequest{}), "a", 1, dir)
	must(t, err)
	keep := enrol.NewRenewer(m, "machine", nil)
	if _, err := r.attack(keep.TLS(), natsgo.Name("machine/1")); err != nil {
		t.Fatal(err)
	}

	_, err = r.join(r.token(enrol.TokenRequest{Agent: "a"}), "a", 1, dir)
	must(t, err)
	if _, err := r.attack(keep.TLS(), natsgo.Name("machine/1")); err != nil {
		t.Errorf("after joining again: %v", err)
	}
	must(t, keep.Renew(t.Context()))
	if s := r.registry.StateOf("a"); s != enrol.StateActive {
		t.Errorf("it is %s", s)
	}

	// The enrolment of another agent is not taken over.
	_, err = r.join(r.token(enrol.TokenRequest{}), "b", 2, dir)
	must(t, err)
	if _, err := r.attack(keep.TLS(), natsgo.Name("machine/1")); err != nil || keep.Renew(t.Context()) != nil {
		t.Errorf("after another agent joined: %v", err)
	}
}

// TestLostAnswer: a host that does not get the answer to a renewal has a certificate that is still valid.
func TestLostAnswer(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	m, err := r.join(r.token(enrol.TokenRequest{}), "a", 1, dir)
	must(t, err)
	before, err := os.ReadFile(filepath.Join(dir, "enrolment.json"))
	must(t, err)
	same := *m
	must(t, enrol.NewRenewer(&same, "machine", nil).Renew(t.Context())) // the host does not get the answer
	must(t, os.WriteFile(filepath.Join(dir, "enrolment.json"), before, 0o600))
	keep := enrol.NewRenewer(m, "machine", nil)
	e := r.link(m, "machine")
	eventually(t, "the agent", e.isUp)
	must(t, keep.Renew(t.Context()))
	if s := r.registry.StateOf("a"); s != enrol.StateActive {
		t.Errorf("it is %s", s)
	}
}

// TestN12Expiry: an expired certificate ends the connection that was made with it and does not allow another one. It
// can still be renewed.
func TestN12Expiry(t *testing.T) {
	r := newRig(t)
	r.clock.forward(3*time.Second - enrol.CertLife) // certificates that are signed now expire in three seconds
	m := r.member("a", 1)
	r.clock.forward(enrol.CertLife - 3*time.Second)
	e := r.link(m, "machine")
	eventually(t, "the agent", e.isUp)
	eventually(t, "the end of the certificate", func() bool { return !e.isUp() })

	if over := e.keep.NotAfter(); time.Now().Before(over.Add(-time.Second)) {
		t.Errorf("cut at %s, the certificate is over at %s", time.Now(), over)
	}
	if _, err := r.attack(e.keep.TLS(), natsgo.Name("machine/1")); err == nil {
		t.Error("came in with a certificate that is over")
	}

	must(t, e.keep.Renew(t.Context()))
	eventually(t, "the agent with a new certificate", e.isUp)
}
