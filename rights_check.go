package gozzard

import (
	"fmt"
	"strings"
)

// objection is why a grant does not allow something.
type objection uint8

const (
	objectNothing objection = iota
	objectAction
	objectSpace
	objectAddrs
	objectAssigned
	objectAccount
)

// object finds the first objection of a grant to an action. It is the only place that decides about actions.
func (r *Rights) object(g *Grant, a Action, namespace string, h HostRef, account string) objection {
	switch {
	case !g.may(a):
		return objectAction
	case !g.fitsSpace(namespace):
		return objectSpace
	case !g.fitsAddrs(h.Addrs):
		return objectAddrs
	case !r.reaches(g, namespace, h):
		return objectAssigned
	case !a.ReadOnly() && !a.OnAgent() && !g.runsAs(account):
		return objectAccount
	}
	return objectNothing
}

// EveryAccount reports whether the grant includes every account without a list: that of an admin of the whole fleet.
func (g *Grant) EveryAccount() bool { return g.Role == RoleAdmin && g.wholeFleet() }

// RunsNothing reports whether all actions of the grant run as no account, so that it needs none.
func (g *Grant) RunsNothing() bool {
	if g.Role != RoleOperator || len(g.Actions) == 0 {
		return g.Role != RoleOperator && g.Role != RoleAdmin
	}
	for _, a := range g.Actions {
		if !a.ReadOnly() && !a.OnAgent() {
			return false
		}
	}
	return true
}

// runsAs reports whether commands of an account may run by the grant.
func (g *Grant) runsAs(account string) bool {
	if g.EveryAccount() {
		return true
	}
	account = CanonicalAccount(account)
	for _, a := range g.Accounts {
		if a == account || a == AnyAccount && account != RootAccount {
			return true
		}
	}
	return false
}

// GrantVerdict is what one grant says to a question.
type GrantVerdict struct {
	Allows bool
	Why    string // why not; "" when it allows
}

// GrantQuestion asks whether grants allow an action. Namespace "" means one that the grant covers, and Account "" one
// that it names.
type GrantQuestion struct {
	Action    Action
	Namespace string
	Host      HostRef
	Account   string
}

// Explain says for every grant whether it allows an action, and if not, why. A grant allows exactly what May allows by
// it.
func (r *Rights) Explain(q GrantQuestion) []GrantVerdict {
	if r == nil {
		return nil
	}

	list := make([]GrantVerdict, len(r.Grants))
	for i := range r.Grants {
		g := &r.Grants[i]
		account := q.Account
		if account == "" && len(g.Accounts) > 0 {
			account = strings.Replace(g.Accounts[0], AnyAccount, "some", 1)
		}
		for _, namespace := range g.examples(q.Namespace) {
			o := r.object(g, q.Action, namespace, q.Host, account)
			list[i] = GrantVerdict{Allows: o == objectNothing, Why: g.why(o, q.Action, namespace, account)}
			if list[i].Allows {
				break
			}
		}
	}

	return list
}

// examples are namespaces that stand for what a question is about: the one that it names, or those that a grant covers.
func (g *Grant) examples(namespace string) []string {
	if namespace != "" {
		return []string{namespace}
	}

	var list []string
	for _, biz := range g.Businesses {
		list = append(list, BusinessNamespace(biz))
	}
	for _, p := range g.Namespaces {
		list = append(list, strings.NewReplacer("*", "", "?", "x").Replace(p))
	}
	if len(list) == 0 {
		list = append(list, "any")
	}
	return list
}

// why is an objection in words.
func (g *Grant) why(o objection, a Action, namespace, account string) string {
	switch o {
	case objectNothing:
		return ""
	case objectAction:
		if a.OnAgent() && !g.anySpace() {
			return fmt.Sprintf("%s needs a grant for all namespaces, because an agent serves all of them", a)
		}
		if g.Role == RoleOperator {
			return fmt.Sprintf("its actions do not include %s", a)
		}
		return fmt.Sprintf("the role %s may not %s processes", g.Role, a)
	case objectSpace:
		return fmt.Sprintf("it does not cover the namespace %s", namespace)
	case objectAddrs:
		if g.Scope() == "" {
			return "it does not say which hosts it reaches"
		}
		return "no address of the host is in its networks and cloud areas"
	case objectAssigned:
		return fmt.Sprintf("the host is not assigned to the business of the namespace %s", namespace)
	}

	accounts := "it names no accounts"
	if len(g.Accounts) > 0 {
		accounts = "it names only the accounts " + strings.Join(g.Accounts, ", ")
	}
	return fmt.Sprintf("%s, not %s", accounts, CanonicalAccount(account))
}
