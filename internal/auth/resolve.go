package auth

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// HeldGrant is a grant with its holder and its number there, from 1.
type HeldGrant struct {
	Holder Holder
	Number int
	Grant  gozzard.Grant
}

// UnresolvedError says that grants of an older version would mean something else now. Grants of that version did not
// say their hosts and accounts: they reached every host, and every account including root.
type UnresolvedError struct {
	Grants []HeldGrant
}

// Error lists the grants.
func (e *UnresolvedError) Error() string {
	lines := []string{fmt.Sprintf("%d grants of an older version would mean something else now", len(e.Grants))}
	for i := range e.Grants {
		g := &e.Grants[i]
		lines = append(lines, fmt.Sprintf("%s, grant %d (%s): %s", g.Holder, g.Number, grantText(&g.Grant), g.Why()))
	}
	return strings.Join(lines, "\n")
}

// Why says what would change.
func (h *HeldGrant) Why() string {
	g := &h.Grant
	var why []string
	switch {
	case len(g.Businesses) > 0 && len(g.Namespaces) > 0:
		why = append(why, "it becomes two grants, one by businesses for the hosts that are assigned to them, "+
			"and one by namespaces")
	case len(g.Businesses) > 0:
		why = append(why, "it would reach only hosts that are assigned to the business")
	}
	if h.NeedsHosts() {
		why = append(why, "it must say its hosts")
	}
	if h.NeedsAccounts() {
		why = append(why, "it must name the accounts that commands may run as")
	}
	return strings.Join(why, "; ")
}

// NeedsHosts reports whether the grant does not say which hosts it reaches.
func (h *HeldGrant) NeedsHosts() bool {
	g := &h.Grant
	return len(g.Namespaces) > 0 && len(g.Clouds)+len(g.Nets) == 0
}

// NeedsAccounts reports whether the grant can run something and does not say as which accounts.
func (h *HeldGrant) NeedsAccounts() bool {
	g := &h.Grant
	return len(g.Accounts) == 0 && !g.EveryAccount() && !g.RunsNothing()
}

// carryOver fills in the hosts of grants of an older version whose meaning does not change, and returns the others.
func (c *Config) carryOver() (left []HeldGrant) {
	for i := range c.Apps {
		left = append(left, carryOver(Holder{App: c.Apps[i].Code}, c.Apps[i].Grants)...)
	}
	for i := range c.Users {
		left = append(left, carryOver(Holder{User: c.Users[i].Name}, c.Users[i].Grants)...)
	}
	return left
}

func carryOver(holder Holder, grants []gozzard.Grant) (left []HeldGrant) {
	for i := range grants {
		g := &grants[i]
		h := HeldGrant{Holder: holder, Number: i + 1, Grant: *g}
		switch {
		case g.Hosts != "":
		case g.Role != gozzard.RoleEnroller && (len(g.Businesses) > 0 || h.NeedsHosts() || h.NeedsAccounts()):
			left = append(left, h)
		default:
			g.Hosts = g.Scope()
		}
	}
	return left
}

// clone copies the configuration as far as carryOver changes it.
func (c *Config) clone() Config {
	out := *c
	out.Apps, out.Users = slices.Clone(c.Apps), slices.Clone(c.Users)
	for i := range out.Apps {
		out.Apps[i].Grants = slices.Clone(out.Apps[i].Grants) // nil stays nil: it means everything
	}
	for i := range out.Users {
		out.Users[i].Grants = slices.Clone(out.Users[i].Grants)
	}
	return out
}

// Resolution says what a grant of an older version means from now on. Clouds and Nets are added to those that it has.
type Resolution struct {
	AnyHost  bool
	Clouds   []int
	Nets     []netip.Prefix
	Accounts []string
}

// Resolve gives a grant of an older version its hosts and accounts, in a record that no server uses, and returns the
// grants that are left. A grant that becomes two has its second part at the end, so the numbers of the others stay as
// they are.
func Resolve(ctx context.Context, s Store, by gozzard.Caller, at time.Time, holder Holder, number int,
	how Resolution) (left []HeldGrant, err error) {
	// Find the grant.
	c, _, err := s.LoadAccounts(ctx)
	if err != nil {
		return nil, err
	}
	grants, put := c.held(holder)
	if put == nil {
		return nil, notFound(holder.kind(), holder.name())
	}
	open := carryOver(holder, slices.Clone(*grants))
	i := slices.IndexFunc(open, func(h HeldGrant) bool { return h.Number == number })
	if i < 0 {
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "%s has no grant %d of an older version that must be resolved",
			holder, number)
	}

	// Make what it means now.
	parts, err := how.apply(open[i].Grant)
	if err != nil {
		return nil, err
	}
	*grants = append(slices.Clone(*grants), parts[1:]...)
	(*grants)[number-1] = parts[0]

	// Record it.
	words := make([]string, len(parts))
	for i := range parts {
		words[i] = grantText(&parts[i])
	}
	change := Change{At: at, By: by, Act: fmt.Sprintf("grant:resolve %s %d %s", holder, number,
		strings.Join(words, " and "))}
	put(&change)
	if err := s.ChangeAccounts(ctx, change); err != nil {
		return nil, err
	}
	return Unresolved(ctx, s)
}

// apply makes the grants that a grant of an older version becomes.
func (r *Resolution) apply(g gozzard.Grant) ([]gozzard.Grant, error) {
	g.Clouds, g.Nets = append(slices.Clone(g.Clouds), r.Clouds...), append(slices.Clone(g.Nets), r.Nets...)
	g.Accounts = slices.Clone(r.Accounts)
	parts := []gozzard.Grant{g}
	if len(g.Businesses) > 0 && len(g.Namespaces) > 0 {
		parts = append(parts, g)
		parts[0].Namespaces, parts[1].Businesses = nil, nil
	}

	for i := range parts {
		p := &parts[i]
		if r.AnyHost && len(p.Businesses) == 0 {
			p.Hosts = gozzard.HostsAny
		}
		p.Hosts = p.Scope()
		if err := ValidateGrant(p); err != nil {
			return nil, gozzard.Errorf(gozzard.ErrInvalid, "%v", err)
		}
	}
	if r.AnyHost && parts[len(parts)-1].Hosts != gozzard.HostsAny {
		return nil, gozzard.Errorf(gozzard.ErrInvalid,
			"a grant by businesses reaches the hosts that are assigned to them: leave --any-host out")
	}
	return parts, nil
}

// held finds the grants of a holder, and a function that puts the holder into a change; nil when it does not exist.
func (c *Config) held(h Holder) (*[]gozzard.Grant, func(*Change)) {
	for i := range c.Apps {
		if h.App != "" && c.Apps[i].Code == h.App {
			return &c.Apps[i].Grants, func(to *Change) { to.Apps = []App{c.Apps[i]} }
		}
	}
	for i := range c.Users {
		if h.App == "" && c.Users[i].Name == h.User {
			return &c.Users[i].Grants, func(to *Change) { to.Users = []User{c.Users[i]} }
		}
	}
	return nil, nil
}

// Unresolved lists the grants of a record that would mean something else now.
func Unresolved(ctx context.Context, s Store) ([]HeldGrant, error) {
	c, _, err := s.LoadAccounts(ctx)
	if err != nil {
		return nil, err
	}
	return c.carryOver(), nil
}
