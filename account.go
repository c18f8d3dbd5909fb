package gozzard

import (
	"strconv"
	"strings"
)

// RootAccount is the account that may do everything on its host, under whichever name a definition has it. A grant
// includes it only by this name.
const RootAccount = "root"

// AnyAccount in a grant stands for every account but root.
const AnyAccount = "*"

// Account is the account of a definition in the form that grants have it. Without a host nobody knows which account a
// definition without one means, so it counts as root's.
func (s *Spec) Account() string { return CanonicalAccount(s.Identity.User) }

// AccountOn is the account of a definition on a host whose agent reports a default account (HostInfo.DefaultAccount), in
// the form that grants have it. On a host without one, a definition without an account counts as root's: only a caller
// with a right to root can record it, although no host runs it.
func (s *Spec) AccountOn(byDefault string) string {
	if s.Identity.User == "" {
		return CanonicalAccount(byDefault)
	}
	return s.Account()
}

// CanonicalAccount is an account in the form that grants have it. What may be root is RootAccount: the name in any
// case, the number 0 in any form, the accounts of Windows that may do everything, and no name at all: nothing may be
// gained by leaving the name out. Every other account stays as it is written.
func CanonicalAccount(name string) string {
	plain := strings.ToLower(strings.TrimSpace(name))
	if n, err := strconv.ParseInt(plain, 0, 64); err == nil && n&0xffffffff == 0 { // 2^32 is 0 where ids have 32 bits
		return RootAccount
	}

	// Leave out the domain of a Windows account.
	if i := strings.LastIndexAny(plain, `\/`); i >= 0 {
		plain = plain[i+1:]
	}
	plain, _, _ = strings.Cut(plain, "@")

	switch strings.TrimSpace(plain) {
	case "", RootAccount, "system", "localsystem", "administrator", "s-1-5-18":
		return RootAccount
	}
	return name
}
