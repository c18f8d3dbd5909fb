package auth

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// The limits of users, sessions and tokens.
const (
	SessionLife    = 12 * time.Hour
	MaxTokenLife   = 366 * 24 * time.Hour // the highest MaxTokenAge
	maxUsers       = 100_000
	maxUserTokens  = 50
	maxUserSession = 20

	// DefaultTokenAge is the MaxTokenAge of a server that sets none.
	DefaultTokenAge = 90 * 24 * time.Hour
)

// Users lists the users in the order of their names, without passwords.
func (a *Accounts) Users() []User {
	a.directory.mu.RLock()
	defer a.directory.mu.RUnlock()
	list := make([]User, 0, len(a.directory.users))
	for _, p := range a.directory.users {
		u := p.user
		u.Password, u.Second = "", nil
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

// HasSecond reports whether logins of a user with a password need a code.
func (a *Accounts) HasSecond(name string) bool {
	u, _ := a.user(name)
	return u.HasSecond()
}

// CreateUser makes a user. A user without a password logs in at the login provider or uses a token. The name of a
// deleted user is rejected.
func (a *Accounts) CreateUser(ctx context.Context, by gozzard.Caller, u User, password string) error {
	return a.createUser(ctx, by, u, password, false)
}

// CreateUserAgain is CreateUser for a name that a deleted user had.
func (a *Accounts) CreateUserAgain(ctx context.Context, by gozzard.Caller, u User, password string) error {
	return a.createUser(ctx, by, u, password, true)
}

func (a *Accounts) createUser(ctx context.Context, by gozzard.Caller, u User, password string, again bool) error {
	if u.Password = ""; password != "" {
		var err error
		if u.Password, err = a.hash(ctx, password); err != nil {
			return err
		}
	}

	u.Grants = scoped(u.Grants)
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

	change := Change{By: by, Act: "user:create " + u.Name, Users: []User{u}}
	if a.directory.deleted(u.Name) {
		if !again {
			return gozzard.Errorf(gozzard.ErrConflict, "a user %q was deleted, and its name may be in use elsewhere: "+
				"take another name, or say that the name is used again", u.Name)
		}
		change.Act, change.Restored = "user:create-again "+u.Name, []string{u.Name}
	}

	return a.change(ctx, change)
}

// Disable disables a user, which ends all sessions and tokens of the user, or enables the user again.
func (a *Accounts) Disable(ctx context.Context, by gozzard.Caller, name string, disabled bool) error {
	if !disabled {
		return a.changeUser(ctx, by, name, "user:enable "+name, func(u *User) error {
			u.Disabled = false
			return nil
		})
	}

	if err := notYourself(by, name); err != nil {
		return err
	}
	return a.endUser(ctx, by, name, "user:disable "+name, func(u *User) error {
		u.Disabled = true
		return nil
	})
}

// ForgetSubject removes the user's id at the login provider and ends all sessions and tokens of the user. The next login
// there sets it again.
func (a *Accounts) ForgetSubject(ctx context.Context, by gozzard.Caller, name string) error {
	return a.endUser(ctx, by, name, "user:forget-subject "+name, func(u *User) error {
		u.Subject = ""
		return nil
	})
}

// notYourself rejects a change by which a caller would lock itself out.
func notYourself(by gozzard.Caller, name string) error {
	if by.User == name {
		return gozzard.Errorf(gozzard.ErrConflict, "this request itself comes from user %s: another admin has to do it", name)
	}
	return nil
}

// SetPassword sets the password of a user and ends all sessions and tokens of the user; "" removes the password.
func (a *Accounts) SetPassword(ctx context.Context, by gozzard.Caller, name, password string) error {
	hashed := ""

	if password != "" {
		var err error
		if hashed, err = a.hash(ctx, password); err != nil {
			return err
		}
	}

	return a.endUser(ctx, by, name, "user:password "+name, func(u *User) error {
		u.Password = hashed
		return nil
	})
}

// DropUser removes a user and all tokens of that user. The name stays known as deleted.
func (a *Accounts) DropUser(ctx context.Context, by gozzard.Caller, name string) error {
	if err := notYourself(by, name); err != nil {
		return err
	}

	a.writing.Lock()
	defer a.writing.Unlock()
	if _, ok := a.user(name); !ok {
		return notFound("user", name)
	}

	gone := DeletedUser{Name: name, At: a.now().UTC().Truncate(time.Millisecond)}
	return a.change(ctx, Change{By: by, Act: "user:delete " + name, DropUsers: []string{name},
		Deleted: []DeletedUser{gone}})
}

// endUser changes a user and ends all sessions and tokens of the user.
func (a *Accounts) endUser(ctx context.Context, by gozzard.Caller, name, act string, f func(*User) error) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	u, ok := a.user(name)
	if !ok {
		return notFound("user", name)
	}
	if err := f(&u); err != nil {
		return err
	}
	return a.change(ctx, Change{By: by, Act: act, Users: []User{u},
		DropTokens: a.digests(name, func(*Token) bool { return true })})
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
