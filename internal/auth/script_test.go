package auth_test

import (
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// TestScriptMustBeListed: only a grant that lists the action gives the right to run scripts, and to transfer files. What two
// lists of grants share has it only if both list it.
func TestScriptMustBeListed(t *testing.T) {
	for _, action := range []gozzard.Action{gozzard.ActionScript, gozzard.ActionTransfer} {
		t.Run(action.String(), func(t *testing.T) { mustBeListed(t, action) })
	}
}

func mustBeListed(t *testing.T, action gozzard.Action) {
	const any = gozzard.HostsAny
	listed := gozzard.Grant{Role: gozzard.RoleOperator, Hosts: any, Actions: gozzard.Actions{action, gozzard.ActionStart},
		Accounts: []string{"nobody"}}
	admin := gozzard.Grant{Role: gozzard.RoleAdmin, Hosts: any}
	operator := gozzard.Grant{Role: gozzard.RoleOperator, Hosts: any, Accounts: []string{"*", "root"}}
	viewer := gozzard.Grant{Role: gozzard.RoleViewer, Hosts: any}
	may := func(grants []gozzard.Grant, account string) bool {
		r := gozzard.Rights{Grants: grants}
		return r.May(action, "gse-task", gozzard.HostRef{Agent: "a"}, account)
	}

	for _, g := range []gozzard.Grant{admin, operator, viewer} {
		if may([]gozzard.Grant{g}, "nobody") {
			t.Errorf("%s has the right", g.Role)
		}
		if may(auth.Intersect([]gozzard.Grant{g}, []gozzard.Grant{listed}), "nobody") {
			t.Errorf("%s and a list share the right", g.Role)
		}
	}
	both := auth.Intersect([]gozzard.Grant{listed}, []gozzard.Grant{listed})
	if !may([]gozzard.Grant{listed}, "nobody") || !may(both, "nobody") || may(both, "daemon") || may([]gozzard.Grant{listed, admin}, "daemon") {
		t.Error("a list gives the right for its accounts, and only for them")
	}
}

// TestTT17RestartMustBeNamed: admins of all namespaces restart agents, and operators by a grant for all namespaces that lists the
// action. What two lists of grants share has it only if both have it.
func TestTT17RestartMustBeNamed(t *testing.T) {
	const any, restart = gozzard.HostsAny, gozzard.ActionRestartAgent
	listed := gozzard.Grant{Role: gozzard.RoleOperator, Hosts: any, Actions: gozzard.Actions{restart, gozzard.ActionStart}}
	admin := gozzard.Grant{Role: gozzard.RoleAdmin, Hosts: any}
	some := gozzard.Grant{Role: gozzard.RoleAdmin, Hosts: any, Namespaces: []string{"*"}, Accounts: []string{"*", "root"}}
	business := gozzard.Grant{Role: gozzard.RoleAdmin, Businesses: []int{2}, Accounts: []string{"*", "root"}}
	operator := gozzard.Grant{Role: gozzard.RoleOperator, Hosts: any, Accounts: []string{"*", "root"}}
	viewer := gozzard.Grant{Role: gozzard.RoleViewer, Hosts: any}
	narrow := listed
	narrow.Namespaces = []string{"gozzard-agent"}

	key := gozzard.AgentKey()
	may := func(grants ...gozzard.Grant) bool {
		r := gozzard.Rights{Grants: grants, Assigned: func(int, gozzard.HostRef) bool { return true }}
		host := gozzard.HostRef{Agent: "a"}
		if r.May(restart, key.Namespace, host, "") != r.MayOn(restart, key.Namespace, host) {
			t.Errorf("%+v: the account matters", grants)
		}
		return r.MayOn(restart, key.Namespace, host)
	}
	for _, g := range []gozzard.Grant{listed, admin} {
		if !may(g) {
			t.Errorf("may not: %+v", g)
		}
		if !may(auth.Intersect([]gozzard.Grant{g}, []gozzard.Grant{admin})...) {
			t.Errorf("may not together with an admin: %+v", g)
		}
	}
	for _, g := range []gozzard.Grant{some, business, operator, viewer, narrow} {
		if may(g) {
			t.Errorf("may: %+v", g)
		}
		for _, other := range []gozzard.Grant{listed, admin} {
			if may(auth.Intersect([]gozzard.Grant{g}, []gozzard.Grant{other})...) || may(auth.Intersect([]gozzard.Grant{other}, []gozzard.Grant{g})...) {
				t.Errorf("may together with %+v: %+v", other, g)
			}
		}
	}
}
