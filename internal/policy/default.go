package policy

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// DefaultAccount is the account of definitions that name none, or "": then they can be recorded, but nothing of them
// runs. own is the account of the agent. It is used by `gozzard dev` only: a name that was left out never makes root of a
// command.
func (p *Policy) DefaultAccount(own string) string {
	if p.ownFleet {
		return own
	}
	return p.DefaultUser
}

// DefaultAccount is Policy.DefaultAccount of the current policy.
func (f *File) DefaultAccount(own string) string { return f.Current().DefaultAccount(own) }

// Unnamed is Policy.Unnamed of the current policy.
func (f *File) Unnamed() error { return f.Current().Unnamed() }

// Unnamed makes the error for a command whose definition names no account, on a host without a default account.
func (p *Policy) Unnamed() error {
	err := p.rejectBecause(setDefaultUser, "it names no account (user), and this host has no default account",
		"a command of this definition%s", onHost())
	return instead(allowedBy(err, p.suggestedUser()), "name its account: user in the definition")
}

// suggestedUser is an account that the policy allows, for the line that a person would add.
func (p *Policy) suggestedUser() string {
	for _, name := range p.Users {
		if !strings.HasPrefix(name, "@") && name != anyone {
			return name
		}
	}
	return "ACCOUNT"
}

// onHost names this host, if it has a name.
func onHost() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return ""
	}
	return " on host " + shown(name)
}

// DefaultAccount is the account of definitions that name none, or "". An agent of an ordinary account, and every agent
// on a system without account numbers, has only one account for commands, and uses it if the policy allows that.
func (r *Reach) DefaultAccount() string {
	if name := r.Rules.DefaultAccount(r.Account); name != "" {
		return name
	}
	if !hasModes || r.ownOnly() && r.Names(r.Account) {
		return r.Account
	}
	return ""
}

// KeptAccount is DefaultAccount as definitions keep it: a later change of the policy does not move a process to another
// account. It is "" for the account of the agent itself, except in mode cap: there is no other one, or it is root.
func (r *Reach) KeptAccount() string {
	if name := r.DefaultAccount(); name != r.Account || r.Mode == gozzard.ModeCap {
		return name
	}
	return ""
}

// FormerAccount is what earlier versions meant by a definition without an account: root. Where the agent has one account only,
// nothing has changed, and it is "".
func (r *Reach) FormerAccount() string {
	if !hasModes || r.ownOnly() || r.Rules.DefaultAccount(r.Account) == r.Account {
		return ""
	}
	return gozzard.RootAccount
}

// ownOnly reports whether the agent can only act for its own account, and that is not root.
func (r *Reach) ownOnly() bool { return r.Mode == gozzard.ModeUser && r.UID != 0 }

// named is a definition with the account that it means on this host.
func (r *Reach) named(s *gozzard.Spec) (*gozzard.Spec, error) {
	if s.Identity.User != "" || !hasModes {
		return s, nil
	}
	name := r.DefaultAccount()
	switch {
	case name != "":
	case r.ownOnly():
		return nil, r.outOfReach("the definition names no account")
	default:
		return nil, r.Unnamed()
	}

	named := *s
	named.Identity.User = name
	return &named, nil
}

// checkDefault rejects a default account that cannot work on this host.
func (c Choice) checkDefault() error {
	if c.Default == "" {
		return nil
	}

	acct, err := lookup(c.Default)
	switch {
	case err != nil:
		return fmt.Errorf("--default-user %s: %w", shown(c.Default), err)
	case acct.root && !c.AllowRoot:
		return fmt.Errorf("--default-user %s: commands that name no account would run as root: choose another "+
			"account, or add --allow-root if you want that", shown(c.Default))
	case acct.found == nil:
		return fmt.Errorf("--default-user %s: this host has no such account: make it first", shown(c.Default))
	}
	return nil
}

// allUsers are the accounts that the policy must allow, besides root.
func (c Choice) allUsers() []string {
	if acct, err := lookup(c.Default); c.Default == "" || err == nil && acct.root {
		return c.Users
	}
	return append(slices.Clone(c.Users), c.Default)
}

// defaultLine is the line of the default account in the first policy file.
func (c Choice) defaultLine() string {
	if c.Default == "" {
		return "# " + setDefaultUser + ": www-data"
	}
	return setDefaultUser + ": " + strconv.Quote(c.Default)
}
