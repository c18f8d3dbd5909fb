package auth

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
)

// The limits of groups.
const (
	maxGroups       = 10_000
	maxGroupName    = 255 // bytes
	maxPersonGroups = 200 // of one login
)

// ValidateGroup checks the name of a group. Providers use paths, ids and distinguished names, so more is allowed than
// in other names.
func ValidateGroup(name string) error {
	if name == "" || len(name) > maxGroupName || !utf8.ValidString(name) || !gozzard.IsPlainLine(name) ||
		strings.TrimSpace(name) != name {
		return fmt.Errorf("the name of a group has 1 to %d bytes on one plain line", maxGroupName)
	}
	return nil
}

func (c Config) validateGroups() error {
	for i, g := range c.Groups {
		if err := ValidateGroup(g.Name); err != nil {
			return fmt.Errorf("groups[%d].name: %w", i, err)
		}
		if err := validateGrants(g.Grants); err != nil {
			return fmt.Errorf("groups[%d].%w", i, err)
		}
	}
	return nil
}

// Groups lists the groups that hold grants, in the order of their names.
func (a *Accounts) Groups() []Group {
	a.directory.mu.RLock()
	defer a.directory.mu.RUnlock()
	list := make([]Group, 0, len(a.directory.groups))
	for _, g := range a.directory.groups {
		list = append(list, g)
	}
	slices.SortFunc(list, func(x, y Group) int { return strings.Compare(x.Name, y.Name) })
	return list
}

// changeGroup changes the grants of a group. A group begins with its first grant and ends with its last.
func (a *Accounts) changeGroup(ctx context.Context, by gozzard.Caller, name, act string,
	f func([]gozzard.Grant) ([]gozzard.Grant, error)) error {
	if err := ValidateGroup(name); err != nil {
		return gozzard.Errorf(gozzard.ErrInvalid, "group: %v", err)
	}

	a.writing.Lock()
	defer a.writing.Unlock()

	a.directory.mu.RLock()
	had, known := a.directory.groups[name]
	count := len(a.directory.groups)
	a.directory.mu.RUnlock()
	if !known && count >= maxGroups {
		return gozzard.Errorf(gozzard.ErrConflict, "the limit of %d groups is reached", maxGroups)
	}

	grants, err := f(had.Grants)
	if err != nil {
		return err
	}
	return a.change(ctx, Change{By: by, Act: act, Groups: []Group{{Name: name, Grants: grants}}})
}

// applyGroups adds, replaces and removes groups. The caller holds mu.
func (b *Directory) applyGroups(list []Group) {
	for _, g := range list {
		if len(g.Grants) == 0 {
			delete(b.groups, g.Name)
			continue
		}
		b.groups[g.Name] = Group{Name: g.Name, Grants: slices.Clone(g.Grants)}
	}
}

// indexTokens makes the indexes of the tokens anew. The caller holds mu.
func (b *Directory) indexTokens() {
	b.ids, b.logins = make(map[string]Digest, len(b.tokens)), map[string][]Token{}
	for d, t := range b.tokens {
		b.ids[t.ID] = d
		if len(t.Groups) > 0 {
			b.logins[t.User] = append(b.logins[t.User], t)
		}
	}
}

// personRights are the rights of a user without an app: the user's own grants, and those of the groups that the provider
// named at the login. A session that has ended leaves nothing. Without a session, as for work that goes on after its
// request, the groups of all logins count that have not ended.
func (b *Directory) personRights(p *person, session string) *gozzard.Rights {
	b.mu.RLock()
	defer b.mu.RUnlock()
	now := b.o.Now()

	if session != "" {
		d, ok := b.ids[session]
		if t := b.tokens[d]; !ok || t.User != p.user.Name || t.expired(now, b.o.MaxTokenAge) {
			return nil
		}
	}

	grants := slices.Clip(p.rights.Grants)
	for _, t := range b.logins[p.user.Name] {
		if session != "" && t.ID != session || t.expired(now, b.o.MaxTokenAge) {
			continue
		}
		for _, name := range t.Groups {
			grants = append(grants, b.groups[name].Grants...)
		}
	}

	if len(grants) == len(p.rights.Grants) {
		return p.rights
	}
	return b.rights(grants)
}

// loginGroups are the groups of a login that are recorded with its session: at most maxPersonGroups, those first that
// hold grants.
func (a *Accounts) loginGroups(given []string) []string {
	a.directory.mu.RLock()
	defer a.directory.mu.RUnlock()

	var held, others []string
	for _, name := range given {
		if ValidateGroup(name) != nil || slices.Contains(held, name) || slices.Contains(others, name) {
			continue
		}
		if _, ok := a.directory.groups[name]; ok {
			held = append(held, name)
		} else if len(others) < maxPersonGroups {
			others = append(others, name)
		}
	}

	all := append(held, others...)
	return all[:min(len(all), maxPersonGroups)]
}
