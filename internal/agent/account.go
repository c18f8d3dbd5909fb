package agent

import (
	"fmt"

	"github.com/gozzard/gozzard"
)

// accountError returns why an operation is not for the account of the definition that it would use, or nil. account is
// the one that the caller of the operation has a right to; "" means every account.
//
// The server has judged the definition that it knows. The definition of this host may be another one, and an account may
// be root under another name: only the host knows that. So it is with the default account, which a definition without an
// account means: the policy may have changed since the server was told.
func (a *Agent) accountError(op *operation, given []byte, account string) error {
	if account == "" {
		return nil
	}

	// Find the definition that the operation would use. The supervisor rejects an operation without one, or with one that
	// it cannot read.
	spec := a.sup.Definition(op.key)
	usesGiven := op.action != gozzard.ActionUnregister && (op.action != gozzard.ActionQuery || spec == nil)
	if len(given) > 0 && usesGiven && !a.sup.Keeps(op.key, op.action, given) {
		var err error
		if spec, err = gozzard.DecodeSpec(given); err != nil {
			return nil
		}
	}
	if spec == nil {
		return nil
	}
	return a.compareAccount(op.key, spec, account)
}

// compareAccount returns why a definition is not one of the account that the caller of an operation has a right to, or nil.
func (a *Agent) compareAccount(key gozzard.Key, spec *gozzard.Spec, account string) error {
	if account == "" {
		return nil
	}
	name := spec.Identity.User
	if name == "" {
		name = a.defaultAccount()
	}
	has := gozzard.CanonicalAccount(name)
	switch {
	case has == gozzard.CanonicalAccount(account):
	case spec.Identity.User == "" && name != "":
		return fmt.Errorf("permission: the definition of %s names no account, and the default account of this host is %s, "+
			"but the command is for the account %s", key, has, account)
	default:
		return fmt.Errorf("permission: the definition of %s has the account %s, and the command is for the account %s",
			key, has, account)
	}
	if has != gozzard.RootAccount && a.o.IsRoot != nil && a.o.IsRoot(name) {
		return fmt.Errorf("permission: the account %s is root on this host, and the command is not for root: "+
			"a grant must name root", has)
	}
	return nil
}

// defaultAccount is the account of definitions that name none, "" if they do not run here.
func (a *Agent) defaultAccount() string {
	if a.o.Policy == nil {
		return ""
	}
	return a.o.Policy.DefaultAccount()
}
