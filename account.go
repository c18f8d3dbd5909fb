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

// Account is the account that commands of a definition run as, in the form that grants have it.
func (s *Spec) Account() string { return CanonicalAccount(s.Identity.User) }

// CanonicalAccount is an account in the form that grants have it. What may be root is RootAccount: the name in any
// case, the number 0 in any form, the accounts of Windows that may do everything, and no name at all, which means the
// account of the agent. Every other account stays as it is written.
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
