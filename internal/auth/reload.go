package auth

import (
	"context"
	"fmt"
	"reflect"

	"github.com/gozzard/gozzard"
)

// Reload reads the accounts again, because another server changed them.
func (a *Accounts) Reload(ctx context.Context) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	return a.reload(ctx)
}

// reload is Reload; the caller holds writing.
func (a *Accounts) reload(ctx context.Context) error {
	c, known, err := a.store.LoadAccounts(ctx)
	if err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("cannot read credentials: %w", err)
	}
	a.known, a.version = known, c.Version
	if change := a.directory.difference(&c); !change.empty() {
		a.directory.apply(change)
	}
	return nil
}

// record records a change that was made for the accounts in memory. If another server changed them meanwhile, they are
// read again. Then a change of tokens alone is recorded, because it does not depend on anything else; any other one is
// rejected, and the caller makes it again for the present accounts.
func (a *Accounts) record(ctx context.Context, c *Change) error {
	c.Base = a.version
	err := a.store.ChangeAccounts(ctx, *c)
	if gozzard.KindOf(err) == gozzard.ErrConflict && c.Base != 0 {
		if reloadErr := a.reload(ctx); reloadErr != nil {
			return reloadErr
		}
		if !c.onlyTokens() {
			return err
		}
		c.Base = a.version
		err = a.store.ChangeAccounts(ctx, *c)
	}
	if err == nil && c.Base != 0 {
		a.version++
	}
	return err
}

// onlyTokens reports whether a change is about tokens and nothing else.
func (c *Change) onlyTokens() bool {
	return len(c.Apps)+len(c.Users)+len(c.Groups)+len(c.DropApps)+len(c.DropUsers)+len(c.Deleted)+len(c.Restored) == 0
}

func (c *Change) empty() bool { return c.onlyTokens() && len(c.Tokens)+len(c.DropTokens) == 0 }

// difference is the change that makes a directory equal to recorded accounts.
func (b *Directory) difference(c *Config) *Change {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out Change

	apps := map[string]bool{}
	for _, a := range c.Apps {
		apps[a.Code] = true
		if e := b.apps[a.Code]; e == nil || !sameApp(e, &a) {
			out.Apps = append(out.Apps, a)
		}
	}
	for code := range b.apps {
		if !apps[code] {
			out.DropApps = append(out.DropApps, code)
		}
	}

	users := map[string]bool{}
	for _, u := range c.Users {
		users[u.Name] = true
		if p := b.users[u.Name]; p == nil || !reflect.DeepEqual(p.user, u) {
			out.Users = append(out.Users, u)
		}
	}
	for name := range b.users {
		if !users[name] {
			out.DropUsers = append(out.DropUsers, name)
		}
	}

	b.groupDifference(c, &out)
	b.tokenDifference(c, &out)
	return &out
}

func sameApp(e *entry, a *App) bool {
	want := newEntry(*a)
	return reflect.DeepEqual(e.app, want.app) && reflect.DeepEqual(e.signKeys, want.signKeys)
}

// groupDifference adds what differs in groups and in deleted users.
func (b *Directory) groupDifference(c *Config, out *Change) {
	groups := map[string]bool{}
	for _, g := range c.Groups {
		groups[g.Name] = true
		if !reflect.DeepEqual(b.groups[g.Name], g) {
			out.Groups = append(out.Groups, g)
		}
	}
	for name := range b.groups {
		if !groups[name] {
			out.Groups = append(out.Groups, Group{Name: name})
		}
	}

	deleted := map[string]bool{}
	for _, d := range c.Deleted {
		deleted[d.Name] = true
		if _, known := b.gone[d.Name]; !known {
			out.Deleted = append(out.Deleted, d)
		}
	}
	for name := range b.gone {
		if !deleted[name] {
			out.Restored = append(out.Restored, name)
		}
	}
}

// tokenDifference adds what differs in tokens.
func (b *Directory) tokenDifference(c *Config, out *Change) {
	tokens := make(map[Digest]bool, len(c.Tokens))
	now := b.o.Now()
	for _, t := range c.Tokens {
		tokens[t.Digest] = true
		if known, ok := b.tokens[t.Digest]; (!ok || !reflect.DeepEqual(known, t)) && !t.expired(now, b.o.MaxTokenAge) {
			out.Tokens = append(out.Tokens, t)
		}
	}
	for d := range b.tokens {
		if !tokens[d] {
			out.DropTokens = append(out.DropTokens, d)
		}
	}
}
