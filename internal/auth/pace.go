package auth

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

// failureAs is a failed login of a user.
func (a *Accounts) failureAs(name string) Failure {
	_, known := a.user(name)
	return Failure{Name: "user:" + name, Known: known}
}

// wrongPassword is the error of a failed login. It is the same whether the user exists or not.
func (a *Accounts) wrongPassword(name string) error {
	f := a.failureAs(name)
	err := a.directory.refuse("password", gozzard.ErrUnauthenticated, "user or password is wrong")
	return failedAs(aboutKnown(err, f.Known, "user "+name), f)
}

// checkPaced compares a password with the stored hash at the pace that the gate of the request allows. A name that no
// user has is not hashed while its address is locked. It then waits as long as a hash takes, so that the time of the
// answer does not show which names exist.
func (a *Accounts) checkPaced(ctx context.Context, name, recorded, text string) (bool, error) {
	if g := gateOf(ctx); g != nil {
		skip, err := g.Password(ctx, a.failureAs(name))
		if err != nil {
			return false, err
		}
		if skip {
			return false, a.hasher.pretend(ctx)
		}
	}
	return a.hasher.check(ctx, name, recorded, text)
}

// pretend waits as long as the last hash took.
func (h *hasher) pretend(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(h.took.Load())):
		return nil
	}
}
