package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"reflect"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// maxGrantList is the largest number of entries in a list of a grant, and of grants in one request.
const maxGrantList = 1000

// accounts are the accounts that callers can change.
func (a *api) accounts() (*auth.Accounts, error) {
	if a.Accounts == nil {
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "this server has no accounts to change")
	}
	return a.Accounts, nil
}

// getGrants lists every grant with its holder.
func (a *api) getGrants(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	if err := a.noQuery(r); err != nil {
		return err
	}

	list := client.GrantList{Grants: []client.HeldGrant{}}
	for _, app := range acc.Apps() {
		for _, g := range renderGrants(app.Grants) {
			list.Grants = append(list.Grants, client.HeldGrant{App: app.Code, Grant: g})
		}
	}
	for _, u := range acc.Users() {
		for _, g := range renderGrants(u.Grants) {
			list.Grants = append(list.Grants, client.HeldGrant{User: u.Name, Grant: g})
		}
	}

	for _, group := range acc.Groups() {
		for _, g := range renderGrants(group.Grants) {
			list.Grants = append(list.Grants, client.HeldGrant{Group: group.Name, Grant: g})
		}
	}

	list.Count = len(list.Grants)
	return answer(w, http.StatusOK, list)
}

// postGrant gives a grant to an app, a user or a group.
func (a *api) postGrant(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	h, g, err := readHeldGrant(w, r)
	if err != nil {
		return err
	}
	return done(w, acc.AddGrant(r.Context(), caller, h, g))
}

// deleteGrant removes a grant from an app, a user or a group.
func (a *api) deleteGrant(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	h, g, err := readHeldGrant(w, r)
	if err != nil {
		return err
	}
	return done(w, acc.RemoveGrant(r.Context(), caller, h, g))
}

func readHeldGrant(w http.ResponseWriter, r *http.Request) (h auth.Holder, g gozzard.Grant, err error) {
	err = readFields[client.HeldGrant](w, r, maxAccountBody, func(root *strictjson.Value) {
		app, user, group, grant := root.Get("app"), root.Get("user"), root.Get("group"), root.Get("grant")
		h.App, h.User, h.Group = app.OptStr(), user.OptStr(), group.OptStr()
		if given := len(h.App+h.User+h.Group) > 0; !given || h != (auth.Holder{App: h.App}) &&
			h != (auth.Holder{User: h.User}) && h != (auth.Holder{Group: h.Group}) {
			app.Fault("give either app, user or group")
		}
		g = readGrant(&grant)
	})
	return h, g, err
}

// grantFields are the fields of client.Grant.
var grantFields = fieldNames(reflect.TypeFor[client.Grant]())

// readGrant reads one grant and checks it.
func readGrant(v *strictjson.Value) (g gozzard.Grant) {
	if !v.Object() {
		return g
	}

	// Read the fields.
	v.Only(grantFields...)
	role, businesses, namespaces := v.Get("role"), v.Get("businesses"), v.Get("namespaces")
	clouds, nets, actions := v.Get("clouds"), v.Get("nets"), v.Get("actions")
	hosts, accounts := v.Get("hosts"), v.Get("accounts")
	g.Role = gozzard.Role(role.Str())
	businesses.OptList(maxGrantList, func(e *strictjson.Value) {
		g.Businesses = append(g.Businesses, int(e.Int(1, 1<<40)))
	})
	namespaces.OptList(maxGrantList, func(e *strictjson.Value) { g.Namespaces = append(g.Namespaces, e.Str()) })
	clouds.OptList(maxGrantList, func(e *strictjson.Value) { g.Clouds = append(g.Clouds, int(e.Int(0, 1<<31))) })
	nets.OptList(maxGrantList, func(e *strictjson.Value) {
		n, err := netip.ParsePrefix(e.Str())
		if err != nil {
			e.Fault("must be a network such as 10.1.0.0/16")
		}
		g.Nets = append(g.Nets, n)
	})
	actions.OptList(maxGrantList, func(e *strictjson.Value) {
		a, err := gozzard.ParseAction(e.Str())
		if err != nil {
			e.Fault("%v", notAnAction(e.Str(), gozzard.ActionWords()))
		}
		g.Actions = append(g.Actions, a)
	})

	accounts.OptList(maxGrantList, func(e *strictjson.Value) { g.Accounts = append(g.Accounts, e.Str()) })
	g.Hosts = gozzard.HostScope(hosts.OptStr())
	g.Hosts = g.Scope()

	// Check them together.
	if v.Faults().Len() == 0 {
		if err := auth.ValidateGrant(&g); err != nil {
			v.Fault("%v", err)
		}
	}

	return g
}

// words is the texts of a list, nil for an empty list.
func words[T fmt.Stringer](list []T) []string {
	var out []string
	for _, v := range list {
		out = append(out, v.String())
	}
	return out
}

func renderGrants(list []gozzard.Grant) []client.Grant {
	out := make([]client.Grant, 0, len(list))
	for i := range list {
		g := &list[i]
		grant := client.Grant{Role: string(g.Role), Businesses: g.Businesses, Namespaces: g.Namespaces, Clouds: g.Clouds,
			Nets: words(g.Nets), Actions: words(g.Actions), Accounts: g.Accounts}
		if len(g.Businesses)+len(g.Namespaces) > 0 { // the others say it by their lists
			grant.Hosts = string(g.Scope())
		}
		out = append(out, grant)
	}
	return out
}
