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

// Store is the part of the record that has the accounts.
type Store interface {
	// LoadAccounts reads all accounts. known is false for a record that never had any; a record whose accounts were
	// all removed is known.
	LoadAccounts(ctx context.Context) (c Config, known bool, err error)
	// ChangeAccounts records a change and its caller in one transaction. It also drops expired tokens. The error is
	// ErrConflict if the change has a Base and the accounts were changed since.
	ChangeAccounts(ctx context.Context, c Change) error
}

// Change is one change of the accounts. Apps, Users, Groups and Tokens replace those with the same code, name or
// digest; a group without grants is dropped. What is dropped need not exist. Dropping a user drops the user's tokens.
type Change struct {
	At  time.Time
	By  gozzard.Caller
	Act string // such as "app:create shop"

	Base int64 // the version of the accounts that the change is for; 0: any

	Apps       []App
	Users      []User
	Groups     []Group
	Tokens     []Token
	DropApps   []string
	DropUsers  []string
	DropTokens []Digest
	Deleted    []DeletedUser // are remembered as deleted
	Restored   []string      // names of deleted users that may be used again
}

// Accounts are the apps, users and tokens of the record, with the Directory that is made from them. It is safe for
// concurrent use.
type Accounts struct {
	store     Store
	directory *Directory
	now       func() time.Time
	hasher    hasher
	wrong     wrongCounts
	links     links
	shortened int // tokens of the record that end earlier by the highest age

	writing sync.Mutex // one change at a time: each is checked against the result of the last
	known   bool       // the record has or had accounts
	version int64      // of the accounts in memory
}

// Open reads the accounts of a record.
func Open(ctx context.Context, s Store, o Options) (*Accounts, error) {
	c, known, err := s.LoadAccounts(ctx)
	if err != nil {
		return nil, err
	}
	d, err := newDirectory(c, o)
	if err != nil {
		return nil, err
	}
	a := &Accounts{store: s, directory: d, now: d.o.Now, known: known, version: c.Version, hasher: newHasher(d.usual)}
	return a, a.datedTokens(ctx, c.Tokens)
}

// Directory is the directory of the accounts. It follows every change.
func (a *Accounts) Directory() *Directory { return a.directory }

// Known reports whether the record has or had accounts. If not, Import adds the first ones.
func (a *Accounts) Known() bool {
	a.writing.Lock()
	defer a.writing.Unlock()
	return a.known
}

// Import adds the first accounts to a record that never had any. An app without a list of grants becomes an admin:
// before grants existed, every app was one.
func (a *Accounts) Import(ctx context.Context, c Config) error {
	c = c.clone()
	if left := c.carryOver(); len(left) > 0 {
		return &UnresolvedError{Grants: left}
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("cannot import accounts: %w", err)
	}

	a.writing.Lock()
	defer a.writing.Unlock()

	if a.known {
		return gozzard.Errorf(gozzard.ErrConflict, "the record already has accounts")
	}

	change := Change{Act: "accounts:import", By: gozzard.Caller{App: "gozzard"}, Apps: slices.Clone(c.Apps),
		Users: c.Users, Groups: c.Groups, Tokens: slices.Clone(c.Tokens), Deleted: c.Deleted}
	for i := range change.Apps {
		change.Apps[i].Grants = change.Apps[i].Rights().Grants
	}

	for i := range change.Tokens {
		if change.Tokens[i].ID == "" {
			change.Tokens[i].ID = newID()
		}
		if change.Tokens[i].Created.IsZero() {
			change.Tokens[i].Created = a.now().UTC().Truncate(time.Millisecond)
		}
	}

	return a.change(ctx, change)
}

// change records a change, then applies it to the directory. The caller holds writing.
func (a *Accounts) change(ctx context.Context, c Change) error {
	c.At = a.now()
	if a.known && a.wayIn(&Change{}) && !a.wayIn(&c) {
		return gozzard.Errorf(gozzard.ErrConflict, "this would remove the last admin of the whole fleet that can log in")
	}
	if err := a.checkSecondPerson(ctx, &c); err != nil {
		return err
	}
	c.DropTokens = append(slices.Clip(c.DropTokens), a.overAge()...)
	c.DropTokens = append(c.DropTokens, a.openedBy(c.DropTokens)...)
	if err := a.record(ctx, &c); err != nil {
		return err
	}
	a.known = true
	a.directory.apply(&c)
	return nil
}

// Holder is the app, the user or the group that has grants.
type Holder struct{ App, User, Group string }

// String names the holder for messages and for the audit.
func (h Holder) String() string {
	switch {
	case h.App != "":
		return "app " + h.App
	case h.Group != "":
		return "group " + h.Group
	}
	return "user " + h.User
}

func (h Holder) kind() string {
	if h.App != "" {
		return "app"
	}
	return "user"
}

func (h Holder) name() string { return h.App + h.User }

// AddGrant adds a grant. Adding a grant that the holder has changes nothing.
func (a *Accounts) AddGrant(ctx context.Context, by gozzard.Caller, to Holder, g gozzard.Grant) error {
	g.Hosts = g.Scope()
	if err := ValidateGrant(&g); err != nil {
		return gozzard.Errorf(gozzard.ErrInvalid, "%v", err)
	}
	if g.Role == gozzard.RoleAdmin && a.directory.o.SecondPerson && !gozzard.IsApproved(ctx) {
		return a.directory.o.Ask(ctx, by, to, g)
	}
	return a.changeGrants(ctx, by, to, "grant:add "+to.String()+" "+grantText(&g),
		func(list []gozzard.Grant) ([]gozzard.Grant, error) {
			if slices.ContainsFunc(list, func(x gozzard.Grant) bool { return sameGrant(&x, &g) }) {
				return nil, errUnchanged
			}
			if len(list) >= maxGrants {
				return nil, gozzard.Errorf(gozzard.ErrConflict, "the limit of %d grants for %s is reached", maxGrants, to)
			}
			return append(slices.Clone(list), g), nil
		})
}

// RemoveGrant removes the grant that is equal to g.
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

// errUnchanged ends a change without recording it.
var errUnchanged = errors.New("nothing to change")

func (a *Accounts) changeGrants(ctx context.Context, by gozzard.Caller, h Holder, act string,
	f func([]gozzard.Grant) ([]gozzard.Grant, error)) error {
	var err error

	switch {
	case h.App != "":
		err = a.changeApp(ctx, by, h.App, act, func(x *App) (err error) {
			x.Grants, err = f(x.Grants)
			return err
		})
	case h.Group != "":
		err = a.changeGroup(ctx, by, h.Group, act, f)
	default:
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
		slices.Equal(x.Nets, y.Nets) && slices.Equal(x.Actions, y.Actions) && x.Scope() == y.Scope() &&
		slices.Equal(x.Accounts, y.Accounts)
}

// maxGrantText limits the text of a grant in the audit.
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
	add("hosts", len(g.Hosts), g.Hosts)
	add("accounts", len(g.Accounts), g.Accounts)
	return fmt.Sprintf("%.*s", maxGrantText, text)
}

// newID makes a random id for a token that is long enough to be unique and short enough to type.
func newID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24: it ends the program instead
	return hex.EncodeToString(b[:])
}

func notFound(what, name string) error {
	return gozzard.Errorf(gozzard.ErrNotFound, "there is no %s %q", what, name)
}

// HeldRights are the rights of an app, of a user, or of a user behind an app. A user that is disabled has none.
func (a *Accounts) HeldRights(h Holder) (*gozzard.Rights, error) {
	app, knownApp := a.app(h.App)
	user, knownUser := a.user(h.User)
	switch {
	case h.App != "" && !knownApp:
		return nil, notFound("app", h.App)
	case h.User != "" && !knownUser:
		return nil, notFound("user", h.User)
	case user.Disabled:
		return a.directory.rights(nil), nil
	case h.User == "":
		return a.directory.rights(app.Rights().Grants), nil
	case h.App == "":
		return a.directory.rights(user.Grants), nil
	}
	return a.directory.rights(Intersect(app.Rights().Grants, user.Grants)), nil
}
