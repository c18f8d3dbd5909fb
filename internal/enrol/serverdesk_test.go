package enrol

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// deskRig is a desk with a clock, accounts and an audit that can fail.
type deskRig struct {
	*ServerDesk
	mu       sync.Mutex
	now      time.Time
	rights   *gozzard.Rights
	rows     []string
	noteFail error
}

var asker = netip.MustParseAddr("10.0.0.9")

func newDeskRig() *deskRig {
	r := &deskRig{now: time.Now(), rights: gozzard.Everything()}
	r.ServerDesk = NewServerDesk(ServerDeskOptions{
		Pin: func() string { return strings.Repeat("A", 43) },
		Keys: func() (ServerKeys, error) {
			return ServerKeys{Installation: "one", Authority: []byte("secret authority"), Signing: []byte("secret signing")}, nil
		},
		Rights: func(gozzard.Caller) *gozzard.Rights { return r.rights },
		Note: func(_ context.Context, act AuditEntry) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.noteFail == nil {
				r.rows = append(r.rows, act.What)
			}
			return r.noteFail
		},
		Barred: func() error { return nil }, Now: func() time.Time { return r.now }, Log: slog.New(slog.DiscardHandler),
	})
	return r
}

func (r *deskRig) token(t *testing.T) Token {
	t.Helper()
	token, _, err := r.CreateToken(t.Context(), gozzard.Caller{App: "admin", User: "root"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// ask is a request with a token, and the key that opens its answer.
func ask(t *testing.T, token Token) (ServerJoinRequest, *ecdh.PrivateKey) {
	t.Helper()
	mine, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := mine.PublicKey().Bytes()
	return ServerJoinRequest{Token: token.ID, Public: public, Proof: newJoinKey(token).proof(token.ID, public)}, mine
}

func refused(t *testing.T, err error, text string) {
	t.Helper()
	if gozzard.KindOf(err) != gozzard.ErrUnauthenticated || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want a refusal with %q", err, text)
	}
}

// TestTS17Desk: tokens that are used, expired, guessed, of another proof, and of a creator that lost its rights.
func TestTS17Desk(t *testing.T) {
	r := newDeskRig()
	token := r.token(t)
	req, mine := ask(t, token)

	// A proof is for one public key, and a token for one id.
	other, _ := ask(t, token)
	other.Proof = req.Proof
	_, err := r.Give(t.Context(), asker, other)
	refused(t, err, "not valid here")
	wrong := token
	wrong.Secret = newToken("").Secret
	guess, _ := ask(t, wrong)
	_, err = r.Give(t.Context(), asker, guess)
	refused(t, err, "not valid here")
	unknown, _ := ask(t, newToken(""))
	_, err = r.Give(t.Context(), asker, unknown)
	refused(t, err, "not valid here")

	// Without a row in the audit no key leaves, and the token stays valid.
	r.noteFail = errors.New("the disk is full")
	if _, err := r.Give(t.Context(), asker, req); !errors.Is(err, r.noteFail) {
		t.Errorf("without a row: %v", err)
	}
	r.noteFail = nil

	// The creator must still be an admin.
	r.rights = nil
	_, err = r.Give(t.Context(), asker, req)
	refused(t, err, "not an admin of everything any more")
	r.rights = gozzard.Everything()

	// The keys are readable only with both the token and the key of the request.
	got, err := r.Give(t.Context(), asker, req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := newJoinKey(token).open(token.ID, mine, got.Public, got.Sealed)
	if err != nil || !bytes.Contains(text, []byte(`"installation":"one"`)) {
		t.Errorf("opened %q, %v", text, err)
	}
	if _, err := newJoinKey(wrong).open(token.ID, mine, got.Public, got.Sealed); err == nil {
		t.Error("another token opens the answer")
	}
	_, theirs := ask(t, token)
	if _, err := newJoinKey(token).open(token.ID, theirs, got.Public, got.Sealed); err == nil {
		t.Error("the token without the key of the request opens the answer")
	}
	got.Sealed[0] ^= 1
	if _, err := newJoinKey(token).open(token.ID, mine, got.Public, got.Sealed); err == nil {
		t.Error("a changed answer is accepted")
	}

	// Used, and expired.
	_, err = r.Give(t.Context(), asker, req)
	refused(t, err, "was used already")
	late := r.token(t)
	r.now = r.now.Add(time.Hour)
	req, _ = ask(t, late)
	_, err = r.Give(t.Context(), asker, req)
	refused(t, err, "expired at")

	want := []string{auditServerToken + token.ID, auditServerJoin + token.ID, auditServerToken + late.ID}
	if strings.Join(r.rows, " ") != strings.Join(want, " ") {
		t.Errorf("the audit has %v, want %v", r.rows, want)
	}
}

// TestTS17Race: 50 use one token at once, and one gets the keys.
func TestTS17Race(t *testing.T) {
	r := newDeskRig()
	token := r.token(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	given := 0
	for range 50 {
		req, _ := ask(t, token)
		wg.Go(func() {
			if _, err := r.Give(t.Context(), asker, req); err == nil {
				mu.Lock()
				given++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if given != 1 {
		t.Errorf("%d got the keys", given)
	}
}

// TestServerTokenLimits: how long tokens are valid, and how many there are.
func TestServerTokenLimits(t *testing.T) {
	r := newDeskRig()
	for _, ttl := range []time.Duration{0, -1, MaxServerTTL + 1} {
		if _, _, err := r.CreateToken(t.Context(), gozzard.Caller{}, ttl); gozzard.KindOf(err) != gozzard.ErrInvalid {
			t.Errorf("ttl %s: %v", ttl, err)
		}
	}
	for range maxServerTokens {
		r.token(t)
	}
	if _, _, err := r.CreateToken(t.Context(), gozzard.Caller{}, time.Hour); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Errorf("one more token: %v", err)
	}
	if len(r.rows) != maxServerTokens {
		t.Errorf("%d audit rows for %d tokens", len(r.rows), maxServerTokens)
	}
	r.now = r.now.Add(endedFor + 2*time.Hour)
	r.token(t)
}
