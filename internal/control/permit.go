package control

import (
	"bytes"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// permit rejects attempts whose definition the caller has no right to. Two things count. The first is the account: that
// of the recorded definition, and that of a definition which comes with the attempt. The second is who may define: a
// definition that is new needs the right to register, one that differs from the record the right to update, whatever
// the action is. Without this rule the right to start would be the right to run anything.
//
// The account that was judged goes with the command, and the agent compares it with the definition that it has. A
// definition without an account means the default account that the host reports; the agent knows whether it still has it.
func (p *Plane) permit(d *draft, caller gozzard.Caller, recs map[gozzard.ProcID]record.Process) {
	all := caller.Rights.All()
	known := definitions{}
	for i := range d.task.Attempts {
		a := &d.task.Attempts[i]
		if a.State.Final() || all && !a.Action.Listed() || a.Action.OnAgent() { // begin has judged it: it has no account
			continue
		}
		q := judged{caller: caller, attempt: a, given: &d.given[i]}
		if rec, ok := recs[gozzard.ProcID{Agent: a.Agent, Key: a.Key}]; ok && a.Action.OnProcess() {
			q.rec = known.read(rec.Spec)
		}
		if out := q.reject(); out != nil {
			p.o.Observe.rejected("not_permitted")
			a.State, a.Session, a.Outcome = gozzard.AttemptNotExecuted, 0, *out
		}
	}
}

// definition is a recorded definition: decoded once for all attempts that have it.
type definition struct {
	encoded []byte // as this version of the program encodes it
	account string
	unnamed bool // it names no account
}

// accountOn is the account of the definition on the host of an attempt.
func (d *definition) accountOn(g *givenSpec) string {
	if d.unnamed {
		return gozzard.CanonicalAccount(g.account)
	}
	return d.account
}

type definitions map[string]*definition

// read decodes a recorded definition. One that cannot be read counts as root's: only its owner knows better.
func (l definitions) read(b []byte) *definition {
	if d, ok := l[string(b)]; ok {
		return d
	}
	d := &definition{encoded: b, account: gozzard.RootAccount}
	if s, err := gozzard.DecodeSpec(b); err == nil {
		d.encoded, d.account, d.unnamed = gozzard.EncodeSpec(s), s.Account(), s.Identity.User == ""
	}
	l[string(b)] = d
	return d
}

// judged is whether a caller may do one attempt.
type judged struct {
	caller  gozzard.Caller
	attempt *gozzard.Attempt
	given   *givenSpec
	rec     *definition // nil: the process is not recorded
}

// reject gives the verdict on an attempt that is not permitted, nil for the others, and notes the account of those.
func (q *judged) reject() *gozzard.Outcome {
	a := q.attempt

	// Drop a definition that the action does not use.
	given := q.given.spec
	if a.Action == gozzard.ActionUnregister || a.Action == gozzard.ActionUnhost && q.rec != nil {
		given = nil
	}

	// Reject an action on a process whose definition, and so whose account, is not known.
	if given == nil && q.rec == nil {
		if a.Action.ReadOnly() {
			return nil
		}
		return &gozzard.Outcome{Code: gozzard.CodeNoDefinition,
			Message: fmt.Sprintf("no definition of %s on this host: register it first", a.Key)}
	}

	// Judge the recorded definition.
	if q.rec != nil && !a.Action.ReadOnly() {
		if a.Account = q.rec.accountOn(q.given); !q.may(a.Action, a.Account) {
			return q.refuseAccount(a.Action, a.Account)
		}
	}
	if given == nil {
		return nil
	}

	// Judge the definition that came with the attempt.
	if q.rec != nil && bytes.Equal(q.given.encoded, q.rec.encoded) {
		return nil
	}
	if out := q.rejectDefinition(); out != nil {
		return out
	}
	a.Account = given.AccountOn(q.given.account)
	if !q.may(a.Action, a.Account) {
		return q.refuseAccount(a.Action, a.Account)
	}
	return nil
}

// rejectDefinition rejects a definition that is new or differs from the recorded one when the caller may not define.
func (q *judged) rejectDefinition() *gozzard.Outcome {
	a := q.attempt
	if a.Action == gozzard.ActionRegister || a.Action == gozzard.ActionUpdate || !a.Action.OnProcess() {
		return nil
	}

	need, why := gozzard.ActionRegister, "is new"
	accounts := []string{q.given.spec.AccountOn(q.given.account)}
	if q.rec != nil {
		need, why = gozzard.ActionUpdate, "differs from the recorded one"
		accounts = append(accounts, q.rec.accountOn(q.given))
	}

	if !q.mayOn(need) {
		return &gozzard.Outcome{Code: gozzard.CodeRefused, Message: fmt.Sprintf(
			"not permitted: the definition of %s %s, and app %s may not %s processes of %s here: leave the definition out",
			a.Key, why, q.caller.App, need, a.Key.Namespace)}
	}
	for _, account := range accounts {
		if !q.may(need, account) {
			return q.refuseAccount(need, account)
		}
	}
	return nil
}

func (q *judged) may(a gozzard.Action, account string) bool {
	return q.caller.Rights.May(a, q.attempt.Key.Namespace, q.given.host, account)
}

func (q *judged) mayOn(a gozzard.Action) bool {
	return q.caller.Rights.MayOn(a, q.attempt.Key.Namespace, q.given.host)
}

func (q *judged) refuseAccount(a gozzard.Action, account string) *gozzard.Outcome {
	why := ""
	if given := q.given.spec; given != nil && given.Identity.User == "" || given == nil && q.rec != nil && q.rec.unnamed {
		why = ": the definition names no account, and this is the default account of the host"
		if q.given.account == "" {
			why = ": the definition names no account, and the host has no default account, which counts as root: name one"
		}
	}
	return &gozzard.Outcome{Code: gozzard.CodeRefused, Message: fmt.Sprintf(
		"not permitted: app %s may not %s processes of %s as account %s here%s", q.caller.App, a,
		q.attempt.Key.Namespace, account, why)}
}
