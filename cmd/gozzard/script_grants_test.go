package main

import (
	"context"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// oldGrants makes the grants of an app and a user what versions before hosts and accounts recorded:
// oldgrants DATA APP USER.
func oldGrants(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: oldgrants DATA APP USER")
	}
	ctx := context.Background()
	store, err := sqlstore.OpenSQLite(ctx, filepath.Join(ts.MkAbs(args[0]), "gozzard.db"), sqlstore.Options{})
	ts.Check(err)
	c, _, err := store.LoadAccounts(ctx)
	ts.Check(err)

	change := auth.Change{By: gozzard.Caller{App: "test"}, Act: "grant:older"}
	for _, a := range c.Apps {
		if a.Code == args[1] {
			a.Grants = []gozzard.Grant{{Role: gozzard.RoleViewer}, {Role: gozzard.RoleOperator, Businesses: []int{2},
				Namespaces: []string{"shop*"}}, {Role: gozzard.RoleEnroller}}
			change.Apps = append(change.Apps, a)
		}
	}
	for _, u := range c.Users {
		if u.Name == args[2] {
			u.Grants = []gozzard.Grant{{Role: gozzard.RoleViewer, Namespaces: []string{"shop*"}}}
			change.Users = append(change.Users, u)
		}
	}
	ts.Check(store.ChangeAccounts(ctx, change))
	ts.Check(store.Close())
}
