package auth

import (
	"context"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// Proof is what a user proves itself with: the password, and a code if the user has a second factor.
type Proof struct {
	Password string
	Code     string
}

// Required says which users with a password need a second factor.
type Required string

// The values of Required.
const (
	RequiredNone   Required = ""
	RequiredAdmins Required = "admins" // those whose own grants are everything
	RequiredAll    Required = "all"
)

// Valid reports whether the value exists.
func (r Required) Valid() bool { return r == RequiredNone || r == RequiredAdmins || r == RequiredAll }

// FreshLogin is how old a login at the provider may be to count as a proof.
const FreshLogin = 10 * time.Minute

// requires reports whether a user needs a second factor to log in with a password.
func (r Required) requires(u *User) bool {
	rights := gozzard.Rights{Grants: u.Grants}
	return r == RequiredAll || r == RequiredAdmins && rights.All()
}

// proven checks the proof of a user, and calls f while no other change happens. f gets the user without the code that
// was used, and records it.
func (a *Accounts) proven(ctx context.Context, name string, p Proof, f func(u User) error) error {
	return a.withPassword(ctx, name, p.Password, func(u User) (err error) {
		if u.HasSecond() { // check the code, and use it up
			if u.Second, err = a.useCode(&u, p.Code); err != nil {
				return err
			}
		}

		return f(u)
	})
}

// withPassword checks the password of a user, and calls f while no other change happens. An unknown user and a wrong
// password give the same error after the same work.
func (a *Accounts) withPassword(ctx context.Context, name, password string, f func(u User) error) error {
	// Check the password.
	before, known := a.user(name)
	ok, err := a.checkPaced(ctx, name, before.Password, password)
	if err != nil {
		a.directory.o.Refused("login_flood")
		return err
	}
	if !ok || !known || before.Disabled {
		a.hasher.failed(ctx)
		return a.wrongPassword(name)
	}

	// Check that it is still the password.
	a.writing.Lock()
	defer a.writing.Unlock()
	u, known := a.user(name)
	if !known || u.Disabled || u.Password != before.Password {
		return a.wrongPassword(name)
	}

	// Remember where the user comes from.
	if err := f(u); err != nil {
		return err
	}
	a.directory.usual.remember(name, sourceOf(ctx).network)
	return nil
}

// useCode checks a code of a user whose password is right.
func (a *Accounts) useCode(u *User, code string) (*SecondFactor, error) {
	now := a.now()
	if code == "" {
		return nil, a.directory.refuse("second_factor", gozzard.ErrCodeRequired,
			"a code of the second factor is required")
	}
	if !a.wrong.admits(u.Name, now) {
		return nil, a.directory.refuse("second_factor", gozzard.ErrRateLimited,
			"too many wrong codes of user %s: wait %d minutes", u.Name, int(wrongWindow.Minutes()))
	}

	left, ok := u.Second.use(code, now)
	if !ok {
		a.wrong.count(u.Name, now)
		return nil, a.directory.refuse("second_factor", gozzard.ErrUnauthenticated,
			"the code of the second factor is wrong, or was used before")
	}

	a.wrong.forget(u.Name)
	return left, nil
}

// The number of wrong codes of one user in a time. Only a caller with the right password is counted.
const (
	wrongCodes  = 10
	wrongWindow = 10 * time.Minute
)

// wrongCounts counts wrong codes by their users.
type wrongCounts struct {
	mu    sync.Mutex
	users map[string]wrongCount
}

type wrongCount struct {
	n     int
	since time.Time
}

func (w *wrongCounts) admits(user string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.users[user]
	return c.n < wrongCodes || now.Sub(c.since) >= wrongWindow
}

func (w *wrongCounts) count(user string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users == nil {
		w.users = map[string]wrongCount{}
	}
	c := w.users[user]
	if now.Sub(c.since) >= wrongWindow {
		c = wrongCount{since: now}
	}
	c.n++
	w.users[user] = c
}

func (w *wrongCounts) forget(user string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.users, user)
}

// ProveAgain checks that the person behind a session or a token is still there, for a change that a stolen session must
// not make: by password and code, or by a login that is not older than FreshLogin, at the provider or by the link of an
// app. The link of a person proves nothing: a token opened it, and a stolen token must not make another one.
func (a *Accounts) ProveAgain(ctx context.Context, secret string, p Proof) error {
	t, ok := a.directory.token(secret)
	if !ok {
		return a.directory.refuse("user_token", gozzard.ErrUnauthenticated, "the token is not valid")
	}
	ofApp := t.Kind == KindConsoleLink && t.App != ""
	fresh := t.Kind == KindProvider || t.Kind == KindConsoleProvider || ofApp
	if fresh && a.now().Sub(t.Created) < FreshLogin {
		return nil
	}

	if ofApp {
		return a.directory.refuse("console_link", gozzard.ErrUnauthenticated,
			"this needs a session of the console that is at most %d minutes old: open a new link with \"gozzard console\"",
			int(FreshLogin.Minutes()))
	}

	if !a.HasPassword(t.User) {
		return a.directory.refuse("login_provider", gozzard.ErrUnauthenticated,
			"this needs a login at the provider that is at most %d minutes old: log in again at /login/oidc",
			int(FreshLogin.Minutes()))
	}
	if p.Password == "" {
		return a.directory.refuse("password", gozzard.ErrUnauthenticated, "this needs the password of user %s", t.User)
	}

	return a.Prove(ctx, t.User, p)
}

// Prove checks password and code of a user, and uses the code up.
func (a *Accounts) Prove(ctx context.Context, name string, p Proof) error {
	return a.proven(ctx, name, p, func(u User) error {
		if !u.HasSecond() {
			return nil
		}
		return a.change(ctx, Change{By: themselves(name), Act: "user:proof " + name, Users: []User{u}})
	})
}

// EnrolSecond makes a second factor of a user. It counts from ConfirmSecond on. A user that has one needs a code of it.
func (a *Accounts) EnrolSecond(ctx context.Context, name string, p Proof) (e Enrolment, err error) {
	err = a.proven(ctx, name, p, func(u User) error {
		u.Second, e = newEnrolment(name, u.Second)
		return a.change(ctx, Change{By: themselves(name), Act: "user:totp-enrol " + name, Users: []User{u}})
	})
	if err != nil {
		return Enrolment{}, err
	}
	return e, nil
}

// ConfirmSecond makes the second factor of EnrolSecond count. The code is of the new factor. Sessions end, because they
// were opened without it.
func (a *Accounts) ConfirmSecond(ctx context.Context, name string, p Proof) error {
	return a.withPassword(ctx, name, p.Password, func(u User) error { return a.confirmSecond(ctx, u, p.Code) })
}

// confirmSecond is ConfirmSecond for a user whose password is right. The caller holds writing.
func (a *Accounts) confirmSecond(ctx context.Context, u User, code string) error {
	name := u.Name
	if u.Second == nil || len(u.Second.NextSecret) == 0 {
		return gozzard.Errorf(gozzard.ErrConflict, "user %s has no second factor that waits for a confirmation", name)
	}
	if !a.wrong.admits(name, a.now()) {
		return a.directory.refuse("second_factor", gozzard.ErrRateLimited, "too many wrong codes of user %s: wait %d minutes",
			name, int(wrongWindow.Minutes()))
	}

	second, ok := u.Second.confirm(code, a.now())
	if !ok {
		a.wrong.count(name, a.now())
		return a.directory.refuse("second_factor", gozzard.ErrUnauthenticated,
			"the code of the second factor is wrong: compare the clock of the device with the server's")
	}

	u.Second = second
	return a.change(ctx, Change{By: themselves(name), Act: "user:totp " + name, Users: []User{u},
		DropTokens: a.digests(name, func(t *Token) bool { return t.Session })})
}

// DropSecond removes the second factor of a user, for a lost device. It ends the user's sessions and tokens.
func (a *Accounts) DropSecond(ctx context.Context, by gozzard.Caller, name string) error {
	return a.endUser(ctx, by, name, "user:totp-remove "+name, func(u *User) error {
		if u.Second == nil {
			return notFound("second factor of user", name)
		}
		u.Second = nil
		return nil
	})
}

// themselves is a user that changes its own login.
func themselves(name string) gozzard.Caller {
	return gozzard.Caller{App: gozzard.PersonApp + name, User: name}
}
