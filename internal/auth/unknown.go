package auth

import "github.com/gozzard/gozzard"

// AdmitsUnknown reports whether people that the record does not know have the rights of the app.
func (a *App) AdmitsUnknown() bool { return a.UnknownUsers == nil || *a.UnknownUsers }

// Undecided lists the apps of which no admin has said what people get through them that the record does not know.
func (a *Accounts) Undecided() []string {
	var codes []string
	for _, app := range a.Apps() {
		if app.UnknownUsers == nil {
			codes = append(codes, app.Code)
		}
	}
	return codes
}

// deleted reports whether a user of this name was deleted.
func (b *Directory) deleted(name string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	_, gone := b.gone[name]
	return gone
}

// admitted rejects a user that was deleted, and a user that is not known behind an app that is not made for such.
func (b *Directory) admitted(app *App, name string) error {
	b.mu.RLock()
	_, known := b.users[name]
	_, deleted := b.gone[name]
	b.mu.RUnlock()

	switch {
	case deleted:
		return b.refuse("user_deleted", gozzard.ErrUserForbidden, "user %s was deleted", name)
	case !known && !app.AdmitsUnknown():
		return b.refuse("user_unknown", gozzard.ErrUserForbidden,
			"user %s is not known here, and app %s is not made for unknown users: create the user, or change the app",
			name, app.Code)
	}

	return nil
}
