package auth

import (
	"context"
	"crypto/subtle"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// The limits of users, sessions and tokens.
const (
	SessionLife    = 12 * time.Hour
	MaxTokenLife   = 366 * 24 * time.Hour
	maxUsers       = 100_000
	maxUserTokens  = 50
	maxUserSession = 20
)

// Users lists the users in the order of their names, without passwords.
func (a *Accounts) Users() []User {
	a.directory.mu.RLock()
	defer a.directory.mu.RUnlock()
	list := make([]User, 0, len(a.directory.users))
	for _, p := range a.directory.users {
		u := p.user
		u.Password = ""
		list = append(list, u)
	}
	slices.SortFunc(list, func(x, y User) int { return strings.Compare(x.Name, y.Name) })
	return list
}

func (a *Accounts) user(name string) (User, bool) {
	a.directory.mu.RLock()
	defer a.directory.mu.RUnlock()
	p := a.directory.users[name]
	if p == nil {
		return User{}, false
	}
	return p.user, true
}

// HasPassword reports whether a user can log in with a password.
func (a *Accounts) HasPassword(name string) bool {
	u, _ := a.user(name)
	return u.Password != ""
}

// CreateUser makes a user. A user without a password logs in at the login provider or uses a token.
func (a *Accounts) CreateUser(ctx context.Context, by gozzard.Caller, u User, password string) error {
	if u.Password = ""; password != "" {
		var err error
		if u.Password, err = a.hash(ctx, password); err != nil {
			return err
		}
	}

	if err := u.validate(); err != nil {
		return gozzard.Errorf(gozzard.ErrInvalid, "%v", err)
	}

	a.writing.Lock()
	defer a.writing.Unlock()

	if _, ok := a.user(u.Name); ok {
		return gozzard.Errorf(gozzard.ErrConflict, "user %q already exists", u.Name)
	}
	if len(a.Users()) >= maxUsers {
		return gozzard.Errorf(gozzard.ErrConflict, "the limit of %d users is reached", maxUsers)
	}

	return a.change(ctx, Change{By: by, Act: "user:create " + u.Name, Users: []User{u}})
}

// Disable disables a user or enables it again. The tokens of a disabled user stay, but are rejected.
func (a *Accounts) Disable(ctx context.Context, by gozzard.Caller, name string, disabled bool) error {
	act := "user:enable "
	if disabled {
		act = "user:disable "
	}
	return a.changeUser(ctx, by, name, act+name, func(u *User) error {
		u.Disabled = disabled
		return nil
	})
}

// ForgetSubject removes the user's id at the login provider. The next login there sets it again.
func (a *Accounts) ForgetSubject(ctx context.Context, by gozzard.Caller, name string) error {
	return a.changeUser(ctx, by, name, "user:forget-subject "+name, func(u *User) error {
		u.Subject = ""
		return nil
	})
}

// SetPassword sets the password of a user and ends the user's sessions; "" removes the password.
func (a *Accounts) SetPassword(ctx context.Context, by gozzard.Caller, name, password string) error {
	hashed := ""

	if password != "" {
		var err error
		if hashed, err = a.hash(ctx, password); err != nil {
			return err
		}
	}

	a.writing.Lock()
	defer a.writing.Unlock()
	u, ok := a.user(name)
	if !ok {
		return notFound("user", name)
	}

	u.Password = hashed
	var drop []Digest
	for _, t := range a.Tokens(name) {
		if t.Session {
			drop = append(drop, t.Digest)
		}
	}

	return a.change(ctx, Change{By: by, Act: "user:password " + name, Users: []User{u}, DropTokens: drop})
}

// DropUser removes a user and all tokens of that user.
func (a *Accounts) DropUser(ctx context.Context, by gozzard.Caller, name string) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	if _, ok := a.user(name); !ok {
		return notFound("user", name)
	}
	return a.change(ctx, Change{By: by, Act: "user:delete " + name, DropUsers: []string{name}})
}

func (a *Accounts) changeUser(ctx context.Context, by gozzard.Caller, name, act string, f func(*User) error) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	u, ok := a.user(name)
	if !ok {
		return notFound("user", name)
	}
	if err := f(&u); err != nil {
		return err
	}
	return a.change(ctx, Change{By: by, Act: act, Users: []User{u}})
}

// Tokens lists the tokens of a user, the newest first.
func (a *Accounts) Tokens(user string) []Token {
	now := a.now()
	a.directory.mu.RLock()
	defer a.directory.mu.RUnlock()
	list := []Token{}
	for _, t := range a.directory.tokens {
		if t.User == user && !t.expired(now) {
			list = append(list, t)
		}
	}

	slices.SortFunc(list, func(x, y Token) int {
		if c := y.Created.Compare(x.Created); c != 0 {
			return c
		}
		return strings.Compare(x.ID, y.ID)
	})

	return list
}

// CreateToken makes a personal token and returns its secret, which cannot be read again.
func (a *Accounts) CreateToken(ctx context.Context, by gozzard.Caller, user, note string,
	life time.Duration) (secret string, t Token, err error) {
	if life <= 0 || life > MaxTokenLife {
		return "", t, gozzard.Errorf(gozzard.ErrInvalid, "a token is valid for at most %d days",
			int(MaxTokenLife.Hours()/24))
	}

	if len(note) > maxNoteBytes {
		return "", t, gozzard.Errorf(gozzard.ErrInvalid, "a note has at most %d bytes", maxNoteBytes)
	}

	a.writing.Lock()
	defer a.writing.Unlock()

	if _, ok := a.user(user); !ok {
		return "", t, notFound("user", user)
	}

	// Limit the number of tokens.
	made := 0
	for _, have := range a.Tokens(user) {
		if !have.Session {
			made++
		}
	}

	if made >= maxUserTokens {
		return "", t, gozzard.Errorf(gozzard.ErrConflict, "the limit of %d tokens for user %s is reached: revoke one",
			maxUserTokens, user)
	}

	return a.putToken(ctx, by, "token:create "+user, Token{User: user, Note: note}, life, nil)
}

// tokenPrefix lets people and scanners recognise a leaked token.
const tokenPrefix = "gzp_"

// putToken completes and records a token. The caller holds writing.
func (a *Accounts) putToken(ctx context.Context, by gozzard.Caller, act string, t Token, life time.Duration,
	drop []Digest) (string, Token, error) {
	secret := tokenPrefix + NewSecret()
	t.ID, t.Digest, t.Created = newID(), Hash(secret), a.now().UTC().Truncate(time.Millisecond)
	t.Expires = t.Created.Add(life)
	if err := a.change(ctx, Change{By: by, Act: act + " " + t.ID, Tokens: []Token{t}, DropTokens: drop}); err != nil {
		return "", Token{}, err
	}
	return secret, t, nil
}

// DropToken revokes a token of a user by its id.
func (a *Accounts) DropToken(ctx context.Context, by gozzard.Caller, user, id string) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	list := a.Tokens(user)
	i := slices.IndexFunc(list, func(t Token) bool { return t.ID == id })
	if i < 0 {
		return notFound("token", id)
	}
	return a.change(ctx, Change{By: by, Act: "token:revoke " + user + " " + id, DropTokens: []Digest{list[i].Digest}})
}

// Login identifies a user by password and opens a session. An unknown user and a wrong password give the same error
// after the same work.
func (a *Accounts) Login(ctx context.Context, name, password string) (secret string, t Token, err error) {
	u, known := a.user(name)
	ok, err := a.hasher.check(ctx, u.Password, password)
	if err != nil {
		a.directory.o.Refused("login_flood")
		return "", t, err
	}
	if !ok || !known || u.Disabled {
		err := a.directory.refuse("password", gozzard.ErrUnauthenticated, "user or password is wrong")
		return "", t, aboutKnown(err, known, "user "+name)
	}
	return a.session(ctx, name, "password", func(now User) bool { return now.Password == u.Password })
}

// LoginSubject opens a session for a user that the login provider has identified. The first login stores the user's
// id at the provider. If the provider gives the same name to another person later, that person cannot log in.
func (a *Accounts) LoginSubject(ctx context.Context, name, subject string) (secret string, t Token, err error) {
	u, known := a.user(name)
	same := u.Subject == "" || subtle.ConstantTimeCompare([]byte(u.Subject), []byte(subject)) == 1
	if !known || u.Disabled || subject == "" || len(subject) > maxSubject || !same {
		return "", t, a.directory.refuse("login_provider", gozzard.ErrUserForbidden,
			"the login provider's user is not known here")
	}

	if u.Subject == "" {
		err := a.changeUser(ctx, gozzard.Caller{App: personApp + name, User: name}, name, "user:subject "+name,
			func(u *User) error {
				if u.Subject != "" && u.Subject != subject {
					return a.directory.refuse("login_provider", gozzard.ErrUserForbidden,
						"the login provider's user is not known here")
				}
				u.Subject = subject
				return nil
			})
		if err != nil {
			return "", t, err
		}
	}

	return a.session(ctx, name, "provider", func(now User) bool { return now.Subject == subject })
}

// session opens a session, unless the user was changed since it was identified.
func (a *Accounts) session(ctx context.Context, name, how string, still func(User) bool) (secret string, t Token,
	err error) {
	a.writing.Lock()
	defer a.writing.Unlock()

	if u, ok := a.user(name); !ok || u.Disabled || !still(u) {
		return "", t, a.directory.refuse("password", gozzard.ErrUnauthenticated, "user or password is wrong")
	}

	var drop []Digest
	open := 0
	for _, have := range a.Tokens(name) { // the newest first
		if have.Session {
			if open++; open >= maxUserSession {
				drop = append(drop, have.Digest)
			}
		}
	}

	by := gozzard.Caller{App: personApp + name, User: name}
	return a.putToken(ctx, by, "user:login "+name, Token{User: name, Session: true, Note: "login by " + how},
		SessionLife, drop)
}

// Logout revokes the token that a user came with.
func (a *Accounts) Logout(ctx context.Context, secret string) error {
	t, ok := a.directory.token(secret)
	if !ok {
		return notFound("token", "")
	}
	return a.DropToken(ctx, gozzard.Caller{App: personApp + t.User, User: t.User}, t.User, t.ID)
}

// CheckPassword checks the password again, for a change that a token alone does not allow.
func (a *Accounts) CheckPassword(ctx context.Context, name, password string) error {
	u, _ := a.user(name)
	ok, err := a.hasher.check(ctx, u.Password, password)
	if err != nil {
		return err
	}
	if !ok {
		return a.directory.refuse("password", gozzard.ErrUnauthenticated, "user or password is wrong")
	}
	return nil
}
