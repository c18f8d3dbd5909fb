package auth

import (
	"context"
	"slices"

	"github.com/gozzard/gozzard"
)

// checkSecondPerson rejects a change that makes an admin, or gives a person the credentials of another admin, unless a
// second person approved it. The first accounts of a record and those of the program itself need none.
func (a *Accounts) checkSecondPerson(ctx context.Context, c *Change) error {
	if !a.directory.o.SecondPerson || !a.known || gozzard.IsApproved(ctx) {
		return nil
	}

	for i := range c.Apps {
		old, _ := a.app(c.Apps[i].Code)
		if err := checkApp(&old, &c.Apps[i]); err != nil {
			return err
		}
	}
	for i := range c.Users {
		old, _ := a.user(c.Users[i].Name)
		if err := checkUser(c.By, &old, &c.Users[i]); err != nil {
			return err
		}
	}
	for i := range c.Groups {
		a.directory.mu.RLock()
		old := a.directory.groups[c.Groups[i].Name]
		a.directory.mu.RUnlock()
		if gainsAdmin(old.Grants, c.Groups[i].Grants) {
			return errAdminGrant("group " + c.Groups[i].Name)
		}
	}
	for i := range c.Tokens {
		u, _ := a.user(c.Tokens[i].User)
		if isAdmin(u.Grants) && !isSelf(c.By, u.Name) {
			return needsSecond("a token of user "+u.Name, u.Name)
		}
	}
	return nil
}

// needsSecond says how to do what a single person may not do.
func needsSecond(what, name string) error {
	return gozzard.Errorf(gozzard.ErrUserForbidden, "%s is not made while %s has the role admin, because that needs a "+
		"second person on this server: remove the grant of admin first, then ask for it again (gozzard grant add)",
		what, name)
}

// errAdminGrant says that an account cannot begin as an admin.
func errAdminGrant(name string) error {
	return gozzard.Errorf(gozzard.ErrUserForbidden, "a grant of the role admin needs a second person on this server: make %s "+
		"without it, then ask for it (gozzard grant add)", name)
}

// isAdmin reports whether grants have the role admin on any part of the fleet.
func isAdmin(grants []gozzard.Grant) bool {
	return slices.ContainsFunc(grants, func(g gozzard.Grant) bool { return g.Role == gozzard.RoleAdmin })
}

// gainsAdmin reports whether a list has a grant of admin that the list before has not.
func gainsAdmin(old, now []gozzard.Grant) bool {
	return slices.ContainsFunc(now, func(g gozzard.Grant) bool {
		return g.Role == gozzard.RoleAdmin &&
			!slices.ContainsFunc(old, func(x gozzard.Grant) bool { return sameGrant(&x, &g) })
	})
}

// isSelf reports whether a caller is a user that came without an app.
func isSelf(c gozzard.Caller, name string) bool { return Alone(c) && !c.Asserted && c.User == name }

// checkApp looks for a grant of admin, and for a new secret of an app that has one.
func checkApp(old, now *App) error {
	if gainsAdmin(old.Rights().Grants, now.Rights().Grants) || old.Code == "" && isAdmin(now.Rights().Grants) {
		return errAdminGrant("app " + now.Code)
	}
	known := func(d Digest) bool { return slices.Contains(old.Secrets, d) }
	if isAdmin(now.Rights().Grants) && slices.ContainsFunc(now.Secrets, func(d Digest) bool { return !known(d) }) {
		return needsSecond("a secret of app "+now.Code, now.Code)
	}
	return nil
}

// checkUser looks for a grant of admin, and for a login of an admin that another person gets.
func checkUser(by gozzard.Caller, old, now *User) error {
	if gainsAdmin(old.Grants, now.Grants) {
		return errAdminGrant("user " + now.Name)
	}
	if !isAdmin(now.Grants) || isSelf(by, now.Name) {
		return nil
	}
	isNew := now.Password != "" && now.Password != old.Password || now.Subject == "" && old.Subject != "" ||
		old.Disabled && !now.Disabled
	if isNew {
		return needsSecond("a login of user "+now.Name, now.Name)
	}
	return nil
}
