package auth

import (
	"context"
	"crypto/subtle"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// How long and how many.
const (
	SessionLife    = 12 * time.Hour
	MaxTokenLife   = 366 * 24 * time.Hour
	maxUsers       = 100_000
	maxUserTokens  = 50
	maxUserSession = 20
)

// Users lists the people by their names, without passwords.
func (a *Accounts) Users() []User {
	a.book.mu.RLock()
	defer a.book.mu.RUnlock()
	list := make([]User, 0, len(a.book.users))
	for _, p := range a.book.users {
		u := p.user
		u.Password = ""
		list = append(list, u)
	}
	slices.SortFunc(list, func(x, y User) int { return strings.Compare(x.Name, y.Name) })
	return list
}

func (a *Accounts) user(name string) (User, bool) {
	a.book.mu.RLock()
	defer a.book.mu.RUnlock()
	p := a.book.users[name]
	if p == nil {
		return User{}, false
	}
	return p.user, true
}

// HasPassword tells whether a person can log in with a password.
func (a *Accounts) HasPassword(name string) bool {
	u, _ := a.user(name)
	return u.Password != ""
}

// CreateUser makes a person known. Without a password he comes by the login provider or with a token.
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
		return gozzard.Errorf(gozzard.ErrConflict, "user %q is there already", u.Name)
	}
	if len(a.Users()) >= maxUsers {
		return gozzard.Errorf(gozzard.ErrConflict, "there are %d users, which is the most", maxUsers)
	}

	return a.change(ctx, Change{By: by, Act: "user:create " + u.Name, Users: []User{u}})
}

// Disable shuts a person out, or lets him in again. His tokens stay, and are worth nothing meanwhile.
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

// ForgetSubject lets the next login at the provider decide who the person is there.
func (a *Accounts) ForgetSubject(ctx context.Context, by gozzard.Caller, name string) error {
	return a.changeUser(ctx, by, name, "user:forget-subject "+name, func(u *User) error {
		u.Subject = ""
		return nil
	})
}

// SetPassword gives a person a password and ends his sessions; "" takes the password away.
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

// DropUser makes a person unknown, with all his tokens.
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

// Tokens lists the tokens of a person, the newest first.
func (a *Accounts) Tokens(user string) []Token {
	now := a.now()
	a.book.mu.RLock()
	defer a.book.mu.RUnlock()
	list := []Token{}
	for _, t := range a.book.tokens {
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

// CreateToken makes a personal token and gives its secret, which nobody can be told again.
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

	made := 0
	for _, have := range a.Tokens(user) {
		if !have.Session {
			made++
		}
	}

	if made >= maxUserTokens {
		return "", t, gozzard.Errorf(gozzard.ErrConflict, "user %s has %d tokens, which is the most: revoke one",
			user, maxUserTokens)
	}

	return a.putToken(ctx, by, "token:create "+user, Token{User: user, Note: note}, life, nil)
}

// tokenPrefix lets people and scanners see what a leaked text is.
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

// DropToken revokes a token of a person by its id.
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

// Login proves a person by password and opens a session. Unknown people and wrong passwords give the same error
// after the same work.
func (a *Accounts) Login(ctx context.Context, name, password string) (secret string, t Token, err error) {
	u, known := a.user(name)
	ok, err := a.kiln.check(ctx, u.Password, password)
	if err != nil {
		a.book.o.Refused("login_flood")
		return "", t, err
	}
	if !ok || !known || u.Disabled {
		return "", t, a.book.refuse("password", gozzard.ErrUnauthenticated, "user or password is wrong")
	}
	return a.session(ctx, name, "password", func(now User) bool { return now.Password == u.Password })
}

// LoginSubject opens a session for a person whom the login provider has proven. The first login fixes who that is
// there: a name that is given to somebody else later opens nothing.
func (a *Accounts) LoginSubject(ctx context.Context, name, subject string) (secret string, t Token, err error) {
	u, known := a.user(name)
	same := u.Subject == "" || subtle.ConstantTimeCompare([]byte(u.Subject), []byte(subject)) == 1
	if !known || u.Disabled || subject == "" || len(subject) > maxSubject || !same {
		return "", t, a.book.refuse("login_provider", gozzard.ErrUserForbidden,
			"the login provider's user is not known here")
	}

	if u.Subject == "" {
		err := a.changeUser(ctx, gozzard.Caller{App: personApp + name, User: name}, name, "user:subject "+name,
			func(u *User) error {
				if u.Subject != "" && u.Subject != subject {
					return a.book.refuse("login_provider", gozzard.ErrUserForbidden,
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

// session opens one, unless the person has changed since he was proven.
func (a *Accounts) session(ctx context.Context, name, how string, still func(User) bool) (secret string, t Token,
	err error) {
	a.writing.Lock()
	defer a.writing.Unlock()

	if u, ok := a.user(name); !ok || u.Disabled || !still(u) {
		return "", t, a.book.refuse("password", gozzard.ErrUnauthenticated, "user or password is wrong")
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

// Logout ends the token that a person came with.
func (a *Accounts) Logout(ctx context.Context, secret string) error {
	t, ok := a.book.token(secret)
	if !ok {
		return notFound("token", "")
	}
	return a.DropToken(ctx, gozzard.Caller{App: personApp + t.User, User: t.User}, t.User, t.ID)
}

// CheckPassword proves a person again, for a change that a token alone does not allow.
func (a *Accounts) CheckPassword(ctx context.Context, name, password string) error {
	u, _ := a.user(name)
	ok, err := a.kiln.check(ctx, u.Password, password)
	if err != nil {
		return err
	}
	if !ok {
		return a.book.refuse("password", gozzard.ErrUnauthenticated, "user or password is wrong")
	}
	return nil
}
