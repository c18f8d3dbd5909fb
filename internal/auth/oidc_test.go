package auth_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/test/fleettest"
)

func TestProvider(t *testing.T) {
	claim := func(name string, v any) func(*fleettest.Provider) {
		return func(p *fleettest.Provider) { p.Claims = func(c map[string]any) { c[name] = v } }
	}

	for name, c := range map[string]struct {
		before func(*fleettest.Provider)
		edit   func(a *auth.Attempt, state, code *string)
		kind   gozzard.ErrorKind
	}{
		"right": {},
		"forged": {before: func(p *fleettest.Provider) { p.Forged = true },
			kind: gozzard.ErrUnauthenticated},
		"other audience": {before: claim("aud", "another"), kind: gozzard.ErrUnauthenticated},
		"other issuer":   {before: claim("iss", "https://example.com"), kind: gozzard.ErrUnauthenticated},
		"expired": {before: claim("exp", time.Now().Add(-time.Hour).Unix()),
			kind: gozzard.ErrUnauthenticated},
		"other nonce":       {before: claim("nonce", "another"), kind: gozzard.ErrUnauthenticated},
		"no nonce":          {before: claim("nonce", ""), kind: gozzard.ErrUnauthenticated},
		"email not checked": {before: claim("email_verified", false), kind: gozzard.ErrUserForbidden},
		"email of no name":  {before: claim("email", "a\nb@example.com"), kind: gozzard.ErrUserForbidden},
		"other state": {edit: func(_ *auth.Attempt, state, _ *string) { *state += "x" },
			kind: gozzard.ErrUnauthenticated},
		"not begun here": {edit: func(a *auth.Attempt, state, _ *string) { *a, *state = auth.Attempt{}, "" },
			kind: gozzard.ErrUnauthenticated},
		"other code": {edit: func(_ *auth.Attempt, _, code *string) { *code = "guess" },
			kind: gozzard.ErrUnauthenticated},
		"stolen code": {edit: func(a *auth.Attempt, _, _ *string) { a.Verifier = auth.NewSecret() },
			kind: gozzard.ErrUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			there := fleettest.NewProvider(t)

			if c.before != nil {
				c.before(there)
			}

			p, err := auth.NewProvider(auth.ProviderOptions{Issuer: there.URL, ClientID: "gozzard", ClientSecret: "s",
				RedirectURL: "https://gozzard.example.com/login/oidc/callback"})
			must(t, err)
			address, attempt, err := p.Begin(t.Context())
			must(t, err)
			state, code := there.Visit(address), fleettest.ProviderCode

			if c.edit != nil {
				c.edit(&attempt, &state, &code)
			}

			person, err := p.Finish(t.Context(), attempt, state, code)

			if c.kind != "" {
				wantKind(t, err, c.kind)
				return
			}

			must(t, err)

			if person.Name != "a@example.com" || person.Subject != "subject-1" || person.Groups != nil {
				t.Fatalf("%+v", person)
			}
		})
	}
}

// The server starts while its provider is down, and uses the provider when it is up again.
func TestProviderAway(t *testing.T) {
	there := fleettest.NewProvider(t)
	down := true
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if down {
			return nil, http.ErrServerClosed
		}
		return http.DefaultTransport.RoundTrip(r)
	})}

	p, err := auth.NewProvider(auth.ProviderOptions{Issuer: there.URL, ClientID: "gozzard",
		RedirectURL: "http://127.0.0.1/login/oidc/callback", Client: client})
	must(t, err)
	_, _, err = p.Begin(t.Context())
	wantKind(t, err, gozzard.ErrUnavailable)
	down = false
	_, _, err = p.Begin(t.Context())
	must(t, err)

	for _, o := range []auth.ProviderOptions{
		{Issuer: "http://login.example.com", ClientID: "x", RedirectURL: "https://g.example.com"},
		{Issuer: "https://login.example.com", ClientID: "x", RedirectURL: "http://g.example.com"},
		{Issuer: "https://login.example.com", RedirectURL: "https://g.example.com"},
	} {
		if _, err := auth.NewProvider(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
