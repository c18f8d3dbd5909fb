package auth_test

import (
	"crypto/sha256"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// TestTS2EqualWork counts the work for guesses. Times would show the same, but not on a busy machine: a guess must
// cost the same whether the app or the person exists or not, and however near it is.
func TestTS2EqualWork(t *testing.T) {
	t.Run("secret", equalWorkForSecrets)
	t.Run("signature", equalWorkForSignatures)
	t.Run("password", equalWorkForPasswords)
}

func equalWorkForSecrets(t *testing.T) {
	secret, older := auth.NewSecret(), auth.NewSecret()
	directory, err := auth.New(auth.Config{Apps: []auth.App{
		{Code: "two", Secrets: []auth.Digest{auth.Hash(secret), auth.Hash(older)}},
		{Code: "one", Secrets: []auth.Digest{auth.Hash(secret)}},
	}})
	must(t, err)

	// Every guess makes as many comparisons as an app may have secrets, each of complete digests. A comparison of the
	// secrets themselves would show by its time where the first wrong byte is.
	want := []auth.Compared{{sha256.Size, sha256.Size}, {sha256.Size, sha256.Size}}
	for name, tt := range map[string]struct {
		app, secret string
		right       bool
	}{
		"unknown app":         {"none", secret, false},
		"all wrong":           {"two", strings.Repeat("~", len(secret)), false},
		"short":               {"two", "x", false},
		"nearly right":        {"two", secret[:len(secret)-1] + ".", false},
		"one secret, wrong":   {"one", "wrong", false},
		"right, the first":    {"two", secret, true},
		"right, the second":   {"two", older, true},
		"one secret, but one": {"one", older, false},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			made := directory.Comparisons(func() {
				_, err = directory.CheckApp(auth.Credentials{App: tt.app,
					Secret: tt.secret})
			})
			if (err == nil) != tt.right {
				t.Errorf("the answer is %v", err)
			}
			if !slices.Equal(made, want) {
				t.Errorf("comparisons of %v bytes, want %v", made, want)
			}
		})
	}
}

func equalWorkForSignatures(t *testing.T) {
	const key, text = "a key that signs", "POSThost/path?a=b"
	directory, err := auth.New(auth.Config{Apps: []auth.App{
		{Code: "signs", Secrets: []auth.Digest{auth.Hash(key)}, SignKeys: []string{key}},
		{Code: "plain", Secrets: []auth.Digest{auth.Hash("x")}},
	}})
	must(t, err)

	size := len(auth.Sign(key, text))
	want := []auth.Compared{{size, size}, {size, size}}
	for name, tt := range map[string]struct {
		app, value string
		right      bool
	}{
		"unknown app":          {"none", auth.Sign(key, text), false},
		"app without keys":     {"plain", auth.Sign(key, text), false},
		"signed with no key":   {"plain", auth.Sign("", text), false},
		"wrong":                {"signs", auth.Sign("another key", text), false},
		"wrong, nobody has it": {"none", auth.Sign("another key", text), false},
		"right":                {"signs", auth.Sign(key, text), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &auth.Signature{Value: tt.value, Text: text, Nonce: name, At: time.Now()}
			var err error
			made := directory.Comparisons(func() { _, err = directory.CheckApp(auth.Credentials{App: tt.app, Signature: s}) })
			if (err == nil) != tt.right {
				t.Errorf("the answer is %v", err)
			}
			if !slices.Equal(made, want) {
				t.Errorf("comparisons of %v bytes, want %v", made, want)
			}
		})
	}
}

// equalWorkForPasswords measures memory: hashing a password takes 19 MiB, and nothing else in a login takes a hundredth
// of that.
func equalWorkForPasswords(t *testing.T) {
	const once, tolerance = 19 << 20, 2 << 20
	r := newRig(t)
	ctx := t.Context()
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice"}, "a password of alice"))
	must(t, r.CreateUser(ctx, by, auth.User{Name: "bob"}, ""))

	for name, guess := range map[string][2]string{
		"unknown person":            {"nobody", "a password of alice"},
		"person without a password": {"bob", "a password of alice"},
		"wrong":                     {"alice", "a password of malice"},
		"nearly right":              {"alice", "a password of alicf"},
		"too long":                  {"alice", strings.Repeat("x", auth.MaxPassword+1)},
		"empty":                     {"nobody", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := r.Login(ctx, guess[0], guess[1])
			runtime.ReadMemStats(&after)
			wantKind(t, err, gozzard.ErrUnauthenticated)
			if n := after.TotalAlloc - before.TotalAlloc; n < once || n > once+tolerance {
				t.Errorf("a guess took %d bytes, want %d as for one hash", n, once)
			}
		})
	}
}

// TestTS2AtRest: the store contains no secret that a thief of the database could use.
func TestTS2AtRest(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	secret, err := r.CreateApp(ctx, by, auth.App{Code: "shop"}, false)
	must(t, err)
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice"}, "a password of alice"))
	token, _, err := r.CreateToken(ctx, by, "alice", "", time.Hour)
	must(t, err)
	c, _, err := r.store.LoadAccounts(ctx)
	must(t, err)
	kept := jsonText(t, c)
	for _, s := range []string{secret, token, "a password of alice"} {
		if len(s) < 19 || strings.Contains(kept, s) {
			t.Errorf("%q is kept as it is", s)
		}
	}

	if len(secret) < 43 || len(token) < 43 {
		t.Error("a secret has fewer than 256 bits")
	}
}

// TestTS3 names users in every way that a request of an app has.
func TestTS3(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	secret, err := r.CreateApp(ctx, by, auth.App{Code: "plain", Grants: gozzard.Everything().Grants}, false)
	must(t, err)
	must(t, r.CreateUser(ctx, by, auth.User{Name: "root", Grants: gozzard.Everything().Grants}, ""))
	_, err = r.check(t, auth.Credentials{App: "plain", Secret: secret, User: "root"})
	wantKind(t, err, gozzard.ErrUserForbidden)
	_, err = r.check(t, auth.Credentials{App: "plain", Secret: secret, User: "root", Token: "guess"})
	wantKind(t, err, gozzard.ErrUnauthenticated)
	_, err = r.check(t, auth.Credentials{App: "plain", Secret: secret})
	wantKind(t, err, gozzard.ErrOperatorRequired)
	caller, err := r.check(t, auth.Credentials{App: "admin", Secret: "root", User: "root"})
	must(t, err)

	if caller.App != "admin" || caller.User != "root" || !caller.Asserted {
		t.Fatalf("the word of a trusted app is recorded as %+v", caller)
	}
	if !slices.Contains(r.refused, "user_name") || !slices.Contains(r.refused, "user_token") {
		t.Fatalf("counted %v", r.refused)
	}
}
