package server

import (
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/signing"
)

// wire leads from one server to another one, which hears everything at once.
type wire struct {
	to   *keySync
	told []string
}

func (w *wire) Tell(_ string, payload []byte) error {
	n, err := nats.DecodeNews(payload)
	if err != nil {
		return err
	}
	w.told = append(w.told, n.Key.What)
	w.to.handle(n.From, n.Key)
	return nil
}

func (w *wire) SetRoutes([]string) error { return nil }
func (w *wire) ClusterAddr() string      { return "" }

// newKeyed is the part of a server that has its signing key in a folder.
func newKeyed(t *testing.T, id, dir string) (*keySync, *wire) {
	t.Helper()
	signer, err := signing.OpenSigner(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{}
	s := &Server{id: id, signer: signer, options: Options{Log: slog.New(slog.DiscardHandler)}}
	s.cluster, s.keySync = newCluster(s, w), newKeySync(s)
	return s.keySync, w
}

// next makes the key after the present one.
func (k *keySync) next(t *testing.T) (signing.Key, []byte) {
	t.Helper()
	file, key, err := k.s.signer.Next()
	if err != nil {
		t.Fatal(err)
	}
	return key, file
}

// offers offers a key to the server at the other end, and returns what that one says.
func (k *keySync) offers(t *testing.T, key signing.Key, file []byte) string {
	t.Helper()
	k.offer(key.String(), file)
	defer k.offer("", nil)
	k.tell("", &gozzard.PeerKey{What: gozzard.PeerKeyOffer, Key: key.String()})
	k.mu.Lock()
	defer k.mu.Unlock()
	fault, ok := k.answers["b"]
	if !ok {
		t.Fatal("the offer was not answered")
	}
	return fault
}

// TestTS19ServersTakeWhatTheyAskedFor: a server gives only the key that it uses or offers, takes only one that it has asked
// for, and keeps none of another installation, even from a server.
func TestTS19ServersTakeWhatTheyAskedFor(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	a, toB := newKeyed(t, "a", dir)
	text, err := os.ReadFile(filepath.Join(dir, signing.SignerFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(other, signing.SignerFile), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, fromB := newKeyed(t, "b", other)
	c, strangerToB := newKeyed(t, "c", t.TempDir())
	toB.to, strangerToB.to, fromB.to = b, b, a
	mine, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	next, file := a.next(t)

	// A key that b has not asked for, and one that a neither uses nor offers.
	public, sealed, err := enrol.SealForPeer(next.String(), mine.PublicKey().Bytes(), file)
	if err != nil {
		t.Fatal(err)
	}
	b.handle("a", &gozzard.PeerKey{What: gozzard.PeerKeyGive, Key: next.String(), Public: public, Sealed: sealed})
	a.handle("b", &gozzard.PeerKey{What: gozzard.PeerKeyAsk, Key: next.String(), Public: mine.PublicKey().Bytes()})
	a.handle("b", &gozzard.PeerKey{What: gozzard.PeerKeyAsk, Key: a.s.signer.Key().String(), Public: []byte("none")})
	if err := b.s.signer.Use(next); !errors.Is(err, signing.ErrNotKept) || len(toB.told)+len(fromB.told) > 0 {
		t.Errorf("%v; a said %q, b said %q", err, toB.told, fromB.told)
	}

	// The key of another installation.
	foreign, strange := c.next(t)
	fromB.to = c
	if got := c.offers(t, foreign, strange); !strings.Contains(got, "does not follow") {
		t.Errorf("a foreign key: %q", got)
	}

	// The right one, twice, and then another one of the same epoch.
	fromB.to = a
	for range 2 {
		if got := a.offers(t, next, file); got != "" {
			t.Errorf("the next key: %q", got)
		}
	}
	if err := b.s.signer.Use(next); err != nil {
		t.Error(err)
	}
	if got := a.offers(t, next, file); got != "" {
		t.Errorf("the present key: %q", got)
	}
	late, file := a.next(t)
	if got := a.offers(t, late, file); !strings.Contains(got, "already") {
		t.Errorf("a key that came too late: %q", got)
	}
}
