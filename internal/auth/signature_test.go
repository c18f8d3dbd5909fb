package auth_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

func TestSignature(t *testing.T) {
	r := newRig(t)
	secret, err := r.CreateApp(t.Context(), by, auth.App{Code: "signs", AssertsUsers: true, UnknownUsers: new(true)}, true)
	must(t, err)
	plain, err := r.CreateApp(t.Context(), by, auth.App{Code: "plain", AssertsUsers: true, UnknownUsers: new(true)}, false)
	must(t, err)
	n := 0
	try := func(app, key string, age time.Duration, edit func(*auth.Signature)) error {
		n++
		s := &auth.Signature{Text: "POST/x?bk_nonce=1", Nonce: fmt.Sprint(n), At: r.clock.Now().Add(-age)}
		s.Value = auth.Sign(key, s.Text)
		if edit != nil {
			edit(s)
		}
		_, err := r.check(t, auth.Credentials{App: app, Signature: s, User: "u"})
		return err
	}

	r.clock.pass(time.Hour)
	must(t, try("signs", secret, 0, nil))
	must(t, try("signs", secret, 300*time.Second, nil))
	must(t, try("signs", secret, -300*time.Second, nil))

	for name, err := range map[string]error{
		"old":               try("signs", secret, 301*time.Second, nil),
		"ahead":             try("signs", secret, -301*time.Second, nil),
		"other text":        try("signs", secret, 0, func(s *auth.Signature) { s.Text += "x" }),
		"other key":         try("signs", plain, 0, nil),
		"empty key":         try("signs", "", 0, nil),
		"empty key unknown": try("nobody", "", 0, nil),
		"does not sign":     try("plain", plain, 0, nil),
		"empty key, plain":  try("plain", "", 0, nil),
		"unknown":           try("nobody", secret, 0, nil),
		"no nonce":          try("signs", secret, 0, func(s *auth.Signature) { s.Nonce = "" }),
		"used nonce":        try("signs", secret, 0, func(s *auth.Signature) { s.Nonce = "1" }),
		"no value":          try("signs", secret, 0, func(s *auth.Signature) { s.Value = "" }),
	} {
		if gozzard.KindOf(err) != gozzard.ErrUnauthenticated || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	next, err := r.AddSecret(t.Context(), by, "signs")
	must(t, err)
	must(t, try("signs", next, 0, nil))
	must(t, try("signs", secret, 0, nil))
	must(t, r.RetireSecrets(t.Context(), by, "signs"))

	if err := try("signs", secret, 0, nil); err == nil {
		t.Error("a retired secret signs")
	}
	if !r.Signs("signs") || r.Signs("plain") || len(r.Apps()[2].SignKeys) != 0 {
		t.Error("keys are shown, or not kept")
	}
}

// A restarted server does not know which nonces were used before.
func TestSignatureFromBeforeTheStart(t *testing.T) {
	r := newRig(t)
	secret, err := r.CreateApp(t.Context(), by, auth.App{Code: "signs", AssertsUsers: true, UnknownUsers: new(true)}, true)
	must(t, err)
	s := &auth.Signature{Text: "x", Nonce: "n", At: r.clock.Now(), Value: auth.Sign(secret, "x")}
	_, err = r.check(t, auth.Credentials{App: "signs", Signature: s, User: "u"})
	must(t, err)
	r.clock.pass(10 * time.Second)
	again, err := auth.Open(t.Context(), r.store, auth.Options{Now: r.clock.Now})
	must(t, err)

	if _, _, err := again.Directory().Check(t.Context(),
		auth.Credentials{App: "signs", Signature: s, User: "u"}); err == nil {
		t.Fatal("a request was taken twice, with a start between")
	}
}
