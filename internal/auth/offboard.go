package auth

import (
	"context"
	"slices"

	"github.com/gozzard/gozzard"
)

// Ended is what Offboard ended.
type Ended struct {
	Sessions int
	Tokens   int
	Grants   int
}

// Offboard ends everything that a user has here: sessions, tokens, grants, the password and the second factor. The user
// stays recorded as disabled, so the name gets nothing.
func (a *Accounts) Offboard(ctx context.Context, by gozzard.Caller, name string) (e Ended, err error) {
	if err := notYourself(by, name); err != nil {
		return e, err
	}

	a.writing.Lock()
	defer a.writing.Unlock()
	u, ok := a.user(name)
	if !ok {
		return e, notFound("user", name)
	}

	e.Grants = len(u.Grants)
	var drop []Digest
	for _, t := range a.Tokens(name) {
		drop = append(drop, t.Digest)
		if t.Session {
			e.Sessions++
		} else {
			e.Tokens++
		}
	}

	u.Disabled, u.Password, u.Second, u.Grants = true, "", nil, nil
	return e, a.change(ctx, Change{By: by, Act: "user:offboard " + name, Users: []User{u}, DropTokens: drop})
}

// SecretsSeen lists the apps of which a user was shown a secret that is still valid, and those of which it was not
// recorded which user saw one.
func (a *Accounts) SecretsSeen(name string) (seen, unrecorded []string) {
	for _, app := range a.Apps() {
		switch {
		case slices.Contains(app.KnownBy, name):
			seen = append(seen, app.Code)
		case len(app.KnownBy) == 0 || slices.Contains(app.KnownBy, ""):
			unrecorded = append(unrecorded, app.Code)
		}
	}
	return seen, unrecorded
}
