//go:build linux

package fleettest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// oidcFleet is a built server with a login through a provider.
type oidcFleet struct {
	*ft.Server
	t        *testing.T
	provider *ft.Provider
	base     string
}

func newOIDCFleet(t *testing.T) *oidcFleet {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of-gozzard\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	f := &oidcFleet{t: t, provider: ft.NewProvider(t)}
	listen := "127.0.0.1:" + strconv.Itoa(ft.FreePort(t))
	f.base = "http://" + listen
	f.Server = ft.StartServer(t, "", "--listen", listen, "--oidc-issuer", f.provider.URL, "--oidc-client-id", "gozzard",
		"--oidc-secret-file", secret, "--oidc-redirect-url", f.base+"/login/oidc/callback")
	return f
}

// browser is a browser with its own cookies. It follows redirects up to the path stopAt.
func (f *oidcFleet) browser(stopAt string) *http.Client {
	f.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if stopAt != "" && r.URL.Path == stopAt {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// page is the last answer that a browser got.
type page struct {
	status   int
	location string // a redirect that the browser did not follow
	body     string
}

func (f *oidcFleet) get(b *http.Client, address string) page {
	f.t.Helper()
	res, err := b.Get(address)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return page{res.StatusCode, res.Header.Get("Location"), string(body)}
}

// login follows a whole login: server, provider, server.
func (f *oidcFleet) login() page { return f.get(f.browser(""), f.base+"/login/oidc") }

// begin follows a login up to the address that the provider sends the browser back to. The browser has not opened that
// address yet.
func (f *oidcFleet) begin(b *http.Client) *url.URL {
	f.t.Helper()
	p := f.get(b, f.base+"/login/oidc")
	back, err := url.Parse(p.location)
	if err != nil || p.status != http.StatusFound || back.Path != "/login/oidc/callback" ||
		back.Query().Get("code") == "" {
		f.t.Fatalf("the provider answers %d %s %s", p.status, p.location, p.body)
	}
	return back
}

// as calls the native API with a person's token.
func (f *oidcFleet) as(token, method, path string) page {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.base+path, http.NoBody)
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return page{res.StatusCode, "", string(body)}
}

func (f *oidcFleet) refused(what string, p page, status int, words string) {
	f.t.Helper()
	if p.status != status || !strings.Contains(p.body, words) || strings.Contains(p.body, `"token"`) {
		f.t.Errorf("%s: %d %s, want %d with %q", what, p.status, p.body, status, words)
	}
}

func (f *oidcFleet) addUser(name string) {
	f.t.Helper()
	body, err := json.Marshal(ft.J{"name": name, "grants": []ft.J{{"role": "viewer"}}})
	if err != nil {
		f.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.base+"/api/v1/users",
		strings.NewReader(string(body)))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Bkapi-Authorization", credentials(f.t, f.Server))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	if answer, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusCreated {
		f.t.Fatalf("%v %d %s", err, res.StatusCode, answer)
	}
}

// TestLoginWithAProvider: a person logs in to the built program with an OpenID provider and uses the login on the
// native API.
func TestLoginWithAProvider(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newOIDCFleet(t)

	f.refused("a user that is not known here", f.login(), http.StatusForbidden, "not known here")
	f.addUser("a@example.com")

	// Log in: one request, and the redirects that it leads to.
	p := f.login()
	var session struct {
		Token string `json:"token"`
		User  string `json:"user"`
	}
	if err := json.Unmarshal([]byte(p.body), &session); err != nil || p.status != http.StatusOK || session.Token == "" {
		t.Fatalf("a login is answered %d %s: %v", p.status, p.body, err)
	}

	// Use the token within the rights of the person, and log out.
	if me := f.as(session.Token, "GET", "/api/v1/whoami"); me.status != http.StatusOK ||
		!strings.Contains(me.body, `"user":"a@example.com"`) {
		t.Errorf("whoami: %d %s", me.status, me.body)
	}
	if hosts := f.as(session.Token, "GET", "/api/v1/hosts"); hosts.status != http.StatusOK {
		t.Errorf("hosts: %d %s", hosts.status, hosts.body)
	}
	if users := f.as(session.Token, "GET", "/api/v1/users"); users.status != http.StatusForbidden {
		t.Errorf("a viewer lists users: %d %s", users.status, users.body)
	}
	if out := f.as(session.Token, "POST", "/api/v1/logout"); out.status >= 300 {
		t.Errorf("logout: %d %s", out.status, out.body)
	}
	if me := f.as(session.Token, "GET", "/api/v1/whoami"); me.status != http.StatusUnauthorized {
		t.Errorf("after the logout: %d %s", me.status, me.body)
	}
}

// TestLoginsThatAreRefused: the built program rejects everything except the login that this browser began here.
func TestLoginsThatAreRefused(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newOIDCFleet(t)
	f.addUser("a@example.com")
	const callback = "/login/oidc/callback"
	const notBegun, badCode = "was not begun here", "rejects the code"

	// The state of another login.
	b := f.browser(callback)
	back := f.begin(b)
	q := back.Query()
	q.Set("state", "another")
	back.RawQuery = q.Encode()
	f.refused("wrong state", f.get(b, back.String()), http.StatusUnauthorized, notBegun)

	// The link of one browser, opened in another.
	f.refused("another browser", f.get(f.browser(callback), f.begin(f.browser(callback)).String()),
		http.StatusUnauthorized, notBegun)

	// A code that was used: with the login that it belonged to, and in a new login.
	b = f.browser(callback)
	back = f.begin(b)
	kept := b.Jar.Cookies(back)
	if p := f.get(b, back.String()); p.status != http.StatusOK {
		t.Fatalf("a login is answered %d %s", p.status, p.body)
	}
	f.refused("the same link again", f.get(b, back.String()), http.StatusUnauthorized, notBegun)
	b.Jar.SetCookies(back, kept)
	f.refused("the same link again with its cookie", f.get(b, back.String()), http.StatusUnauthorized, badCode)

	used := back.Query().Get("code")
	back = f.begin(b)
	q = back.Query()
	q.Set("code", used)
	back.RawQuery = q.Encode()
	f.refused("a used code in a new login", f.get(b, back.String()), http.StatusUnauthorized, badCode)

	// The provider's token is for another login, for another person, unverified, or not signed by the provider.
	for what, c := range map[string]struct {
		claim  string
		value  any
		status int
		words  string
	}{
		"wrong nonce":       {"nonce", "another", http.StatusUnauthorized, "is for another login"},
		"unknown user":      {"email", "b@example.com", http.StatusForbidden, "not known here"},
		"another subject":   {"sub", "subject-2", http.StatusForbidden, "not known here"},
		"unchecked address": {"email_verified", false, http.StatusForbidden, "returned no usable email"},
		"another client":    {"aud", "somebody", http.StatusUnauthorized, "is not valid"},
	} {
		f.provider.Claims = func(claims map[string]any) { claims[c.claim] = c.value }
		f.refused(what, f.login(), c.status, c.words)
	}
	f.provider.Claims, f.provider.Forged = nil, true
	f.refused("another key", f.login(), http.StatusUnauthorized, "is not valid")

	// None of this has broken the login.
	f.provider.Forged = false
	if p := f.login(); p.status != http.StatusOK {
		t.Errorf("a login is answered %d %s", p.status, p.body)
	}
}
