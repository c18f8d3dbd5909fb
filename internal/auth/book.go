package auth

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"slices"

	"github.com/gozzard/gozzard"
)

// maxSecrets is how many secrets of one app are valid at once: the new one and the one it replaces.
const maxSecrets = 2

// Credentials is what a request brought, not yet believed.
type Credentials struct {
	App    string
	Secret string
	Token  string // of a user
	User   string // named by the app
}

// Book answers who is asking. It does not change once made and is safe for concurrent use.
type Book struct {
	apps   map[string]*entry
	absent *entry // stands in for every unknown app, so that both cost the same
	tokens map[Digest]string
}

// entry always has maxSecrets digests; those not configured are random and match nothing.
type entry struct {
	app     App
	digests [maxSecrets]Digest
}

// New makes a book.
func New(c Config) (*Book, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("cannot read credentials: %w", err)
	}
	b := &Book{apps: make(map[string]*entry, len(c.Apps)), absent: newEntry(App{}), tokens: make(map[Digest]string, len(c.Tokens))}
	for _, a := range c.Apps {
		b.apps[a.Code] = newEntry(a)
	}
	for _, t := range c.Tokens {
		b.tokens[t.Digest] = t.User
	}
	return b, nil
}

func newEntry(a App) *entry {
	a.Secrets = slices.Clone(a.Secrets)
	e := &entry{app: a}
	for i := range e.digests {
		_, _ = rand.Read(e.digests[i][:])
	}
	copy(e.digests[:], a.Secrets)
	return e
}

// CheckApp proves the app alone. Unknown apps and wrong secrets give the same error after the same work.
func (b *Book) CheckApp(c Credentials) (App, error) {
	if c.App == "" {
		return App{}, gozzard.Errorf(gozzard.ErrUnauthenticated, "bk_app_code: required")
	}
	if c.Secret == "" {
		return App{}, gozzard.Errorf(gozzard.ErrUnauthenticated, "bk_app_secret: required")
	}
	e, known := b.apps[c.App]
	if !known {
		e = b.absent
	}
	given := Hash(c.Secret)
	match := 0
	for i := range e.digests {
		match |= subtle.ConstantTimeCompare(given[:], e.digests[i][:])
	}
	if match != 1 || !known {
		return App{}, gozzard.Errorf(gozzard.ErrUnauthenticated, "bk_app_code or bk_app_secret is wrong")
	}
	return e.app, nil
}

// Check proves the app, then the user: a valid token wins; else the app's word counts if the app is on the white list.
func (b *Book) Check(c Credentials) (gozzard.Caller, App, error) {
	app, err := b.CheckApp(c)
	if err != nil {
		return gozzard.Caller{}, App{}, err
	}
	// Looked up by digest: what an attacker could learn from the time of the look-up is the digest of a guess, which he knows.
	user, valid := b.tokens[Hash(c.Token)]
	switch {
	case c.Token != "" && valid:
		return gozzard.Caller{App: app.Code, User: user}, app, nil
	case c.User != "" && app.AssertsUsers:
		if err := gozzard.ValidateName(c.User); err != nil {
			return gozzard.Caller{}, App{}, &gozzard.Error{Kind: gozzard.ErrInvalid, Faults: []gozzard.Fault{{Path: "bk_username", Text: err.Error()}}}
		}
		return gozzard.Caller{App: app.Code, User: c.User, Asserted: true}, app, nil
	case c.Token != "":
		return gozzard.Caller{}, App{}, gozzard.Errorf(gozzard.ErrUnauthenticated, "bk_token is not valid")
	case c.User != "":
		return gozzard.Caller{}, App{}, gozzard.Errorf(gozzard.ErrUserForbidden,
			"app %s may not name a user by bk_username: it is not on the white list, send bk_token", app.Code)
	}
	return gozzard.Caller{}, App{}, gozzard.Errorf(gozzard.ErrOperatorRequired, "bk_token or bk_username: one is required")
}
