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
