//go:build linux

package console_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
	"github.com/gozzard/gozzard/test/fleettest"
)

// byProvider is the link to the login provider, below the form that signs in.
const byProvider = "Sign in with the company's account"

// providerOf runs a login provider for a server, and returns the flags that the server needs for it. For the browser the
// provider is another site, as real ones are: it decides about the cookies that come with the way back.
func providerOf(t *testing.T, s *console.Server) (*fleettest.Provider, []string) {
	t.Helper()
	p := fleettest.NewProvider(t)
	p.URL = strings.Replace(p.URL, "127.0.0.1", "localhost", 1)
	callback := strings.TrimRight(s.Cred.URL, "/") + "/login/oidc/callback"
	return p, []string{"--oidc-issuer", p.URL, "--oidc-client-id", "gozzard", "--oidc-redirect-url", callback}
}

// providerActs: people come by the provider, as soon as the server knows them. An admin unlinks one from its id there.
func providerActs(t *testing.T, s *console.Server, provider *fleettest.Provider, admin *console.Page) {
	t.Helper()
	const name = "a@example.com"
	p := s.Open(t)
	refused := func(p *console.Page) {
		t.Helper()
		p.Click("link", byProvider)
		p.WaitText("The company's account was not accepted")
		if p.Has("navigation", "Pages") {
			t.Error("an unknown person is in the console")
		}
	}
	enters := func(p *console.Page, subject string) {
		t.Helper()
		p.Click("link", byProvider)
		p.Wait("navigation", "Pages")
		if u := userOf(t, s.Fleet, name); u.Subject != subject {
			t.Errorf("the user is %+v, want the subject %s", u, subject)
		}
		if list := sessions(t, s.Fleet, name); len(list) != 1 || !list[0].Session || list[0].Kind != "console_provider" {
			t.Errorf("the sessions are %+v", list)
		}
	}

	// Only a user of this server comes in, and stays in.
	refused(p)
	p.Accessible()
	s.AddUser(t, name, "", client.Grant{Role: "viewer"})
	enters(p, "subject-1")
	if path := p.Path(); path != "/console/" {
		t.Errorf("the sign-in ends at %s", path)
	}
	p.Reload()
	p.Wait("link", "Hosts")
	if p.Has("link", "People") {
		t.Error("a viewer has the pages of an admin")
	}

	// Another person with the same address is another person, until an admin says otherwise.
	provider.Claims = func(claims map[string]any) { claims["sub"] = "subject-2" }
	other := s.Open(t)
	refused(other)
	admin.Go("/console/people/" + name)
	admin.WaitText("subject-1")
	admin.Click("button", "Unlink the company's account")
	admin.Wait("dialog", "Unlink "+name+" from the company's account")
	admin.Accessible()
	submit(admin)
	admin.WaitNoText("subject-1")
	p.WaitText("Your session has ended")
	if u := userOf(t, s.Fleet, name); u.Subject != "" {
		t.Errorf("the unlinked user is %+v", u)
	}
	enters(other, "subject-2")
}
