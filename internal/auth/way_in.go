package auth

import (
	"slices"

	"github.com/gozzard/gozzard"
)

// wayIn reports whether an admin of the whole fleet could still come in after a change: by an app that needs no known
// user, or as a user that can log in. The server never removes the last way in; --reset-admin makes one when its
// secret is lost.
func (a *Accounts) wayIn(c *Change) bool {
	d := a.directory
	d.mu.RLock()
	defer d.mu.RUnlock()

	// List the apps and users that there are after the change.
	apps, users := slices.Clone(c.Apps), slices.Clone(c.Users)
	for code, e := range d.apps {
		replaced := slices.ContainsFunc(c.Apps, func(x App) bool { return x.Code == code })
		if !replaced && !slices.Contains(c.DropApps, code) {
			apps = append(apps, e.app)
		}
	}
	for name, p := range d.users {
		replaced := slices.ContainsFunc(c.Users, func(x User) bool { return x.Name == name })
		if !replaced && !slices.Contains(c.DropUsers, name) {
			users = append(users, p.user)
		}
	}

	// Look for a way in.
	named := false // by an admin's app that may name known users
	for i := range apps {
		if !apps[i].Disabled && apps[i].Rights().All() {
			if apps[i].AdmitsUnknown() {
				return true
			}
			named = named || apps[i].AssertsUsers
		}
	}
	return slices.ContainsFunc(users, func(u User) bool {
		rights := gozzard.Rights{Grants: u.Grants}
		return !u.Disabled && rights.All() && (u.Password != "" || d.o.Provider || named)
	})
}
