package enrol_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/signing"
)

func wantKind(t *testing.T, what string, err error, kind gozzard.ErrorKind) {
	t.Helper()
	if err == nil || gozzard.KindOf(err) != kind {
		t.Errorf("%s: got %v, want one of kind %s", what, err, kind)
	}
}

func nets(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// TestTS4Tokens: tokens that are used up, expired, revoked, changed, of another server, used from outside of their
// networks, or for addresses outside of them.
func TestTS4Tokens(t *testing.T) {
	r := newRig(t)
	once := r.token(enrol.TokenRequest{})
	m, err := r.join(once, "a", 1, t.TempDir())
	must(t, err)

	if m.Agent != "a" || m.Cloud != 0 || m.State() != enrol.StateActive || m.Address == "" {
		t.Errorf("got %+v", m)
	}

	_, err = r.join(once, "b", 2, t.TempDir())
	wantKind(t, "second use", err, gozzard.ErrUnauthenticated)

	short := r.token(enrol.TokenRequest{TTL: time.Minute})
	r.clock.forward(2 * time.Minute)
	_, err = r.join(short, "c", 3, t.TempDir())
	wantKind(t, "over", err, gozzard.ErrUnauthenticated)

	_, err = r.join(r.token(enrol.TokenRequest{Nets: nets("10.0.0.0/8")}), "d", 4, t.TempDir())
	wantKind(t, "from elsewhere", err, gozzard.ErrUnauthenticated)
	_, err = r.join(r.token(enrol.TokenRequest{Nets: nets("127.0.0.0/8")}), "d", 4, t.TempDir())
	wantKind(t, "as an address outside", err, gozzard.ErrInvalid)
	both := r.token(enrol.TokenRequest{Nets: nets("127.0.0.0/8", "10.0.0.4/32")})
	_, err = enrol.Join(t.Context(), enrol.JoinOptions{Server: r.url, Token: both, Dir: t.TempDir(), Agent: "d",
		IPs: []netip.Addr{ip(4), ip(5)}})
	wantKind(t, "with one address outside", err, gozzard.ErrInvalid)
	_, err = r.join(both, "d", 4, t.TempDir())
	must(t, err)

	gone := r.token(enrol.TokenRequest{})
	must(t, r.registry.RevokeToken(t.Context(), admin(), gone.ID))
	_, err = r.join(gone, "e", 5, t.TempDir())
	wantKind(t, "revoked", err, gozzard.ErrUnauthenticated)

	wrong := r.token(enrol.TokenRequest{})
	wrong.Secret = once.Secret
	_, err = r.join(wrong, "f", 6, t.TempDir())
	wantKind(t, "wrong secret", err, gozzard.ErrUnauthenticated)
	wrong.ID = "nosuchtoken"
	_, err = r.join(wrong, "f", 6, t.TempDir())
	wantKind(t, "unknown", err, gozzard.ErrUnauthenticated)

	foreign := newRig(t).token(enrol.TokenRequest{})
	foreign.Pin = once.Pin // otherwise the host would not even send it
	_, err = r.join(foreign, "g", 7, t.TempDir())
	wantKind(t, "another server's", err, gozzard.ErrUnauthenticated)

	if n := len(r.registry.Agents()); n != 2 {
		t.Errorf("%d members, want 2", n)
	}
	if n := r.refusals("join"); n != 9 {
		t.Errorf("%d refusals were counted, want 9", n)
	}
}

// TestTS4Race: fifty hosts use a token of one use at the same time.
func TestTS4Race(t *testing.T) {
	r := newRig(t)
	token := r.token(enrol.TokenRequest{})
	var in atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		dir := t.TempDir()
		wg.Go(func() {
			_, err := r.join(token, gozzard.AgentID(fmt.Sprint("agent-", i)), byte(i+1), dir)
			if err == nil {
				in.Add(1)
			} else if gozzard.KindOf(err) != gozzard.ErrUnauthenticated {
				t.Error(err)
			}
		})
	}

	wg.Wait()

	if in.Load() != 1 {
		t.Errorf("%d got in", in.Load())
	}

	list, err := r.registry.Tokens(t.Context(), admin())
	must(t, err)

	if list[0].Used != 1 {
		t.Errorf("used %d times", list[0].Used)
	}
}

// TestTS4Names: a host cannot use a token to become another member, neither by its id nor by its address.
func TestTS4Names(t *testing.T) {
	r := newRig(t)
	r.member("a", 1)
	_, err := r.join(r.token(enrol.TokenRequest{}), "a", 2, t.TempDir())
	wantKind(t, "its id", err, gozzard.ErrConflict)
	_, err = r.join(r.token(enrol.TokenRequest{}), "b", 1, t.TempDir())
	wantKind(t, "its address", err, gozzard.ErrConflict)
	b := r.member("b", 2)
	said := []gozzard.HostAddr{{IP: ip(2)}, {IP: ip(1)}, {IP: ip(9)}}
	if kept := r.registry.Addrs(b.Agent, said); len(kept) != 1 || kept[0].IP != ip(2) {
		t.Errorf("kept %v", kept)
	}
	if kept := r.registry.Addrs("stranger", said); len(kept) != 1 || kept[0].IP != ip(9) {
		t.Errorf("of a host that is no member %v is kept", kept)
	}

	_, err = r.join(r.token(enrol.TokenRequest{Agent: "a"}), "b", 2, t.TempDir())
	wantKind(t, "a token for another", err, gozzard.ErrUnauthenticated)
	_, err = r.join(r.token(enrol.TokenRequest{Agent: "a"}), "a", 1, t.TempDir())
	must(t, err)
	_, err = r.registry.SetState(t.Context(), admin(), "a", enrol.StateRemoved)
	must(t, err)
	_, _, err = r.registry.CreateToken(t.Context(), admin(), enrol.TokenRequest{TTL: time.Hour, Uses: 1, Agent: "a"})
	wantKind(t, "a token for one that was removed", err, gozzard.ErrInvalid)
	_, err = r.join(r.token(enrol.TokenRequest{}), "a", 1, t.TempDir())
	wantKind(t, "one that was removed", err, gozzard.ErrConflict)
	_, err = r.join(r.token(enrol.TokenRequest{}), "c", 1, t.TempDir())
	must(t, err) // the address is free again
}

func TestRightsOfEnrollers(t *testing.T) {
	r := newRig(t)
	r.member("a", 1)

	caller := func(g gozzard.Grant) gozzard.Caller {
		return gozzard.Caller{App: "x", User: "y", Rights: &gozzard.Rights{Grants: []gozzard.Grant{g}}}
	}

	wish := enrol.TokenRequest{TTL: time.Hour, Uses: 1, Cloud: 3,
		Nets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}
	for what, c := range map[string]struct {
		g   gozzard.Grant
		may bool
	}{
		"enroller":         {gozzard.Grant{Role: gozzard.RoleEnroller}, true},
		"of the cloud":     {gozzard.Grant{Role: gozzard.RoleEnroller, Clouds: []int{3}}, true},
		"of another cloud": {gozzard.Grant{Role: gozzard.RoleEnroller, Clouds: []int{4}}, false},
		"of a wider net": {gozzard.Grant{Role: gozzard.RoleEnroller,
			Nets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, true},
		"of a smaller net": {gozzard.Grant{Role: gozzard.RoleEnroller,
			Nets: []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24")}}, false},
		"admin of a business":     {gozzard.Grant{Role: gozzard.RoleAdmin, Businesses: []int{2}}, false},
		"operator":                {gozzard.Grant{Role: gozzard.RoleOperator}, false},
		"admin of the whole":      {gozzard.Grant{Role: gozzard.RoleAdmin}, true},
		"nobody":                  {gozzard.Grant{}, false},
		"viewer of the same area": {gozzard.Grant{Role: gozzard.RoleViewer, Clouds: []int{3}}, false},
	} {
		_, _, err := r.registry.CreateToken(t.Context(), caller(c.g), wish)
		if (err == nil) != c.may || err != nil && gozzard.KindOf(err) != gozzard.ErrUserForbidden {
			t.Errorf("%s: got %v", what, err)
		}
	}

	_, err := r.registry.SetState(t.Context(), caller(gozzard.Grant{Role: gozzard.RoleEnroller}), "a", enrol.StateRevoked)
	wantKind(t, "an enroller revokes", err, gozzard.ErrUserForbidden)
	_, err = r.registry.SetState(t.Context(), caller(gozzard.Grant{Role: gozzard.RoleAdmin, Clouds: []int{7}}), "a",
		enrol.StateRevoked)
	wantKind(t, "an admin of another cloud revokes", err, gozzard.ErrNotFound)
	_, err = r.registry.SetState(t.Context(), admin(), "nobody", enrol.StateRevoked)
	wantKind(t, "an unknown agent is revoked", err, gozzard.ErrNotFound)
}

// fake is a wrong server. It counts the bytes that it receives.
func fake(t *testing.T, c *tls.Config) (url string, received *atomic.Int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	received = new(atomic.Int64)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(patience))
				n, _ := io.Copy(io.Discard, tls.Server(conn, c))
				received.Add(n)
			})
		}
	})

	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return "https://" + l.Addr().String(), received
}

// TestTS5RogueServer: only the server of the token gets the token.
func TestTS5RogueServer(t *testing.T) {
	r := newRig(t)
	token := r.token(enrol.TokenRequest{})
	other, err := enrol.OpenAuthority(t.TempDir(), nil)
	must(t, err)
	good, err := r.authority.ServerCertificate(nil)
	must(t, err)
	foreign, err := other.ServerCertificate(nil)
	must(t, err)
	old := &clock{offset: -1000 * 24 * time.Hour}
	past, err := enrol.OpenAuthority(rigDir(t, r), old.now)
	must(t, err)
	expired, err := past.ServerCertificate(nil)
	must(t, err)
	m := r.member("a", 1)
	agent, err := tls.X509KeyPair([]byte(m.Identity), []byte(m.Identity))
	must(t, err)
	agent.Certificate = append(agent.Certificate, good.Certificate[1])
	mixed := *foreign
	// the right authority shown beside a leaf of another
	mixed.Certificate = [][]byte{foreign.Certificate[0], good.Certificate[1]}
	bare := *good
	bare.Certificate = good.Certificate[:1]
	for what, c := range map[string]*tls.Config{
		"another authority":           {Certificates: []tls.Certificate{*foreign}},
		"over":                        {Certificates: []tls.Certificate{*expired}},
		"the certificate of an agent": {Certificates: []tls.Certificate{agent}},
		"another name":                {Certificates: []tls.Certificate{selfSigned(t, "example.com")}},
		"a forged chain":              {Certificates: []tls.Certificate{mixed}},
		"no chain":                    {Certificates: []tls.Certificate{bare}},
		"TLS 1.2":                     {Certificates: []tls.Certificate{*good}, MaxVersion: tls.VersionTLS12},
	} {
		url, received := fake(t, c)
		_, err := enrol.Join(t.Context(), enrol.JoinOptions{Server: url, Token: token, Dir: t.TempDir(), Agent: "b",
			IPs: []netip.Addr{ip(2)}})
		if err == nil {
			t.Errorf("%s: joined", what)
		}
		if received.Load() != 0 {
			t.Errorf("%s: was received %d bytes", what, received.Load())
		}
	}

	for _, url := range []string{"http://127.0.0.1:1", "127.0.0.1:1", "https://u:p@127.0.0.1:1",
		"https://127.0.0.1:1/x", ""} {
		if _, err := enrol.Join(t.Context(), enrol.JoinOptions{Server: url, Token: token, Dir: t.TempDir(),
			Agent: "b"}); err == nil {
			t.Errorf("joined %q", url)
		}
	}

	_, err = r.join(token, "b", 2, t.TempDir()) // none of this used the token
	must(t, err)
}

// rigDir copies the authority of a rig into a folder.
func rigDir(t *testing.T, r *rig) string {
	t.Helper()
	dir := t.TempDir()
	b, err := os.ReadFile(filepath.Join(r.dir, "ca.key"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "ca.key"), b, 0o600))
	return dir
}

func selfSigned(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestWhatAHostKeeps(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	m, err := r.join(r.token(enrol.TokenRequest{Cloud: 5}), "a", 1, dir)
	must(t, err)
	kept, err := enrol.LoadMembership(dir)
	must(t, err)

	if kept.Agent != "a" || kept.Cloud != 5 || kept.Address != m.Address || kept.Server != r.url ||
		!kept.NotAfter().Equal(m.NotAfter()) {
		t.Errorf("kept %+v", kept)
	}

	ring, err := signing.OpenKeyRing(dir, nil)
	must(t, err)

	if ring.Key().Epoch == 0 {
		t.Error("the server's key is not kept")
	}

	for _, name := range []string{"enrolment.json", signing.RingFile} {
		st, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %04o", name, st.Mode().Perm())
		}
	}

	must(t, os.Chmod(filepath.Join(dir, "enrolment.json"), 0o644))

	if _, err := enrol.LoadMembership(dir); err == nil || !strings.Contains(err.Error(), "can be read by others") {
		t.Errorf("got %v", err)
	}
	if _, err := enrol.LoadMembership(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestTokenText(t *testing.T) {
	r := newRig(t)
	token := r.token(enrol.TokenRequest{})
	got, err := enrol.ParseToken(" " + token.String() + "\n")
	if err != nil || got != token {
		t.Errorf("got %+v, %v", got, err)
	}

	for _, s := range []string{"", "gz1", token.String()[4:], "gz2" + token.String()[3:], token.String() + ".x",
		token.String()[:len(token.String())-1], "gz1.A." + token.Secret + "." + token.Pin,
		"gz1." + token.ID + ".short." + token.Pin, "gz1.a/../b." + token.Secret + "." + token.Pin} {
		if _, err := enrol.ParseToken(s); err == nil {
			t.Errorf("%q was taken", s)
		} else if strings.Contains(err.Error(), token.Secret) {
			t.Error("an error repeats the secret")
		}
	}
}
