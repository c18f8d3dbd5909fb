package auth

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
)

// The limits of one account.
const (
	maxSecrets     = 2 // valid at the same time: the new secret and the one that it replaces
	maxGrants      = 100
	maxGrantValues = 1000 // of each list in a grant
	maxNoteBytes   = 200
	maxSubject     = 255

	maxAccountBytes = 255
)

// Validate reports the first mistake in the configuration.
func (c Config) Validate() error {
	apps := make(map[string]bool, len(c.Apps))
	for i, a := range c.Apps {
		if err := a.validate(); err != nil {
			return fmt.Errorf("apps[%d]: %w", i, err)
		}
		if apps[a.Code] {
			return fmt.Errorf("apps[%d]: code %q is used twice", i, a.Code)
		}
		apps[a.Code] = true
	}

	users := make(map[string]bool, len(c.Users))
	for i, u := range c.Users {
		if err := u.validate(); err != nil {
			return fmt.Errorf("users[%d]: %w", i, err)
		}
		if users[u.Name] {
			return fmt.Errorf("users[%d]: name %q is used twice", i, u.Name)
		}
		users[u.Name] = true
	}

	if err := c.validateGroups(); err != nil {
		return err
	}
	return c.validateTokens()
}

func (c Config) validateTokens() error {
	tokens := make(map[Digest]bool, len(c.Tokens))
	for i, t := range c.Tokens {
		switch err := gozzard.ValidateName(t.User); {
		case err != nil:
			return fmt.Errorf("tokens[%d].user: %w", i, err)
		case t.Digest.IsZero():
			return fmt.Errorf("tokens[%d].sha256: required", i)
		case tokens[t.Digest]:
			return fmt.Errorf("tokens[%d].sha256: the same token is given twice", i)
		}
		tokens[t.Digest] = true
	}

	return nil
}

func (a App) validate() error {
	if err := gozzard.ValidateName(a.Code); err != nil {
		return fmt.Errorf("code: %w", err)
	}
	if n := len(a.Secrets); n < 1 || n > maxSecrets {
		return fmt.Errorf("secrets: has %d digests, want 1 or %d", n, maxSecrets)
	}

	for i, d := range a.Secrets {
		if d.IsZero() {
			return fmt.Errorf("secrets[%d]: required", i)
		}
	}

	if n := len(a.SignKeys); n != 0 && n != len(a.Secrets) {
		return fmt.Errorf("sign_keys: has %d keys, want none or one for each secret", n)
	}

	for i, k := range a.SignKeys {
		if Hash(k) != a.Secrets[i] {
			return fmt.Errorf("sign_keys[%d]: is not the secret whose digest is given", i)
		}
	}

	if n := len(a.KnownBy); n != 0 && n != len(a.Secrets) {
		return fmt.Errorf("known_by: has %d names, want none or one for each secret", n)
	}

	return validateGrants(a.Grants)
}

func (u User) validate() error {
	if err := gozzard.ValidateName(u.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if u.Password != "" {
		if _, err := parsePassword(u.Password); err != nil {
			return fmt.Errorf("password: %w", err)
		}
	}
	if len(u.Subject) > maxSubject || !utf8.ValidString(u.Subject) {
		return fmt.Errorf("subject: must be UTF-8 of at most %d bytes", maxSubject)
	}
	return validateGrants(u.Grants)
}

func validateGrants(list []gozzard.Grant) error {
	if len(list) > maxGrants {
		return fmt.Errorf("grants: there are %d, at most %d are allowed", len(list), maxGrants)
	}
	for i := range list {
		if err := ValidateGrant(&list[i]); err != nil {
			return fmt.Errorf("grants[%d].%w", i, err)
		}
	}
	return nil
}

// ValidateGrant reports the first mistake in a grant. The message begins with the name of the field.
func ValidateGrant(g *gozzard.Grant) error {
	if !g.Role.Valid() {
		return fmt.Errorf("role: there is no role %q (viewer, operator, admin, enroller)", string(g.Role))
	}

	// Limit the length of the lists.
	for name, n := range map[string]int{"businesses": len(g.Businesses), "namespaces": len(g.Namespaces),
		"clouds": len(g.Clouds),
		"nets":   len(g.Nets), "actions": len(g.Actions), "accounts": len(g.Accounts)} {
		if n > maxGrantValues {
			return fmt.Errorf("%s: has %d values, at most %d are allowed", name, n, maxGrantValues)
		}
	}

	// Check their values.
	for i, b := range g.Businesses {
		if b <= 0 {
			return fmt.Errorf("businesses[%d]: %d is not the id of a business", i, b)
		}
	}

	for i, p := range g.Namespaces {
		if err := validatePattern(p); err != nil {
			return fmt.Errorf("namespaces[%d]: %w", i, err)
		}
	}

	for i, c := range g.Clouds {
		if c < 0 {
			return fmt.Errorf("clouds[%d]: %d is not the id of a cloud area", i, c)
		}
	}

	for i, n := range g.Nets {
		if !n.IsValid() || n != n.Masked() {
			return fmt.Errorf("nets[%d]: %s is not a network; an example is 10.1.0.0/16", i, n)
		}
	}

	if err := validateActions(g); err != nil {
		return err
	}
	if err := validateHosts(g); err != nil {
		return err
	}
	return validateAccounts(g)
}

// validateHosts checks that a grant says which hosts it reaches.
func validateHosts(g *gozzard.Grant) error {
	listed := len(g.Clouds)+len(g.Nets) > 0
	if g.Role == gozzard.RoleEnroller {
		return nil
	}
	switch {
	case len(g.Businesses) > 0 && len(g.Namespaces) > 0:
		return fmt.Errorf("namespaces: a grant has businesses or namespaces, not both: make two grants")
	case len(g.Businesses) > 0:
		if g.Hosts != gozzard.HostsAssigned {
			return fmt.Errorf("hosts: a grant by businesses reaches the hosts that are assigned to them, not %q: "+
				"leave hosts out", string(g.Hosts))
		}
	case g.Hosts == gozzard.HostsAny && listed:
		return fmt.Errorf("hosts: any contradicts nets and clouds: leave one of them out")
	case g.Hosts == gozzard.HostsListed && !listed:
		return fmt.Errorf("hosts: listed needs nets or clouds")
	case g.Hosts == "":
		return fmt.Errorf("hosts: a grant by namespaces must say its hosts: give nets or clouds (--net, --cloud), " +
			"or any in words (--any-host)")
	case g.Hosts != gozzard.HostsAny && g.Hosts != gozzard.HostsListed:
		return fmt.Errorf("hosts: %q is not allowed here: it must be any or listed", string(g.Hosts))
	}
	return nil
}

// validateAccounts checks that a grant that can run something says as which accounts.
func validateAccounts(g *gozzard.Grant) error {
	runs := g.Role == gozzard.RoleOperator || g.Role == gozzard.RoleAdmin
	switch {
	case !runs && len(g.Accounts) > 0:
		return fmt.Errorf("accounts: only the roles operator and admin can have accounts")
	case runs && len(g.Accounts) == 0 && !g.EveryAccount() && !g.RunsNothing():
		return fmt.Errorf("accounts: the grant must name the accounts that commands may run as (--account): " +
			"names, * for every account but root, root only by its name")
	}

	for i, a := range g.Accounts {
		switch {
		case a == gozzard.AnyAccount || a == gozzard.RootAccount:
		case len(a) > maxAccountBytes || strings.TrimSpace(a) != a || strings.ContainsFunc(a, unicode.IsControl) ||
			!utf8.ValidString(a):
			return fmt.Errorf("accounts[%d]: must be the name of an account of at most %d bytes, without blanks around it",
				i, maxAccountBytes)
		case gozzard.CanonicalAccount(a) == gozzard.RootAccount:
			return fmt.Errorf("accounts[%d]: %q is root: write root", i, a)
		case strings.Contains(a, "*"):
			return fmt.Errorf("accounts[%d]: %q is not a name: only * alone stands for every account but root", i, a)
		}
	}
	return nil
}

// scoped fills in which hosts grants reach where their lists say it.
func scoped(list []gozzard.Grant) []gozzard.Grant {
	list = slices.Clone(list)
	for i := range list {
		list[i].Hosts = list[i].Scope()
	}
	return list
}

func validateActions(g *gozzard.Grant) error {
	if len(g.Actions) > 0 && g.Role != gozzard.RoleOperator {
		return fmt.Errorf("actions: only the role operator can have a list of actions")
	}
	for i, a := range g.Actions {
		if !a.Valid() {
			return fmt.Errorf("actions[%d]: there is no such action", i)
		}
	}
	return nil
}

// validatePattern checks a namespace in which * and ? are allowed.
func validatePattern(p string) error {
	if p == "" || len(p) > gozzard.MaxProcessNameBytes {
		return fmt.Errorf("must have 1 to %d bytes", gozzard.MaxProcessNameBytes)
	}
	for _, r := range p {
		if r != '?' && gozzard.ValidateProcessName("x"+string(r)+"x") != nil {
			return fmt.Errorf("%q may not stand in a pattern (what a namespace may have; * for any text, ? for one character)", r)
		}
	}
	return nil
}
