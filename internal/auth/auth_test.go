package auth_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

func config() auth.Config {
	return auth.Config{
		Apps: []auth.App{
			{Code: "trusted", Secrets: []auth.Digest{auth.Hash("old"), auth.Hash("new")}, AssertsUsers: true},
			{Code: "plain", Secrets: []auth.Digest{auth.Hash("s")}, MissingActionMeansStart: true},
		},
		Tokens: []auth.Token{{User: "alice", Digest: auth.Hash("t1")}, {User: "王五", Digest: auth.Hash("t2")}},
	}
}

func TestCheck(t *testing.T) {
	directory, err := auth.New(config())
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		name string
		cred auth.Credentials
		want gozzard.Caller
		kind gozzard.ErrorKind
	}{
		{"asserted", auth.Credentials{App: "trusted", Secret: "old", User: "bob"},
			gozzard.Caller{App: "trusted", User: "bob", Asserted: true}, ""},
		{"second secret", auth.Credentials{App: "trusted", Secret: "new", User: "bob"},
			gozzard.Caller{App: "trusted", User: "bob", Asserted: true}, ""},
		{"token", auth.Credentials{App: "plain", Secret: "s", Token: "t1"},
			gozzard.Caller{App: "plain", User: "alice"}, ""},
		{"token before name", auth.Credentials{App: "trusted", Secret: "old", Token: "t2", User: "bob"},
			gozzard.Caller{App: "trusted", User: "王五"}, ""},
		{"stale token, trusted name", auth.Credentials{App: "trusted", Secret: "old", Token: "x", User: "bob"},
			gozzard.Caller{App: "trusted", User: "bob", Asserted: true}, ""},
		{"stale token", auth.Credentials{App: "plain", Secret: "s", Token: "x"}, gozzard.Caller{},
			gozzard.ErrUnauthenticated},
		{"stale token, name not trusted", auth.Credentials{App: "plain", Secret: "s", Token: "x", User: "bob"},
			gozzard.Caller{}, gozzard.ErrUnauthenticated},
		{"name not trusted", auth.Credentials{App: "plain", Secret: "s", User: "bob"}, gozzard.Caller{},
			gozzard.ErrUserForbidden},
		{"nobody", auth.Credentials{App: "trusted", Secret: "old"}, gozzard.Caller{}, gozzard.ErrOperatorRequired},
		{"bad name", auth.Credentials{App: "trusted", Secret: "old", User: "a\nb"}, gozzard.Caller{},
			gozzard.ErrInvalid},
		{"no app", auth.Credentials{Secret: "old", User: "bob"}, gozzard.Caller{}, gozzard.ErrUnauthenticated},
		{"no secret", auth.Credentials{App: "trusted", User: "bob"}, gozzard.Caller{}, gozzard.ErrUnauthenticated},
		{"unknown app", auth.Credentials{App: "other", Secret: "old", User: "bob"}, gozzard.Caller{},
			gozzard.ErrUnauthenticated},
		{"wrong secret", auth.Credentials{App: "trusted", Secret: "olc", User: "bob"}, gozzard.Caller{},
			gozzard.ErrUnauthenticated},
		{"secret of another app", auth.Credentials{App: "trusted", Secret: "s", User: "bob"}, gozzard.Caller{},
			gozzard.ErrUnauthenticated},
		{"digest for secret", auth.Credentials{App: "plain", Secret: text(auth.Hash("s")), Token: "t1"},
			gozzard.Caller{}, gozzard.ErrUnauthenticated},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, app, err := directory.Check(t.Context(), c.cred)

			if c.kind != "" {
				if err == nil || gozzard.KindOf(err) != c.kind {
					t.Fatalf("error %v, want kind %s", err, c.kind)
				}
				if app.Code != "" || got != (gozzard.Caller{}) {
					t.Fatalf("a refused caller got %+v of %q", got, app.Code)
				}
				return
			}

			if err != nil {
				t.Fatal(err)
			}
			if !got.Rights.All() {
				t.Fatal("an app without a list of grants is not an admin")
			}
			if got.Rights = nil; got != c.want || app.Code != c.cred.App {
				t.Fatalf("got %+v of %q, want %+v", got, app.Code, c.want)
			}
		})
	}
}

func text(d auth.Digest) string {
	b, _ := d.MarshalText()
	return string(b)
}

func TestUnknownAppAndWrongSecretLookTheSame(t *testing.T) {
	directory, err := auth.New(config())
	if err != nil {
		t.Fatal(err)
	}
	_, _, unknown := directory.Check(t.Context(), auth.Credentials{App: "nobody", Secret: "x", User: "u"})
	_, _, wrong := directory.Check(t.Context(), auth.Credentials{App: "plain", Secret: "x", User: "u"})
	if unknown.Error() != wrong.Error() {
		t.Fatalf("%q differs from %q", unknown, wrong)
	}
}

func TestConfigRoundTrip(t *testing.T) {
	b, err := json.Marshal(config())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), `"old"`) {
		t.Fatalf("a secret is in %s", b)
	}

	var back auth.Config
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(config(), back); d != "" {
		t.Fatal(d)
	}
}

func TestConfigRefused(t *testing.T) {
	one := []auth.Digest{auth.Hash("s")}
	for name, c := range map[string]auth.Config{
		"no code":       {Apps: []auth.App{{Secrets: one}}},
		"no secret":     {Apps: []auth.App{{Code: "a"}}},
		"zero secret":   {Apps: []auth.App{{Code: "a", Secrets: make([]auth.Digest, 1)}}},
		"three secrets": {Apps: []auth.App{{Code: "a", Secrets: make([]auth.Digest, 3)}}},
		"twice":         {Apps: []auth.App{{Code: "a", Secrets: one}, {Code: "a", Secrets: one}}},
		"no user":       {Tokens: []auth.Token{{Digest: auth.Hash("t")}}},
		"zero token":    {Tokens: []auth.Token{{User: "u"}}},
		"token twice": {Tokens: []auth.Token{{User: "u", Digest: auth.Hash("t")},
			{User: "v", Digest: auth.Hash("t")}}},
	} {
		if _, err := auth.New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}

	var d auth.Digest
	if err := d.UnmarshalText([]byte("my-secret")); err == nil || strings.Contains(err.Error(), "my-secret") {
		t.Errorf("a secret in place of a digest: %v", err)
	}
}

func TestNewSecret(t *testing.T) {
	a, b := auth.NewSecret(), auth.NewSecret()
	if a == b || len(a) < 43 {
		t.Fatalf("%q, %q", a, b)
	}
}
