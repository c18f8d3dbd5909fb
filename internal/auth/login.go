package auth

import (
	"context"
	"crypto/subtle"

	"github.com/gozzard/gozzard"
)

// Login opens a session for a user that has no second factor.
func (a *Accounts) Login(ctx context.Context, name, password string) (secret string, t Token, err error) {
	return a.LoginWith(ctx, name, Proof{Password: password})
}

// LoginWith identifies a user by password and code, and opens a session. An unknown user and a wrong password give the
// same error after the same work.
func (a *Accounts) LoginWith(ctx context.Context, name string, p Proof) (secret string, t Token, err error) {
	return a.login(ctx, p, Token{User: name, Kind: KindPassword, Note: "login by password"})
}

func (a *Accounts) login(ctx context.Context, p Proof, as Token) (secret string, t Token, err error) {
	name := as.User
	err = a.proven(ctx, name, p, func(u User) error {
		if a.directory.o.RequireTOTP.requires(&u) && !u.HasSecond() {
			return a.directory.refuse("second_factor", gozzard.ErrUserForbidden,
				"this server requires a second factor of user %s: make one with \"gozzard user totp enrol %[1]s\"", name)
		}
		var err error
		secret, t, err = a.session(ctx, as, &u)
		return err
	})
	if err != nil {
		return "", Token{}, err
	}
	return secret, t, nil
}

// LoginSubject opens a session for a user that the login provider has identified, with the groups that it named. The
// first login stores the user's id at the provider. If the provider gives the same name to another person later, that
// person cannot log in.
func (a *Accounts) LoginSubject(ctx context.Context, name, subject string, groups ...string) (secret string, t Token,
	err error) {
	return a.loginSubject(ctx, subject, groups, Token{User: name, Kind: KindProvider, Note: "login by provider"})
}

func (a *Accounts) loginSubject(ctx context.Context, subject string, groups []string, as Token) (secret string, t Token,
	err error) {
	a.writing.Lock()
	defer a.writing.Unlock()

	name := as.User
	u, known := a.user(name)
	same := u.Subject == "" || subtle.ConstantTimeCompare([]byte(u.Subject), []byte(subject)) == 1
	if !known || u.Disabled || subject == "" || len(subject) > maxSubject || !same {
		return "", t, a.directory.refuse("login_provider", gozzard.ErrUserForbidden,
			"the login provider's user is not known here")
	}

	if u.Subject == "" {
		u.Subject = subject
		err := a.change(ctx, Change{By: themselves(name), Act: "user:subject " + name, Users: []User{u}})
		if err != nil {
			return "", t, err
		}
	}

	as.Groups = a.loginGroups(groups)
	return a.session(ctx, as, nil)
}

// session opens a session, and records the user that was changed by the login. The caller holds writing.
func (a *Accounts) session(ctx context.Context, t Token, changed *User) (string, Token, error) {
	with := Change{}
	if changed != nil && changed.HasSecond() {
		with.Users = []User{*changed}
	}

	open := 0
	for _, have := range a.Tokens(t.User) { // the newest first
		if have.Session {
			if open++; open >= maxUserSession {
				with.DropTokens = append(with.DropTokens, have.Digest)
			}
		}
	}

	t.Session = true
	life := SessionLife
	if t.Kind.console() {
		life = a.directory.o.ConsoleLife
	}
	if len(t.Groups) > 0 { // the provider names the groups of a person again at every login
		life = min(life, SessionLife)
	}
	if left := t.Expires.Sub(a.now()); !t.Expires.IsZero() && left < life { // it ends with what it was made from
		life = left
	}
	return a.putToken(ctx, t.opener(), "user:login "+t.User, t, life, with)
}

// Logout revokes the token that a user came with.
func (a *Accounts) Logout(ctx context.Context, secret string) error {
	t, ok := a.directory.token(secret)
	if !ok {
		return notFound("token", "")
	}
	return a.DropToken(ctx, themselves(t.User), t.User, t.ID)
}
