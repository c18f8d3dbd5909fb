package server

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/record"
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
	w.to.handle(context.Background(), n.From, n.Key)
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
	s.keySync.isListed()
	return s.keySync, w
}

// keyText is the public part of a key as the record has it.
func keyText(k *ecdh.PrivateKey) string {
	return base64.StdEncoding.EncodeToString(k.PublicKey().Bytes())
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
	rows := []record.Server{{ID: "a", Address: "a:1", Seal: a.public()}, {ID: "b", Address: "b:1", Seal: b.public()}}
	a.servers = func(context.Context) ([]record.Server, error) { return rows, nil }
	c.servers = a.servers

	// A key that b has not asked for, and one that a neither uses nor offers.
	public, sealed, err := enrol.SealForPeer(next.String(), mine.PublicKey().Bytes(), file)
	if err != nil {
		t.Fatal(err)
	}
	b.handle(t.Context(), "a", &gozzard.PeerKey{What: gozzard.PeerKeyGive, Key: next.String(), Public: public, Sealed: sealed})
	a.handle(t.Context(), "b", &gozzard.PeerKey{What: gozzard.PeerKeyAsk, Key: next.String(), Public: mine.PublicKey().Bytes()})

	// Requests of a server that does not run, has another public key in the record, or none, and of one that is not recorded.
	own := &gozzard.PeerKey{What: gozzard.PeerKeyAsk, Key: a.s.signer.Key().String(), Public: mine.PublicKey().Bytes()}
	for _, row := range []record.Server{{}, {ID: "b", Address: "b:1", Seal: b.public()}, {ID: "b", Address: "b:1"},
		{ID: "b", Address: "b:1", Seal: keyText(mine), Ago: time.Minute}, {ID: "b", Seal: keyText(mine)}} {
		a.servers = func(context.Context) ([]record.Server, error) { return []record.Server{row}, nil }
		a.handle(t.Context(), "b", own)
	}
	a.servers = func(context.Context) ([]record.Server, error) { return nil, errors.New("the database is away") }
	a.handle(t.Context(), "b", own)
	a.servers = c.servers
	a.handle(t.Context(), "b", &gozzard.PeerKey{What: gozzard.PeerKeyAsk, Key: own.Key, Public: []byte("none")})
	if err := b.s.signer.Use(next); !errors.Is(err, signing.ErrNotKept) || len(toB.told)+len(fromB.told) > 0 {
		t.Errorf("%v; a said %q, b said %q", err, toB.told, fromB.told)
	}

	// With the row of this run it is given, so the checks above can fail.
	rows[1].Seal = keyText(mine)
	fromB.to = b
	if a.handle(t.Context(), "b", own); !slices.Equal(toB.told, []string{gozzard.PeerKeyGive}) {
		t.Errorf("a said %q to a server of the record", toB.told)
	}
	rows[1].Seal = b.public()

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
