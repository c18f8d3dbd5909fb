//go:build linux

package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/fleettest"
)

// Fleet is a running `gozzard dev` with the page in it.
type Fleet struct {
	*fleettest.Dev
	Client *client.Client // may do everything
}

// StartFleet runs `gozzard dev` with a number of hosts. It skips the test where no browser or no page is.
func StartFleet(t testing.TB, hosts int, extra ...string) *Fleet {
	t.Helper()
	need(t)
	f := &Fleet{Dev: fleettest.StartDev(t, hosts, extra...)}
	c, err := client.New(f.Cred.URL, client.Credentials{AppCode: f.Cred.AppCode, AppSecret: f.Cred.Secret,
		Username: f.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	f.Client = c
	return f
}

// Open opens a new tab, with cookies and storage of its own, on the console. Nobody is signed in.
func (f *Fleet) Open(t testing.TB) *Page {
	t.Helper()
	p := NewPage(t, strings.TrimRight(f.Cred.URL, "/"))
	p.fleet = f
	p.Go("/console/")
	return p
}

// AddUser makes a user with a password, and with grants.
func (f *Fleet) AddUser(t testing.TB, name, password string, grants ...client.Grant) {
	t.Helper()
	if err := f.Client.CreateUser(t.Context(), name, password, grants); err != nil {
		t.Fatalf("cannot make user %s: %v", name, err)
	}
}

// EnterByLink signs in by a one-time link, as the administrator of the fleet.
func (p *Page) EnterByLink() {
	p.t.Helper()
	link, err := p.fleet.Client.ConsoleLink(p.t.Context())
	if err != nil {
		p.t.Fatalf("cannot make a link: %v", err)
	}
	u, err := url.Parse(link.URL)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Go(u.RequestURI())
	p.Wait("navigation", "")
}

// SignIn signs in by the form. It does not wait for what comes of it.
func (p *Page) SignIn(user, password string) {
	p.t.Helper()
	p.Fill("Name", user)
	p.Fill("Password", password)
	p.Click("button", "Sign in")
}

// Do sends a request to the native API as the page does: with the cookie of this tab, and with the proof that a page of
// this server sends it. It returns the status.
func (p *Page) Do(method, path string) int {
	p.t.Helper()
	var status int
	p.Eval(`(async () => {
		const s = await (await fetch("/api/v1/session")).json();
		const a = await fetch(`+quote(path)+`, {method: `+quote(method)+`, headers: {"X-Gozzard-CSRF": s.csrf ?? ""}});
		return a.status;
	})()`, &status)
	if status == 0 || status == http.StatusNotFound {
		p.t.Fatalf("%s %s: status %d", method, path, status)
	}
	return status
}
