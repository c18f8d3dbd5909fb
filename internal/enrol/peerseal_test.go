package enrol

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"testing"
	"time"
)

// sealAuthority makes an authority for a test.
func sealAuthority(t *testing.T) *Authority {
	t.Helper()
	a, err := OpenAuthority(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// newSeal starts a server.
func (a *Authority) newSeal(t *testing.T, id string) *PeerSeal {
	t.Helper()
	s, err := a.NewPeerSeal("one", id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open opens a message that must not be rejected.
func (s *PeerSeal) open(t *testing.T, to, from string, b []byte) (text, reply []byte) {
	t.Helper()
	text, reply, err := s.Open(to, from, b)
	if err != nil {
		t.Fatal(err)
	}
	return text, reply
}

// asks makes a server ask another one for its key.
func (s *PeerSeal) asks(t *testing.T, other *PeerSeal) []byte {
	t.Helper()
	text, ask := s.open(t, "all", other.server, other.Seal("all", []byte("hello")))
	if text != nil || ask == nil {
		t.Fatalf("got %q, and asks %q", text, ask)
	}
	return ask
}

// meets makes a server know the key of another one.
func (s *PeerSeal) meets(t *testing.T, other *PeerSeal) {
	t.Helper()
	_, answer := other.open(t, other.server, s.server, s.asks(t, other))
	s.open(t, s.server, other.server, answer)
	s.hears(t, other)
}

// hears checks that messages arrive.
func (s *PeerSeal) hears(t *testing.T, other *PeerSeal) {
	t.Helper()
	for _, to := range []string{"all", s.server} {
		if text, _ := s.open(t, to, other.server, other.Seal(to, []byte("news"))); string(text) != "news" {
			t.Fatalf("%s got %q", to, text)
		}
	}
}

// rejects checks that nothing is read from a message.
func (s *PeerSeal) rejects(t *testing.T, what, to, from string, b []byte) {
	t.Helper()
	if text, _, _ := s.Open(to, from, b); text != nil {
		t.Errorf("%s: %q is read", what, text)
	}
}

// TestTS20Seal: a message is read by its receivers once, and what was changed, or is for others or of others, never.
func TestTS20Seal(t *testing.T) {
	authority := sealAuthority(t)
	a, b := authority.newSeal(t, "a"), authority.newSeal(t, "b")
	early := a.Seal("all", []byte("early"))
	b.meets(t, a)
	b.rejects(t, "a message before the key", "all", "a", early)

	// Every bit counts, and the message still does after all that.
	m := a.Seal("all", []byte("secret text"))
	if bytes.Contains(m, []byte("secret")) {
		t.Error("the text can be read")
	}
	for i := range len(m) * 8 {
		changed := bytes.Clone(m)
		changed[i/8] ^= 1 << (i % 8)
		b.rejects(t, fmt.Sprint("bit ", i), "all", "a", changed)
	}
	for n := range m {
		b.rejects(t, fmt.Sprint("the first ", n), "all", "a", m[:n])
	}
	b.rejects(t, "for another receiver", "b", "a", m)
	b.rejects(t, "of another sender", "all", "c", m)
	if text, _ := b.open(t, "all", "a", m); string(text) != "secret text" {
		t.Errorf("got %q", text)
	}
	if _, _, err := b.Open("all", "a", m); err == nil {
		t.Error("a message counts twice")
	}
	b.senders["a"].ask = nil // it was made by changed bits, and the next one would have to wait

	// After a new start of either, nothing of the earlier run counts: not even what never arrived.
	late := a.Seal("all", []byte("late"))
	again := authority.newSeal(t, "a")
	b.meets(t, again)
	fresh := authority.newSeal(t, "b")
	for _, s := range []*PeerSeal{b, fresh} {
		_, ask, err := s.Open("all", "a", late)
		if err != nil || ask == nil {
			t.Fatalf("no question: %v", err)
		}
		_, answer := again.open(t, "a", "b", ask)
		s.open(t, "b", "a", answer)
		s.rejects(t, "a message of an earlier run", "all", "a", late)
		s.hears(t, again)
	}
}

// TestTS20StrangersGetNoKey: only servers of the installation get a key, each for itself, and only an answer of the right
// server to the newest question counts.
func TestTS20StrangersGetNoKey(t *testing.T) {
	authority, other := sealAuthority(t), sealAuthority(t)
	a := authority.newSeal(t, "a")
	denied := func(what, to, from string, ask []byte) {
		t.Helper()
		if _, reply, err := a.Open(to, from, ask); err == nil || reply != nil {
			t.Errorf("%s: it is answered (%v)", what, err)
		}
	}

	denied("another authority", "a", "b", other.newSeal(t, "b").asks(t, a))
	elsewhere, err := authority.NewPeerSeal("two", "b")
	if err != nil {
		t.Fatal(err)
	}
	denied("another installation", "a", "b", elsewhere.asks(t, a))
	denied("another server", "a", "c", authority.newSeal(t, "b").asks(t, a))
	denied("a question to all", "all", "b", authority.newSeal(t, "b").asks(t, a))
	for what, create := range map[string]func() (*tls.Certificate, error){
		"the server of agents": func() (*tls.Certificate, error) { return authority.ServerCertificate([]string{PeerName}) },
		"an agent":             func() (*tls.Certificate, error) { return agentCertificate(authority) },
	} {
		s := authority.newSeal(t, "b")
		s.own = &serverCertificate{authority: authority, create: create}
		denied(what, "a", "b", s.asks(t, a))
	}

	// Answers of strangers, and to an older question.
	b := authority.newSeal(t, "b")
	first := b.asks(t, a)
	_, answer, err := other.newSeal(t, "a").Open("a", "b", first)
	if err == nil || answer != nil {
		t.Error("a server of another installation answers")
	}
	_, old := a.open(t, "a", "b", first)
	b.senders["a"].ask.at = time.Time{} // the pause is over
	second := b.asks(t, a)
	_, answer = a.open(t, "a", "b", second)
	b.open(t, "b", "a", old)
	if b.senders["a"].box != nil {
		t.Error("the answer to an older question counts")
	}
	b.rejects(t, "the answer of another", "b", "c", answer)
	b.open(t, "b", "a", answer)
	b.hears(t, a)
}

// agentCertificate is that of an agent.
func agentCertificate(a *Authority) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	der, err := a.sign(&x509.CertificateRequest{PublicKey: key.Public()}, "host1", 0, serial, false)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

// TestSealWhileTheAuthorityIsRotated: servers hear each other at every step.
func TestSealWhileTheAuthorityIsRotated(t *testing.T) {
	authority := sealAuthority(t)
	a := authority.newSeal(t, "a")
	b := authority.newSeal(t, "b")
	b.meets(t, a)
	for _, step := range []func() error{authority.Rotate, authority.Finish} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		b.hears(t, a)
		authority.newSeal(t, "c").meets(t, a)
	}
}

// TestMadeUpSenders: names of servers that do not exist take bounded memory, and keep no server out for long.
func TestMadeUpSenders(t *testing.T) {
	authority := sealAuthority(t)
	a, b := authority.newSeal(t, "a"), authority.newSeal(t, "b")
	m := authority.newSeal(t, "x").Seal("all", []byte("x"))
	asked := 0
	for i := range 3 * mostSenders {
		if _, reply := b.open(t, "all", fmt.Sprint("x", i), m); reply != nil {
			asked++
		}
	}
	if asked == 0 || asked > mostSenders/2 || len(b.senders) > mostSenders {
		t.Errorf("%d questions, %d senders", asked, len(b.senders))
	}

	for i := len(b.senders); i < mostSenders; i++ {
		b.senders[fmt.Sprint("y", i)] = &sender{}
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, ask := b.open(t, "all", "a", a.Seal("all", nil)); ask != nil {
			_, answer := a.open(t, "a", "b", ask)
			_, _, err := b.Open("b", "a", answer)
			if err == nil {
				b.hears(t, a)
				return
			}
			if !errors.Is(err, errSealMany) { // made-up senders used up the signatures of a moment: it asks again
				t.Fatal(err)
			}
		}
		if time.Now().After(end) {
			t.Fatal("a server is kept out")
		}
	}
}
