package auth

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// Store keeps accounts.
type Store interface {
	// LoadAccounts reads all of them. known is false for a record that never had any, which is not the same as one
	// without any left.
	LoadAccounts(ctx context.Context) (c Config, known bool, err error)
	// ChangeAccounts records a change and who made it, all of it or nothing. It also drops tokens that have expired
	// by then.
	ChangeAccounts(ctx context.Context, c Change) error
}

// Change is one act on the accounts. What is put replaces what has the same code, name or digest; what is dropped
// need not be there. The tokens of a dropped user go with him.
type Change struct {
	At  time.Time
	By  gozzard.Caller
	Act string // such as "app:create shop"

	Apps       []App
	Users      []User
	Tokens     []Token
	DropApps   []string
	DropUsers  []string
	DropTokens []Digest
}

// Accounts is the record of who may ask, and the book that it makes. It is safe for concurrent use.
type Accounts struct {
	store Store
	book  *Directory
	now   func() time.Time
	kiln  kiln

	writing sync.Mutex // a change is decided on what the last one left
	known   bool
}

// Open reads the accounts of a record.
func Open(ctx context.Context, s Store, o Options) (*Accounts, error) {
	c, known, err := s.LoadAccounts(ctx)
	if err != nil {
		return nil, err
	}
	book, err := newBook(c, o)
	if err != nil {
		return nil, err
	}
	return &Accounts{store: s, book: book, now: book.o.Now, known: known, kiln: newKiln()}, nil
}

// Directory is who may ask, as of now.
func (a *Accounts) Book() *Directory { return a.book }

// Known tells whether the record has ever had accounts. One that has not is given its first ones by Import.
func (a *Accounts) Known() bool {
	a.writing.Lock()
	defer a.writing.Unlock()
	return a.known
}

// Import puts the first accounts into a record that never had any. Apps without a list of grants are admins, as
// they were before there were grants.
func (a *Accounts) Import(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("cannot import accounts: %w", err)
	}

	a.writing.Lock()
	defer a.writing.Unlock()

	if a.known {
		return gozzard.Errorf(gozzard.ErrConflict, "there are accounts already")
	}

	change := Change{Act: "accounts:import", By: gozzard.Caller{App: "gozzard"}, Apps: slices.Clone(c.Apps),
		Users: c.Users, Tokens: slices.Clone(c.Tokens)}
	for i := range change.Apps {
		change.Apps[i].Grants = change.Apps[i].Rights().Grants
	}

	for i := range change.Tokens {
		if change.Tokens[i].ID == "" {
			change.Tokens[i].ID = newID()
		}
	}

	return a.change(ctx, change)
}

// change records a change, then applies it. The caller holds writing.
func (a *Accounts) change(ctx context.Context, c Change) error {
	c.At = a.now()
	if a.known && a.hasAdmin(&Change{}) && !a.hasAdmin(&c) {
		return gozzard.Errorf(gozzard.ErrConflict, "this would leave nobody with the role admin on everything")
	}
	if err := a.store.ChangeAccounts(ctx, c); err != nil {
		return err
	}
	a.known = true
	a.book.apply(&c)
	return nil
}

// hasAdmin looks whether somebody could change accounts after a change.
func (a *Accounts) hasAdmin(c *Change) bool {
	for _, app := range c.Apps {
		if app.Rights().All() {
			return true
		}
	}

	for _, u := range c.Users {
		if r := (&gozzard.Rights{Grants: u.Grants}); !u.Disabled && r.All() {
			return true
		}
	}

	a.book.mu.RLock()
	defer a.book.mu.RUnlock()

	for code, e := range a.book.apps {
		replaced := slices.ContainsFunc(c.Apps, func(x App) bool { return x.Code == code })
		if !replaced && !slices.Contains(c.DropApps, code) && e.rights.All() {
			return true
		}
	}

	for name, p := range a.book.users {
		replaced := slices.ContainsFunc(c.Users, func(x User) bool { return x.Name == name })
		if !replaced && !slices.Contains(c.DropUsers, name) && !p.user.Disabled && p.rights.All() {
			return true
		}
	}

	return false
}

// Holder is whose grants are meant: an app or a user.
type Holder struct{ App, User string }

func (h Holder) String() string {
	if h.App != "" {
		return "app " + h.App
	}
	return "user " + h.User
}

// AddGrant gives one more grant. A grant that is there already changes nothing.
func (a *Accounts) AddGrant(ctx context.Context, by gozzard.Caller, to Holder, g gozzard.Grant) error {
	if err := ValidateGrant(&g); err != nil {
		return gozzard.Errorf(gozzard.ErrInvalid, "%v", err)
	}
	return a.changeGrants(ctx, by, to, "grant:add "+to.String()+" "+grantText(&g),
		func(list []gozzard.Grant) ([]gozzard.Grant, error) {
			if slices.ContainsFunc(list, func(x gozzard.Grant) bool { return sameGrant(&x, &g) }) {
				return nil, errUnchanged
			}
			if len(list) >= maxGrants {
				return nil, gozzard.Errorf(gozzard.ErrConflict, "%s has %d grants, which is the most", to, maxGrants)
			}
			return append(slices.Clone(list), g), nil
		})
}

// RemoveGrant takes back the grant that is equal to this one.
func (a *Accounts) RemoveGrant(ctx context.Context, by gozzard.Caller, from Holder, g gozzard.Grant) error {
	return a.changeGrants(ctx, by, from, "grant:remove "+from.String()+" "+grantText(&g),
		func(list []gozzard.Grant) ([]gozzard.Grant, error) {
			left := slices.DeleteFunc(slices.Clone(list), func(x gozzard.Grant) bool { return sameGrant(&x, &g) })
			if len(left) == len(list) {
				return nil, gozzard.Errorf(gozzard.ErrNotFound, "%s has no such grant", from)
			}
			return left, nil
		})
}

// errUnchanged ends a change that has nothing to do.
var errUnchanged = errors.New("nothing to change")

func (a *Accounts) changeGrants(ctx context.Context, by gozzard.Caller, h Holder, act string,
	f func([]gozzard.Grant) ([]gozzard.Grant, error)) error {
	var err error

	if h.App != "" {
		err = a.changeApp(ctx, by, h.App, act, func(x *App) (err error) {
			x.Grants, err = f(x.Grants)
			return err
		})
	} else {
		err = a.changeUser(ctx, by, h.User, act, func(x *User) (err error) {
			x.Grants, err = f(x.Grants)
			return err
		})
	}

	if errors.Is(err, errUnchanged) {
		return nil
	}

	return err
}

func sameGrant(x, y *gozzard.Grant) bool {
	return x.Role == y.Role && slices.Equal(x.Businesses, y.Businesses) && slices.Equal(x.Namespaces, y.Namespaces) &&
		slices.Equal(x.Clouds, y.Clouds) &&
		slices.Equal(x.Nets, y.Nets) && slices.Equal(x.Actions, y.Actions)
}

// maxGrantText bounds what the audit says of a grant; the hash beside it is of all.
const maxGrantText = 300

// grantText is a grant in words, such as "operator businesses=[2 3] actions=[start]".
func grantText(g *gozzard.Grant) string {
	text := string(g.Role)
	add := func(name string, n int, list any) {
		if n > 0 {
			text += fmt.Sprintf(" %s=%v", name, list)
		}
	}
	add("businesses", len(g.Businesses), g.Businesses)
	add("namespaces", len(g.Namespaces), g.Namespaces)
	add("clouds", len(g.Clouds), g.Clouds)
	add("nets", len(g.Nets), g.Nets)
	add("actions", len(g.Actions), g.Actions)
	return fmt.Sprintf("%.*s", maxGrantText, text)
}

// newID draws a name for a token: long enough to be the only one, short enough to be typed.
func newID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24: it ends the program instead
	return hex.EncodeToString(b[:])
}

func notFound(what, name string) error {
	return gozzard.Errorf(gozzard.ErrNotFound, "there is no %s %q", what, name)
}
