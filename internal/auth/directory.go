package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// Credentials is what a request brought, not yet checked.
type Credentials struct {
	App       string
	Secret    string
	Signature *Signature // instead of the secret
	Token     string     // of a user
	User      string     // named by the app

	Names *Names // nil means plain words
}

// Names are what the caller's protocol calls the parts of its credentials. Messages about them use these names, so
// that a caller sees which field is wrong.
type Names struct {
	App       string
	Secret    string
	Token     string
	User      string
	Signature string
	Nonce     string
	Time      string
}

var plainNames = Names{App: "app", Secret: "secret", Token: "token", User: "user", Signature: "signature",
	Nonce: "nonce", Time: "time"}

func (c *Credentials) names() *Names {
	if c.Names == nil {
		return &plainNames
	}
	return c.Names
}

// TokenVerifier asks another service whose login a token is. An empty name without an error means that the token is
// not valid.
type TokenVerifier interface {
	Verify(ctx context.Context, token string) (user string, err error)
}

// Options are the parts of a Directory. All may be zero.
type Options struct {
	Verify  TokenVerifier     // checks tokens that are not ours; nil means that there are none
	Refused func(rule string) // called for every refusal with the name of the rule
	Now     func() time.Time  // time.Now

	// Assigned reports whether a host is assigned to a business; see gozzard.Rights. nil: no host is.
	Assigned func(biz int, h gozzard.HostRef) bool

	// SecondPerson says that a grant of the role admin needs a second person. Ask records the request.
	SecondPerson bool
	Ask          func(ctx context.Context, by gozzard.Caller, to Holder, g gozzard.Grant) error

	MaxTokenAge time.Duration // of personal tokens and sessions; 0 means DefaultTokenAge, below 0 none
	RequireTOTP Required      // which passwords need a second factor
	Provider    bool          // people can log in at a provider

	ConsoleLife time.Duration // how long a session of the console lasts; 0 means SessionLife
	ConsoleIdle time.Duration // how long a session of the console lasts without a request; 0 means DefaultIdle
}

// Directory identifies callers and knows their rights. It is safe for concurrent use. A change of Accounts applies to
// the next request.
type Directory struct {
	o       Options
	absent  *entry // is checked for unknown apps, so that they take the same time
	nonces  nonces
	started time.Time
	usual   *usual
	compare func(a, b []byte) int // subtle.ConstantTimeCompare; a test counts its calls
	used    lastUse

	mu     sync.RWMutex
	apps   map[string]*entry
	users  map[string]*person
	tokens map[Digest]Token
	ids    map[string]Digest        // the tokens by their ids
	logins map[string][]Token       // sessions with groups, by their users
	groups map[string]Group         // by their names
	gone   map[string]DeletedUser   // deleted users by their names
	joint  map[pair]*gozzard.Rights // rights of users behind apps: computed on demand, cleared by every change

	changed chan struct{} // closed and replaced by every change
}

// entry is an app. It always has maxSecrets digests; those that are not configured are random and match nothing.
type entry struct {
	app      App             // without its keys
	rights   *gozzard.Rights // of all its callers
	digests  [maxSecrets]Digest
	signKeys []string
}

type person struct {
	user   User
	rights *gozzard.Rights
}

// pair is a user behind an app.
type pair struct{ app, user string }

// New makes a Directory that does not change.
func New(c Config) (*Directory, error) { return newDirectory(c, Options{}) }

func newDirectory(c Config, o Options) (*Directory, error) {
	c = c.clone()
	if left := c.carryOver(); len(left) > 0 {
		return nil, &UnresolvedError{Grants: left}
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("cannot read credentials: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}

	if o.MaxTokenAge == 0 {
		o.MaxTokenAge = DefaultTokenAge
	}
	o.ConsoleLife, o.ConsoleIdle = cmp.Or(o.ConsoleLife, SessionLife), cmp.Or(o.ConsoleIdle, DefaultIdle)

	b := &Directory{o: o, absent: newEntry(App{}), started: o.Now(), usual: newUsual(o.Now),
		compare: subtle.ConstantTimeCompare, changed: make(chan struct{}),
		apps: make(map[string]*entry, len(c.Apps)), users: make(map[string]*person, len(c.Users)),
		tokens: make(map[Digest]Token, len(c.Tokens)), groups: make(map[string]Group, len(c.Groups)),
		gone: make(map[string]DeletedUser, len(c.Deleted)), joint: map[pair]*gozzard.Rights{}}
	b.apply(&Change{Apps: c.Apps, Users: c.Users, Groups: c.Groups, Tokens: c.Tokens, Deleted: c.Deleted})
	return b, nil
}

func newEntry(a App) *entry {
	e := &entry{signKeys: slices.Clone(a.SignKeys)}
	a.Secrets, a.Grants, a.SignKeys = slices.Clone(a.Secrets), slices.Clone(a.Grants), nil
	e.app, e.rights = a, a.Rights()
	for i := range e.digests {
		_, _ = rand.Read(e.digests[i][:])
	}
	copy(e.digests[:], a.Secrets)
	return e
}

// apply makes a change take effect.
func (b *Directory) apply(c *Change) {
	now := b.o.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.joint)

	// Remove what is dropped or expired.
	for _, code := range c.DropApps {
		delete(b.apps, code)
	}

	for _, name := range c.DropUsers {
		delete(b.users, name)
	}

	for _, name := range c.Restored {
		delete(b.gone, name)
	}

	maps.DeleteFunc(b.tokens, func(d Digest, t Token) bool {
		return t.expired(now, b.o.MaxTokenAge) || slices.Contains(c.DropTokens, d) || slices.Contains(c.DropUsers, t.User)
	})

	// Add or replace the rest.
	for _, a := range c.Apps {
		b.apps[a.Code] = newEntry(a)
		b.apps[a.Code].rights.Assigned = b.o.Assigned
	}

	for _, u := range c.Users {
		u.Grants = slices.Clone(u.Grants)
		b.users[u.Name] = &person{user: u, rights: b.rights(u.Grants)}
	}

	for _, t := range c.Tokens {
		b.tokens[t.Digest] = t
	}

	for _, d := range c.Deleted {
		b.gone[d.Name] = d
	}

	b.applyGroups(c.Groups)
	b.indexTokens()
	b.used.keep(b.tokens)

	close(b.changed)
	b.changed = make(chan struct{})
}

// Changed is closed by the next change of the accounts. A reader that waits for it learns at once that its session may
// have ended.
func (b *Directory) Changed() <-chan struct{} {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.changed
}

// RightsOf are the present rights of a caller that was identified earlier. A caller whose app or user was removed has
// none.
//
// An app has the rights of its grants. If the user behind it is known here, the caller has only those rights that both
// the app and the user have. A user that is not known here has the rights of the app only if the app is made for
// unknown users, and a deleted user has none.
func (b *Directory) RightsOf(c gozzard.Caller) *gozzard.Rights {
	b.mu.RLock()
	p, known := b.users[c.User]
	_, deleted := b.gone[c.User]
	e := b.apps[c.App]
	rights, cached := b.joint[pair{c.App, c.User}]
	b.mu.RUnlock()

	switch {
	case known && p.user.Disabled, deleted:
		return nil
	case strings.HasPrefix(c.App, gozzard.PersonApp):
		if !known || c.App != gozzard.PersonApp+c.User {
			return nil
		}
		return b.personRights(p, c.Session)
	case e == nil, e.app.Disabled:
		return nil
	case !known && c.User != "" && !e.app.AdmitsUnknown():
		return nil
	case !known:
		return e.rights
	case cached:
		return rights
	}

	return b.join(pair{c.App, c.User})
}

// rights are the rights of grants.
func (b *Directory) rights(grants []gozzard.Grant) *gozzard.Rights {
	return &gozzard.Rights{Grants: grants, Assigned: b.o.Assigned}
}

// maxJoint limits the cache of join: an app on the white list can name every user.
const maxJoint = 10_000

// join computes the rights that both an app and a user have.
func (b *Directory) join(k pair) *gozzard.Rights {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, p := b.apps[k.app], b.users[k.user]
	if e == nil || p == nil { // removed in the meantime
		return nil
	}
	rights := b.rights(Intersect(e.rights.Grants, p.rights.Grants))
	if len(b.joint) >= maxJoint {
		clear(b.joint)
	}
	b.joint[k] = rights
	return rights
}

// refuse counts a refusal and returns it as an error.
func (b *Directory) refuse(rule string, kind gozzard.ErrorKind, format string, args ...any) error {
	b.o.Refused(rule)
	return gozzard.Errorf(kind, format, args...)
}

// aboutKnown says in the audit which app or user an error is about, if there is one of that name. Other names are texts
// of strangers, and sometimes passwords in the wrong field.
func aboutKnown(err error, known bool, name string) error {
	if !known {
		name = "an unknown name"
	}
	return gozzard.Refused(err, gozzard.Refusal{About: name})
}

// CheckApp identifies the app alone. An unknown app and a wrong secret give the same error after the same work.
func (b *Directory) CheckApp(c Credentials) (App, error) {
	app, err := b.checkApp(c)
	if err == nil && app.Disabled {
		return App{}, b.refuse("app_disabled", gozzard.ErrAppForbidden, "app %s is disabled", app.Code)
	}
	return app, err
}

func (b *Directory) checkApp(c Credentials) (App, error) {
	// Reject incomplete credentials.
	if c.App == "" {
		err := b.refuse("app_missing", gozzard.ErrUnauthenticated, "%s: required", c.names().App)
		return App{}, failedAs(err, Failure{None: c.Secret == "" && c.Token == "" && c.User == "" && c.Signature == nil})
	}
	if c.Secret == "" && c.Signature == nil {
		return App{}, b.refuse("app_missing", gozzard.ErrUnauthenticated, "%s: required", c.names().Secret)
	}

	// Find the app.
	b.mu.RLock()
	e, known := b.apps[c.App]
	b.mu.RUnlock()

	if !known {
		e = b.absent
	}
	if c.Secret == "" {
		return b.checkSignature(e, &c)
	}

	// Compare with every secret in constant time.
	given := Hash(c.Secret)
	match := 0
	for i := range e.digests {
		match |= b.compare(given[:], e.digests[i][:])
	}

	if match != 1 || !known {
		err := b.refuse("app_secret", gozzard.ErrUnauthenticated, "%s or %s is wrong", c.names().App, c.names().Secret)
		return App{}, failedAs(aboutKnown(err, known, "app "+c.App), Failure{Name: "app:" + c.App, Known: known})
	}

	return e.app, nil
}

// Check identifies the app and the user. A valid token names the user; without a token, an app on the white list
// may name the user.
func (b *Directory) Check(ctx context.Context, c Credentials) (gozzard.Caller, App, error) {
	app, err := b.CheckApp(c)
	if err != nil {
		return gozzard.Caller{}, App{}, err
	}

	caller := gozzard.Caller{App: app.Code}
	caller.User, caller.Asserted, err = b.user(ctx, &app, &c)
	if err == nil {
		err = b.enabled(caller.User)
	}
	if err == nil {
		err = b.admitted(&app, caller.User)
	}
	if err != nil {
		return gozzard.Caller{}, App{}, b.sentBy(&app, &c, err)
	}

	caller.Rights = b.RightsOf(caller)
	return caller, app, nil
}

// sentBy says in the audit which app sent a request whose user is rejected, and which user it claimed. The app has proven
// itself, so a valid name that it sent is not the text of a stranger.
func (b *Directory) sentBy(app *App, c *Credentials, err error) error {
	r := gozzard.Refusal{App: app.Code}
	t, ours := b.token(c.Token)
	switch {
	case ours:
		r.About = "claimed user " + t.User + " by a token or session"
	case c.User != "" && gozzard.ValidateName(c.User) == nil:
		r.About = "claimed user " + c.User
	case c.Token != "":
		r.About = "claimed a user by an unknown token"
	}

	var f *failed
	if errors.As(err, &f) {
		return failedAs(gozzard.Refused(err, r), f.failure)
	}
	return gozzard.Refused(err, r)
}

// user finds the user that an app acts for.
func (b *Directory) user(ctx context.Context, app *App, c *Credentials) (name string, asserted bool, err error) {
	var unavailable error // of the login service, or why one of our tokens is not accepted here

	if c.Token != "" {
		name, err := b.tokenUser(ctx, app, c)
		if name != "" {
			return name, false, nil
		}
		unavailable = err
	}

	switch {
	case c.User != "" && app.AssertsUsers:
		if err := gozzard.ValidateName(c.User); err != nil {
			return "", false, &gozzard.Error{Kind: gozzard.ErrInvalid,
				Faults: []gozzard.Fault{{Path: c.names().User, Text: err.Error()}}}
		}
		return c.User, true, nil
	case unavailable != nil:
		return "", false, unavailable
	case c.Token != "":
		return "", false, failedAs(b.refuse("user_token", gozzard.ErrUnauthenticated, "%s is not valid",
			c.names().Token), Failure{Name: "token:" + app.Code, Known: true, Proven: true})
	case c.User != "":
		return "", false, b.refuse("user_name", gozzard.ErrUserForbidden,
			"app %s may not name a user by %s: it is not on the white list, send %s", app.Code, c.names().User,
			c.names().Token)
	}

	return "", false, b.refuse("user_missing", gozzard.ErrOperatorRequired, "%s or %s: one is required",
		c.names().Token, c.names().User)
}

// tokenUser is the user of a token: one of ours, or one that the login service knows. An empty name without an error
// means that the token is not valid.
func (b *Directory) tokenUser(ctx context.Context, app *App, c *Credentials) (string, error) {
	if t, ok := b.token(c.Token); ok {
		if !t.through(app.Code) {
			return "", b.refuse("token_kind", gozzard.ErrUnauthenticated,
				"%s is a token that is sent alone, or through another app: make one for app %s", c.names().Token, app.Code)
		}
		return t.User, nil
	}
	if b.o.Verify == nil {
		return "", nil
	}

	name, err := b.o.Verify.Verify(ctx, c.Token)
	if err != nil || name == "" {
		return "", err
	}
	if err := gozzard.ValidateName(name); err != nil {
		return "", &gozzard.Error{Kind: gozzard.ErrUnavailable,
			Message: "the login service returned a name that cannot be used", Cause: err}
	}

	return name, nil
}

// token finds one of our tokens by its digest. The time of the lookup depends on the digest only, so it reveals
// nothing that the sender of a guess does not know.
func (b *Directory) token(secret string) (Token, bool) {
	if secret == "" {
		return Token{}, false
	}
	d := Hash(secret)
	b.mu.RLock()
	t, ok := b.tokens[d]
	b.mu.RUnlock()
	return t, ok && !t.expired(b.o.Now(), b.o.MaxTokenAge)
}

// enabled rejects a user that is disabled.
func (b *Directory) enabled(name string) error {
	b.mu.RLock()
	p := b.users[name]
	b.mu.RUnlock()
	if p != nil && p.user.Disabled {
		return b.refuse("user_disabled", gozzard.ErrUserForbidden, "user %s is disabled", name)
	}
	return nil
}

// CheckPerson identifies a user without an app, by one of our tokens.
func (b *Directory) CheckPerson(token string) (gozzard.Caller, error) {
	t, ok := b.token(token)
	if !ok {
		return gozzard.Caller{}, b.refuse("user_token", gozzard.ErrUnauthenticated, "the token is not valid")
	}
	if t.Kind.console() {
		return gozzard.Caller{}, b.refuse("token_kind", gozzard.ErrUnauthenticated,
			"this is a session of the console: it is valid in its cookie only")
	}
	if !t.alone() {
		return gozzard.Caller{}, b.refuse("token_kind", gozzard.ErrUnauthenticated,
			"this token is for app %s: it is not valid alone", t.App)
	}
	if err := b.enabled(t.User); err != nil {
		return gozzard.Caller{}, err
	}
	caller := gozzard.Caller{App: gozzard.PersonApp + t.User, User: t.User, Session: t.ID}
	caller.Rights = b.RightsOf(caller)
	return caller, nil
}

// Alone reports whether a caller is a user without an app (CheckPerson).
func Alone(c gozzard.Caller) bool { return c.Alone() }
