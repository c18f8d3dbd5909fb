package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/test/fleettest"
)

// TestProviderLogin logs a user in at a provider, with a browser.
func TestProviderLogin(t *testing.T) {
	there := fleettest.NewProvider(t)
	var handler http.Handler
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		handler.ServeHTTP(w, r)
	}))

	t.Cleanup(srv.Close)
	p, err := auth.NewProvider(auth.ProviderOptions{Issuer: there.URL, ClientID: "gozzard", ClientSecret: "s",
		RedirectURL: srv.URL + "/login/oidc/callback"})
	if err != nil {
		t.Fatal(err)
	}

	d := newAccountServer(t, p)
	handler = d.handler

	browse := func(b *http.Client, address string) (*http.Response, secretAnswer) {
		t.Helper()
		res, err := b.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var a secretAnswer
		if err := json.NewDecoder(res.Body).Decode(&a); err != nil && res.StatusCode == http.StatusOK {
			t.Fatal(err)
		}
		return res, a
	}

	newBrowser := func() *http.Client {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Client{Jar: jar, CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		}}
	}

	login := func(b, back *http.Client) (int, secretAnswer) {
		res, _ := browse(b, srv.URL+"/login/oidc")
		state := there.Visit(res.Header.Get("Location"))
		res, a := browse(back, srv.URL+"/login/oidc/callback?"+
			url.Values{"state": {state}, "code": {fleettest.ProviderCode}}.Encode())
		return res.StatusCode, a
	}

	b := newBrowser()
	if code, _ := login(b, b); code != http.StatusForbidden {
		t.Fatalf("an unknown user gets %d", code)
	}

	d.do(admin, "POST", "/api/v1/users", `{"name":"a@example.com","grants":[{"role":"viewer"}]}`, 201, nil)
	code, session := login(b, b)
	if code != http.StatusOK {
		t.Fatalf("a login gets %d", code)
	}
	if caller := d.do(person(session.Token), "GET", "/api/v1/whoami", "", 200, nil); !strings.Contains(caller,
		`"user":"a@example.com"`) {
		t.Fatalf("the session is of %s", caller)
	}

	if code, _ := login(newBrowser(), newBrowser()); code != http.StatusUnauthorized {
		t.Fatalf("a login that another browser began gets %d", code)
	}

	there.Claims = func(c map[string]any) { c["sub"] = "somebody else" }

	if code, _ := login(b, b); code != http.StatusForbidden {
		t.Fatalf("another person with the same address gets %d", code)
	}

	d.do(anonymous, "GET", "/login/oidc/callback?error=access_denied", "", 401, nil)
	d.do(anonymous, "GET", "/login/oidc/callback", "", 401, nil)
	newAccountServer(t, nil).do(anonymous, "GET", "/login/oidc", "", 404, nil)
}
