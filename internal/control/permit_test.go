package control_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

// as is a definition with an account and a start command.
func as(user, start string) *gozzard.Spec {
	s := spec(60)
	s.Identity.User, s.Control.Start = user, start
	return s
}

// TestTE12AccountsOfDefinitions: every action needs the right to the account of the recorded definition, and to that of a
// definition that comes with it. A definition that is new or differs needs the right to define as well. What is
// permitted carries the account to the agent.
func TestTE12AccountsOfDefinitions(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	define := func(name, user string) {
		t.Helper()
		task, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: caller, Items: []gozzard.Item{{
			Action: gozzard.ActionUpdate, Key: gozzard.Key{Namespace: "gse", Name: name}, Spec: as(user, "./recorded"),
			Targets: []gozzard.Target{{Agent: me, ResultKey: string(me)}}}}})
		if err != nil {
			t.Fatal(err)
		}
		op := r.op(me, 1, task)
		if op.Account != "" {
			t.Errorf("a command of an admin of the whole fleet is for the account %q", op.Account)
		}
		r.report(me, 1, done(op, gozzard.CodeOK))
		r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	}
	define("shop", "shop")
	define("moved", "shop")
	define("root", "")
	define("number", "0")

	someone := func(actions gozzard.Actions, accounts ...string) gozzard.Caller {
		return gozzard.Caller{App: "app", User: "u", Rights: &gozzard.Rights{Grants: []gozzard.Grant{{
			Role: gozzard.RoleOperator, Namespaces: []string{"gse"}, Hosts: gozzard.HostsAny, Actions: actions,
			Accounts: accounts}}}}
	}
	everything, starts := gozzard.Actions(nil), gozzard.Actions{gozzard.ActionStart}
	viewer := gozzard.Caller{App: "app", User: "u", Rights: &gozzard.Rights{Grants: []gozzard.Grant{{
		Role: gozzard.RoleViewer}}}}
	for name, c := range map[string]struct {
		caller gozzard.Caller
		action gozzard.Action
		proc   string
		spec   *gozzard.Spec
		want   string // of the refusal; "": the command is sent
		as     string // account of the command
	}{
		"start":                  {someone(starts, "shop"), gozzard.ActionStart, "shop", nil, "", "shop"},
		"start as recorded":      {someone(starts, "shop"), gozzard.ActionStart, "shop", as("shop", "./recorded"), "", "shop"},
		"every account but root": {someone(starts, "*"), gozzard.ActionStart, "shop", nil, "", "shop"},
		"star is not root":       {someone(everything, "*"), gozzard.ActionStop, "root", nil, "as account root", ""},
		"nor the number 0":       {someone(everything, "*", "0"), gozzard.ActionKill, "number", nil, "as account root", ""},
		"root by its name":       {someone(everything, "root"), gozzard.ActionReload, "number", nil, "", "root"},
		"no account":             {someone(everything), gozzard.ActionStart, "shop", nil, "as account shop", ""},
		"unregister":             {someone(everything, "db"), gozzard.ActionUnregister, "shop", nil, "as account shop", ""},
		"host":                   {someone(everything, "db"), gozzard.ActionHost, "shop", nil, "as account shop", ""},
		"unhost": {someone(everything, "db"), gozzard.ActionUnhost, "shop", as("db", "./x"),
			"as account shop", ""},
		"update to root": {someone(everything, "shop"), gozzard.ActionUpdate, "shop", as("root", "./x"),
			"as account root", ""},
		"update of root": {someone(everything, "shop"), gozzard.ActionUpdate, "root", as("shop", "./x"),
			"as account root", ""},
		"update":           {someone(everything, "shop", "db"), gozzard.ActionUpdate, "moved", as("db", "./x"), "", "db"},
		"register":         {someone(everything, "shop"), gozzard.ActionRegister, "new1", as("", "./x"), "as account root", ""},
		"start differs":    {someone(starts, "shop"), gozzard.ActionStart, "root", as("shop", "./x"), "as account root", ""},
		"start is new":     {someone(starts, "shop"), gozzard.ActionStart, "new2", as("shop", "./x"), "is new, and", ""},
		"start and define": {someone(everything, "shop"), gozzard.ActionStart, "new3", as("shop", "./x"), "", "shop"},
		"start another": {someone(starts, "*", "root"), gozzard.ActionStart, "number", as("0", "./y"),
			"differs from the recorded one", ""},
		"not known":     {someone(everything, "*", "root"), gozzard.ActionStop, "none", nil, "no definition of", ""},
		"query":         {viewer, gozzard.ActionQuery, "root", nil, "", ""},
		"query unknown": {viewer, gozzard.ActionQuery, "none", nil, "", ""},
		"query new":     {viewer, gozzard.ActionQuery, "none", as("root", "./x"), "is new, and", ""},
		"query differs": {viewer, gozzard.ActionQuery, "root", as("root", "./x"), "differs from the recorded one", ""},
		"query defines": {someone(everything, "shop"), gozzard.ActionQuery, "none", as("root", "./x"), "as account root", ""},
	} {
		task, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: c.caller, Items: []gozzard.Item{{
			Action: c.action, Key: gozzard.Key{Namespace: "gse", Name: c.proc}, Spec: c.spec,
			Targets: []gozzard.Target{{Agent: me, ResultKey: "x"}}}}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := r.plane.Results(t.Context(), c.caller, task.ID)
		if err != nil {
			t.Fatal(err)
		}
		a := &res.Attempts[0]
		if refused := a.State == gozzard.AttemptNotExecuted; refused != (c.want != "") ||
			!strings.Contains(a.Outcome.Message, c.want) {
			t.Errorf("%s: %s %+v", name, a.State, a.Outcome)
			continue
		}
		if c.want == "" {
			op := r.op(me, 1, task)
			if op.Account != c.as || a.Account != c.as {
				t.Errorf("%s: the command is for the account %q, the record has %q", name, op.Account, a.Account)
			}
			r.report(me, 1, done(op, gozzard.CodeNotRunning))
		}
	}

	// What was refused is not recorded.
	for rec, err := range r.store.Processes(t.Context(), nil) {
		if err != nil || strings.HasPrefix(rec.ID.Name, "new") && rec.ID.Name != "new3" {
			t.Errorf("%s is recorded: %v", rec.ID.Key, err)
		}
	}
}

// TestTE18DefaultAccountInGrants: a definition without an account counts as one of the default account that the host reports,
// whatever the host writes there, and as root's if it reports none.
func TestTE18DefaultAccountInGrants(t *testing.T) {
	for reported, cases := range map[string]map[string]string{ // accounts of the grant: the refusal, or the account of the command
		"":                        {"shop": "no default account, which counts as root", "*": "counts as root", "root": "root"},
		"shop":                    {"shop": "shop", "*": "shop", "db": "this is the default account of the host", "root": "as account shop"},
		"root":                    {"shop": "as account root", "*": "as account root", "root": "root"},
		"0":                       {"*": "as account root", "root": "root"},
		"a\nb":                    {"*": "counts as root"},
		strings.Repeat("x", 1000): {"*": "counts as root"},
		"system":                  {"*": "as account root"},
	} {
		r := newRig(t)
		r.defaultAccount = reported
		r.hello(me, 1, journalA)
		for accounts, want := range cases {
			who := gozzard.Caller{App: "app", User: "u", Rights: &gozzard.Rights{Grants: []gozzard.Grant{{
				Role: gozzard.RoleOperator, Namespaces: []string{"gse"}, Hosts: gozzard.HostsAny,
				Accounts: []string{accounts}}}}}
			name := "p" + strings.ReplaceAll(accounts, "*", "any")
			for _, spec := range []*gozzard.Spec{as("", "./x"), nil} { // with the definition, and by the record
				task, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: who, Items: []gozzard.Item{{
					Action: gozzard.ActionStart, Key: gozzard.Key{Namespace: "gse", Name: name}, Spec: spec,
					Targets: []gozzard.Target{{Agent: me, ResultKey: "x"}}}}})
				if err != nil {
					t.Fatal(err)
				}
				res, err := r.plane.Results(t.Context(), who, task.ID)
				if err != nil {
					t.Fatal(err)
				}
				a := &res.Attempts[0]
				if a.State == gozzard.AttemptNotExecuted {
					if spec != nil && !strings.Contains(a.Outcome.Message, want) {
						t.Errorf("%.20q, grant %s: %s, want %s", reported, accounts, a.Outcome.Message, want)
					}
					continue
				}
				op := r.op(me, 1, task)
				if op.Account != want {
					t.Errorf("%.20q, grant %s: sent for the account %q, want %s", reported, accounts, op.Account, want)
				}
				r.report(me, 1, done(op, gozzard.CodeNotRunning))
			}
		}
	}
}
