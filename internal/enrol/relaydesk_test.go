package enrol_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
)

var relayCreator = gozzard.Caller{App: "admin", User: "me"}

// newRelayDesk is a desk on the record of a rig. Rights says whether creators of tokens are admins of everything.
func newRelayDesk(t *testing.T, r *rig, rights *atomic.Bool) *enrol.RelayDesk {
	t.Helper()
	rights.Store(true)
	d, err := enrol.NewRelayDesk(t.Context(), enrol.RelayDeskOptions{Store: r.store, Authority: r.authority, Now: r.clock.now,
		Servers: func() []string { return []string{"10.0.0.1:4250"} },
		Rights: func(gozzard.Caller) *gozzard.Rights {
			if !rights.Load() {
				return nil
			}
			return &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleAdmin}}}
		}})
	must(t, err)
	t.Cleanup(d.Close)
	return d
}

func relayJoin(t *testing.T, token enrol.Token) enrol.RelayJoinRequest {
	t.Helper()
	return enrol.RelayJoinRequest{Token: token.ID + "." + token.Secret, CSR: relayCSR(t)}
}

// relayCSR is a request for the certificate of a new key.
func relayCSR(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, new(x509.CertificateRequest), key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// shown is a connection with the certificate of an answer.
func shown(t *testing.T, a enrol.RelayAnswer) *tls.ConnectionState {
	t.Helper()
	block, _ := pem.Decode([]byte(a.Certificate))
	if block == nil {
		t.Fatal("the answer has no certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
}

// TestTS18RelayTokens: of many uses of a token at once, one is accepted. A token that has expired, or whose creator is no
// admin any more, is refused, and so is a changed one.
func TestTS18RelayTokens(t *testing.T) {
	r := newRig(t)
	var rights atomic.Bool
	d := newRelayDesk(t, r, &rights)
	from := netip.MustParseAddr("10.0.0.7")
	newOne := func() enrol.Token {
		t.Helper()
		token, _, err := d.CreateToken(t.Context(), relayCreator, enrol.RelayTokenRequest{Name: "plant", Areas: []int{3}, TTL: time.Hour})
		must(t, err)
		return token
	}

	// At once.
	token := newOne()
	var won, lost atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		req := relayJoin(t, token)
		wg.Go(func() {
			if _, err := d.Join(t.Context(), from, req); err == nil {
				won.Add(1)
			} else if gozzard.KindOf(err) == gozzard.ErrUnauthenticated {
				lost.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 49 {
		t.Errorf("%d uses of a token were accepted and %d refused", won.Load(), lost.Load())
	}

	// Refused, and not used by that.
	refused := func(name string, token enrol.Token) {
		t.Helper()
		if _, err := d.Join(t.Context(), from, relayJoin(t, token)); gozzard.KindOf(err) != gozzard.ErrUnauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
	token = newOne()
	changed := token
	changed.Secret = strings.Repeat("A", len(token.Secret))
	refused("another secret", changed)
	changed = token
	changed.ID = "abcdefabcdef"
	refused("another id", changed)
	rights.Store(false)
	refused("a creator without rights", token)
	rights.Store(true)
	if _, err := d.Join(t.Context(), from, relayJoin(t, token)); err != nil {
		t.Errorf("the token was used up by refusals: %v", err)
	}
	token = newOne()
	r.clock.forward(time.Hour)
	refused("after its end", token)
}

// TestTS18RelayCertificates: the certificate of a relay counts until it is replaced, expires, or the relay is removed. It
// is no certificate of a host, and that of a host is none of a relay.
func TestTS18RelayCertificates(t *testing.T) {
	r := newRig(t)
	var rights atomic.Bool
	d := newRelayDesk(t, r, &rights)
	token, _, err := d.CreateToken(t.Context(), relayCreator, enrol.RelayTokenRequest{Name: "plant", Areas: []int{3}, TTL: time.Hour})
	must(t, err)
	first, err := d.Join(t.Context(), netip.MustParseAddr("10.0.0.7"), relayJoin(t, token))
	must(t, err)
	one := shown(t, first)

	admitted := func(name string, cs *tls.ConnectionState, renewing, want bool) {
		t.Helper()
		if _, err := d.Admit(cs, renewing); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	admitted("a new one", one, false, true)
	if _, _, _, err := r.registry.Admit(one, ""); err == nil {
		t.Error("the certificate of a relay is that of a host")
	}
	if _, ok := r.registry.CloudOf(one); ok {
		t.Error("the certificate of a relay has a cloud area")
	}

	// It is renewed: the one before counts still, the one before that does not.
	renew := func(cs *tls.ConnectionState) *tls.ConnectionState {
		t.Helper()
		serial := hex.EncodeToString(cs.PeerCertificates[0].SerialNumber.Bytes())
		a, err := d.Renew(t.Context(), first.ID, enrol.RelayRenewRequest{CSR: relayCSR(t), Current: serial})
		must(t, err)
		return shown(t, a)
	}
	two := renew(one)
	admitted("before a renewal", one, false, true)
	three := renew(two)
	admitted("before two renewals", one, false, false)
	admitted("the newest", three, false, true)

	// The answers to two renewals are lost: the one that the relay has stays valid.
	renew(three)
	lost := renew(three)
	admitted("after lost answers", three, false, true)
	admitted("one that was lost", lost, false, true)

	// It expires, and can be renewed for a while.
	r.clock.forward(enrol.CertLife + time.Minute)
	admitted("an expired one", three, false, false)
	admitted("an expired one, to renew", three, true, true)
	r.clock.forward(31 * 24 * time.Hour)
	admitted("one that expired long ago", three, true, false)
	r.clock.forward(-31 * 24 * time.Hour)
	four := renew(three)

	// It is removed.
	admitted("renewed", four, false, true)
	cut := ""
	d.OnCut(func(id string) { cut = id })
	must(t, d.Remove(t.Context(), relayCreator, first.ID))
	admitted("removed", four, true, false)
	if cut != first.ID {
		t.Errorf("cut off: %q", cut)
	}
}

// awayStore is a record that does not answer.
type awayStore struct {
	enrol.RelayStore
	asked chan struct{}
}

func (s awayStore) SeeRelay(ctx context.Context, _, _ string, _ int) error {
	close(s.asked)
	<-ctx.Done()
	return ctx.Err()
}

// TestHelloWithoutTheRecord: a relay whose addresses are known is answered while the record does not answer. Otherwise it
// would leave its server and cut off all hosts.
func TestHelloWithoutTheRecord(t *testing.T) {
	r := newRig(t)
	var rights atomic.Bool
	d := newRelayDesk(t, r, &rights)
	token, _, err := d.CreateToken(t.Context(), relayCreator, enrol.RelayTokenRequest{Name: "plant", Areas: []int{3}, TTL: time.Hour})
	must(t, err)
	a, err := d.Join(t.Context(), netip.MustParseAddr("10.0.0.7"), relayJoin(t, token))
	must(t, err)
	hello := enrol.RelayHello{Agents: "10.3.0.1:4230", API: ":8443"}
	if _, err := d.Hello(t.Context(), a.ID, "s1", hello); err != nil {
		t.Fatal(err)
	}

	away := awayStore{r.store, make(chan struct{})}
	d, err = enrol.NewRelayDesk(t.Context(), enrol.RelayDeskOptions{Store: away, Authority: r.authority, Now: r.clock.now})
	must(t, err)
	t.Cleanup(d.Close)
	got, err := d.Hello(t.Context(), a.ID, "s1", hello)
	must(t, err)
	<-away.asked
	if len(got.Areas) != 1 || got.Areas[0] != 3 || got.Authorities == "" {
		t.Errorf("got %+v", got)
	}

	// Hosts of the area learn the relay, with the address that is known.
	if list, has := d.ServersOf(3); !has || len(list) != 1 || list[0].Agents != "10.3.0.1:4230" || list[0].API != "" {
		t.Errorf("got %v, %+v", has, list)
	}
	if list, has := d.ServersOf(4); has || len(list) != 0 {
		t.Errorf("another area: %v, %+v", has, list)
	}
}
