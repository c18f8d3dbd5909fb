package auth

import (
	"context"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
)

// maxApps limits the damage of a script that creates apps by mistake.
const maxApps = 10_000

// Apps lists the apps in the order of their codes, without keys.
func (a *Accounts) Apps() []App {
	a.directory.mu.RLock()
	defer a.directory.mu.RUnlock()
	list := make([]App, 0, len(a.directory.apps))
	for _, e := range a.directory.apps {
		list = append(list, e.app)
	}
	slices.SortFunc(list, func(x, y App) int { return strings.Compare(x.Code, y.Code) })
	return list
}

// Signs reports whether an app may prove itself by a signature.
func (a *Accounts) Signs(code string) bool {
	a.directory.mu.RLock()
	defer a.directory.mu.RUnlock()
	e := a.directory.apps[code]
	return e != nil && len(e.signKeys) > 0
}

// app is an app with its keys. The caller holds writing.
func (a *Accounts) app(code string) (App, bool) {
	a.directory.mu.RLock()
	defer a.directory.mu.RUnlock()
	e := a.directory.apps[code]
	if e == nil {
		return App{}, false
	}
	app := e.app
	app.SignKeys = e.signKeys
	return app, true
}

// CreateApp makes an app and returns its secret, which cannot be read again. With signs the secret itself is stored,
// so that signatures can be checked.
func (a *Accounts) CreateApp(ctx context.Context, by gozzard.Caller, app App, signs bool) (secret string, err error) {
	secret = NewSecret()
	app.Secrets, app.SignKeys, app.KnownBy = []Digest{Hash(secret)}, nil, []string{by.User}
	if app.UnknownUsers == nil {
		app.UnknownUsers = new(bool)
	}

	if signs {
		app.SignKeys = []string{secret}
	}
	if app.Grants == nil {
		app.Grants = []gozzard.Grant{} // nil would mean everything
	}
	app.Grants = scoped(app.Grants)
	if err := app.validate(); err != nil {
		return "", gozzard.Errorf(gozzard.ErrInvalid, "%v", err)
	}

	a.writing.Lock()
	defer a.writing.Unlock()

	if _, ok := a.app(app.Code); ok {
		return "", gozzard.Errorf(gozzard.ErrConflict, "app %q already exists", app.Code)
	}
	if len(a.Apps()) >= maxApps {
		return "", gozzard.Errorf(gozzard.ErrConflict, "the limit of %d apps is reached", maxApps)
	}

	return secret, a.change(ctx, Change{By: by, Act: "app:create " + app.Code, Apps: []App{app}})
}

// Flags are the switches of an app; nil leaves a switch as it is.
type Flags struct {
	AssertsUsers            *bool
	MissingActionMeansStart *bool
	UnknownUsers            *bool
	Disabled                *bool
}

// SetFlags changes switches of an app.
func (a *Accounts) SetFlags(ctx context.Context, by gozzard.Caller, code string, f Flags) error {
	return a.changeApp(ctx, by, code, "app:change "+code, func(app *App) error {
		if f.AssertsUsers != nil {
			app.AssertsUsers = *f.AssertsUsers
		}
		if f.MissingActionMeansStart != nil {
			app.MissingActionMeansStart = *f.MissingActionMeansStart
		}
		if f.UnknownUsers != nil {
			app.UnknownUsers = f.UnknownUsers
		}
		if f.Disabled != nil {
			app.Disabled = *f.Disabled
		}
		return nil
	})
}

// AddSecret adds a secret to an app. The previous secret stays valid until RetireSecrets; older ones are removed.
func (a *Accounts) AddSecret(ctx context.Context, by gozzard.Caller, code string) (secret string, err error) {
	secret = NewSecret()
	return secret, a.changeApp(ctx, by, code, "app:secret "+code, func(app *App) error {
		app.Secrets = append([]Digest{Hash(secret)}, app.Secrets[0])
		if len(app.SignKeys) > 0 {
			app.SignKeys = append([]string{secret}, app.SignKeys[0])
		}
		app.KnownBy = []string{by.User, app.knownBy(0)}
		return nil
	})
}

// RetireSecrets removes all secrets of an app except the newest.
func (a *Accounts) RetireSecrets(ctx context.Context, by gozzard.Caller, code string) error {
	return a.changeApp(ctx, by, code, "app:retire "+code, func(app *App) error {
		app.Secrets = app.Secrets[:1]
		app.SignKeys = app.SignKeys[:min(len(app.SignKeys), 1)]
		app.KnownBy = app.KnownBy[:min(len(app.KnownBy), 1)]
		return nil
	})
}

// ReplaceApp creates or replaces an app with the given secrets. The program uses it for its own first app. What an admin
// has not decided about the app stays so.
func (a *Accounts) ReplaceApp(ctx context.Context, by gozzard.Caller, app App) error {
	app.Grants = app.Rights().Grants
	if err := app.validate(); err != nil {
		return gozzard.Errorf(gozzard.ErrInvalid, "%v", err)
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	had, ok := a.app(app.Code)
	if ok && had.UnknownUsers == nil {
		app.UnknownUsers = nil
	}
	return a.change(gozzard.WithApproval(ctx), Change{By: by, Act: "app:replace " + app.Code, Apps: []App{app},
		DropTokens: a.endedLinks(&had, &app)})
}

// knownBy is the user that was shown a secret, "" if that was not recorded.
func (a *App) knownBy(i int) string {
	if i < len(a.KnownBy) {
		return a.KnownBy[i]
	}
	return ""
}

// DropApp removes an app and the tokens for it.
func (a *Accounts) DropApp(ctx context.Context, by gozzard.Caller, code string) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	if _, ok := a.app(code); !ok {
		return notFound("app", code)
	}
	return a.change(ctx, Change{By: by, Act: "app:delete " + code, DropApps: []string{code},
		DropTokens: a.digestsOf(func(t *Token) bool { return t.App == code })})
}

// endedLinks are the sessions of the console that act as an app, if a change takes a secret from the app or disables it:
// one of them may have been opened with that secret.
func (a *Accounts) endedLinks(before, after *App) []Digest {
	lost := func(d Digest) bool { return !slices.Contains(after.Secrets, d) }
	if !after.Disabled && !slices.ContainsFunc(before.Secrets, lost) {
		return nil
	}
	return a.digestsOf(func(t *Token) bool { return t.Kind == KindConsoleLink && t.App == after.Code })
}

func (a *Accounts) changeApp(ctx context.Context, by gozzard.Caller, code, act string, f func(*App) error) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	app, ok := a.app(code)
	if !ok {
		return notFound("app", code)
	}
	before := app
	if err := f(&app); err != nil {
		return err
	}
	return a.change(ctx, Change{By: by, Act: act, Apps: []App{app}, DropTokens: a.endedLinks(&before, &app)})
}
