package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/auth"
)

func TestFirstAccounts(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	path := filepath.Join(dir, "credentials.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	var c Credentials
	if err := json.Unmarshal(b, &c); err != nil || c.Secret == "" || atomicfile.Check(path) != nil {
		t.Fatalf("%v, or the credentials are empty or readable by others", err)
	}

	caller, _, err := s.accounts.Directory().Check(t.Context(),
		auth.Credentials{App: c.AppCode, Secret: c.Secret, User: c.Username})
	if err != nil || !caller.Rights.All() {
		t.Fatalf("the first app is %+v, %v", caller, err)
	}

	s.Close()

	if err := os.Remove(path); err != nil { // as the documentation advises
		t.Fatal(err)
	}

	s = open(t, dir)
	defer s.Close()

	if _, err := os.Stat(path); err == nil {
		t.Fatal("a second start makes another admin")
	}
	if _, err := s.accounts.Directory().CheckApp(auth.Credentials{App: c.AppCode, Secret: c.Secret}); err != nil {
		t.Fatal(err)
	}

	s.options.Login.Reset = true
	if err := s.firstAccounts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.accounts.Directory().CheckApp(auth.Credentials{App: c.AppCode, Secret: c.Secret}); err == nil {
		t.Fatal("the lost secret is valid after a reset")
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
}

// The apps of a version without accounts are imported once, and keep their rights.
func TestOldAppsAreTakenOverOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "apps.json")
	text := `{"apps":[{"code":"admin","secrets":["` + digest("one") + `"],"asserts_users":true},{"code":"shop","secrets":["` + digest("two") + `","` + digest("three") + `"]}],
		"tokens":[{"user":"alice","sha256":"` + digest("token") + `"}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	s := open(t, dir)
	caller, _, err := s.accounts.Directory().Check(t.Context(),
		auth.Credentials{App: "shop", Secret: "three", Token: "token"})
	if err != nil || caller.User != "alice" || !caller.Rights.All() {
		t.Fatalf("%+v, %v", caller, err)
	}
	if err := s.accounts.DropApp(t.Context(), gozzard.Caller{App: "admin"}, "shop"); err != nil {
		t.Fatal(err)
	}

	s.Close()
	s = open(t, dir) // the file is still there
	defer s.Close()

	if _, err := s.accounts.Directory().CheckApp(auth.Credentials{App: "shop", Secret: "three"}); err == nil {
		t.Fatal("an app that was deleted is back")
	}
	if _, err := os.Stat(filepath.Join(dir, "credentials.json")); err == nil {
		t.Fatal("an old server got another admin")
	}
}

func digest(secret string) string {
	b, _ := auth.Hash(secret).MarshalText() // never fails
	return string(b)
}

func TestLoginFlags(t *testing.T) {
	open := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(open, []byte("s"), 0o644); err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]LoginOptions{
		"login service": {LoginURL: "paas"},
		"plain issuer": {Issuer: "http://login.example.com", ClientID: "x",
			Redirect: "https://g.example.com/login/oidc/callback"},
		"no client": {Issuer: "https://login.example.com", Redirect: "https://g.example.com/login/oidc/callback"},
		"secret for all": {Issuer: "https://login.example.com", ClientID: "x", Secret: open,
			Redirect: "https://g.example.com/login/oidc/callback"},
		"no such secret": {Issuer: "https://login.example.com", ClientID: "x", Secret: open + "x",
			Redirect: "https://g.example.com/login/oidc/callback"},
		"no redirect URL": {Issuer: "https://login.example.com", ClientID: "x"},
	} {
		_, err := c.verifier()
		if err == nil {
			_, err = c.provider()
		}
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
