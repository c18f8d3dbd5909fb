package auth

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/gozzard/gozzard"
)

// ProviderOptions say how users log in at an OpenID Connect provider.
type ProviderOptions struct {
	Issuer       string
	ClientID     string
	ClientSecret string
	RedirectURL  string   // ends in /login/oidc/callback
	Claim        string   // that has the name of the user; "" means email
	GroupsClaim  string   // that has the groups of the user; "" means that groups are not read
	Scopes       []string // that are asked for, beside openid, profile and email
	Client       *http.Client
}

// Provider logs users in by the authorization code flow with PKCE. It is safe for concurrent use.
type Provider struct {
	o ProviderOptions

	mu       sync.Mutex
	found    *oidc.Provider
	verifier *oidc.IDTokenVerifier
	asking   bool // a request is discovering it
}

// Person is a user as the provider knows it.
type Person struct {
	Name    string
	Subject string   // the user's id at the provider
	Groups  []string // that the provider names
}

// Attempt is a login that has begun. The browser that began it keeps it; it is useless to others.
type Attempt struct {
	State    string
	Nonce    string
	Verifier string
}

const providerTimeout = 10 * time.Second

// NewProvider makes a Provider. It contacts the provider at the first login, so the server starts without it.
func NewProvider(o ProviderOptions) (*Provider, error) {
	if o.Claim == "" {
		o.Claim = "email"
	}

	for name, address := range map[string]string{"issuer": o.Issuer, "redirect address": o.RedirectURL} {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !Loopback(u.Hostname())) {
			return nil, fmt.Errorf("%s %q: use https, beyond this machine", name, address)
		}
	}

	if o.ClientID == "" {
		return nil, fmt.Errorf("the client id of the login provider is required")
	}
	if o.Client == nil {
		o.Client = &http.Client{}
	}

	own := *o.Client
	own.Timeout = providerTimeout
	o.Client = &own
	return &Provider{o: o}, nil
}

// discover reads the provider's configuration once. After a failure the next login tries again. While one login waits
// for the answer, others are rejected and can be tried again.
func (p *Provider) discover(ctx context.Context) (*oauth2.Config, *oidc.IDTokenVerifier, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.found == nil {
		if p.asking {
			return nil, nil, gozzard.Errorf(gozzard.ErrUnavailable,
				"the login provider does not answer yet: try again in a moment")
		}
		p.asking = true
		p.mu.Unlock()
		// The provider keeps the context for its keys, so it must not end with this request; the client's time-out
		// ends each call.
		found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.o.Client), p.o.Issuer)
		p.mu.Lock()
		p.asking = false
		if err != nil {
			return nil, nil, &gozzard.Error{Kind: gozzard.ErrUnavailable,
				Message: "the login provider cannot be reached", Cause: err}
		}
		p.found, p.verifier = found, found.Verifier(&oidc.Config{ClientID: p.o.ClientID})
	}

	return &oauth2.Config{ClientID: p.o.ClientID, ClientSecret: p.o.ClientSecret, RedirectURL: p.o.RedirectURL,
		Endpoint: p.found.Endpoint(),
		Scopes:   append([]string{oidc.ScopeOpenID, "profile", "email"}, p.o.Scopes...)}, p.verifier, nil
}

// Begin starts a login and returns the address to send the browser to.
func (p *Provider) Begin(ctx context.Context) (address string, a Attempt, err error) {
	c, _, err := p.discover(ctx)
	if err != nil {
		return "", a, err
	}
	a = Attempt{State: NewSecret(), Nonce: NewSecret(), Verifier: oauth2.GenerateVerifier()}
	return c.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), a, nil
}

// Finish ends a login. It returns the user as the provider knows it.
func (p *Provider) Finish(ctx context.Context, a Attempt, state, code string) (Person, error) {
	refused := func(text string, cause error) error {
		return &gozzard.Error{Kind: gozzard.ErrUnauthenticated, Message: text, Cause: cause}
	}

	// Check that this browser began the login.
	if a.State == "" || subtle.ConstantTimeCompare([]byte(a.State), []byte(state)) != 1 {
		return Person{}, refused("this login was not begun here, or too long ago: begin again at /login/oidc", nil)
	}

	// Exchange the code for an ID token.
	c, verifier, err := p.discover(ctx)
	if err != nil {
		return Person{}, err
	}

	ctx = oidc.ClientContext(ctx, p.o.Client)
	tokens, err := c.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return Person{}, refused("the login provider rejects the code", err)
	}

	raw, ok := tokens.Extra("id_token").(string)
	if !ok {
		return Person{}, refused("the login provider returned no ID token", nil)
	}

	// Check the ID token.
	id, err := verifier.Verify(ctx, raw)
	if err != nil {
		return Person{}, refused("the login provider's ID token is not valid", err)
	}
	if a.Nonce == "" || subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(a.Nonce)) != 1 {
		return Person{}, refused("the login provider's ID token is for another login", nil)
	}

	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return Person{}, fmt.Errorf("cannot read the claims of an ID token: %w", err)
	}
	name, err := p.name(claims)
	return Person{Name: name, Subject: id.Subject, Groups: p.groups(claims)}, err
}

// maxClaimGroups bounds the work for one login.
const maxClaimGroups = 2000

// groups reads the claim that has the groups of the user: a list of texts, or one text.
func (p *Provider) groups(claims map[string]any) (names []string) {
	if p.o.GroupsClaim == "" {
		return nil
	}
	list, _ := claims[p.o.GroupsClaim].([]any)
	if one, ok := claims[p.o.GroupsClaim].(string); ok {
		list = []any{one}
	}
	for _, v := range list[:min(len(list), maxClaimGroups)] {
		if name, ok := v.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// name reads the claim that has the name of the user. An email address counts only if the provider has verified it.
func (p *Provider) name(claims map[string]any) (string, error) {
	name, ok := claims[p.o.Claim].(string)
	if p.o.Claim == "email" && claims["email_verified"] != true {
		ok = false
	}
	if !ok || gozzard.ValidateName(name) != nil {
		return "", gozzard.Errorf(gozzard.ErrUserForbidden, "the login provider returned no usable %s", p.o.Claim)
	}
	return name, nil
}
