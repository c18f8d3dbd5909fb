package api

import (
	"net/http"
	"net/netip"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// maxGrantList bounds each list of a grant, and how many grants one request gives.
const maxGrantList = 1000

type grantBody struct {
	Role       gozzard.Role   `json:"role"`
	Businesses []int          `json:"businesses,omitempty"`
	Namespaces []string       `json:"namespaces,omitempty"`
	Clouds     []int          `json:"clouds,omitempty"`
	Nets       []netip.Prefix `json:"nets,omitempty"`
	Actions    []string       `json:"actions,omitempty"`
}

func renderGrants(list []gozzard.Grant) []grantBody {
	out := make([]grantBody, 0, len(list))
	for i := range list {
		g := &list[i]
		b := grantBody{Role: g.Role, Businesses: g.Businesses, Namespaces: g.Namespaces, Clouds: g.Clouds, Nets: g.Nets}
		for _, a := range g.Actions {
			b.Actions = append(b.Actions, a.String())
		}
		out = append(out, b)
	}
	return out
}

// readGrant reads one grant; what it means together is checked by auth.ValidateGrant.
func readGrant(v *strictjson.Value) (g gozzard.Grant) {
	if !v.Object() {
		return g
	}

	v.Only("role", "businesses", "namespaces", "clouds", "nets", "actions")
	role, businesses, namespaces := v.Get("role"), v.Get("businesses"), v.Get("namespaces")
	clouds, nets, actions := v.Get("clouds"), v.Get("nets"), v.Get("actions")
	g.Role = gozzard.Role(role.Str())
	businesses.OptList(maxGrantList, func(e *strictjson.Value) {
		g.Businesses = append(g.Businesses,
			int(e.Int(1, 1<<40)))
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
			e.Fault("must be an action such as start or stop")
		}
		g.Actions = append(g.Actions, a)
	})

	if v.Faults().Len() == 0 {
		if err := auth.ValidateGrant(&g); err != nil {
			v.Fault("%v", err)
		}
	}

	return g
}

// readRequest reads the body of a change to accounts.
func readRequest(w http.ResponseWriter, r *http.Request, read func(root *strictjson.Value)) error {
	body, err := readUpTo(w, r, 1<<20)
	if err != nil {
		return err
	}
	var faults strictjson.Faults
	root, err := readObject(body, &faults)
	if err != nil {
		return err
	}
	read(&root)
	return faults.Err()
}

// accounts are those that can be changed here.
func (a *api) accounts() (*auth.Accounts, error) {
	if a.Accounts == nil {
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "accounts are not kept by this server")
	}
	return a.Accounts, nil
}

type whoBody struct {
	App      string      `json:"app"`
	User     string      `json:"user"`
	Asserted bool        `json:"asserted"`
	Grants   []grantBody `json:"grants"`
}

// getWho tells a caller who he is to this server and what he may do.
func (a *api) getWho(w http.ResponseWriter, _ *http.Request, caller gozzard.Caller) error {
	body := whoBody{App: caller.App, User: caller.User, Asserted: caller.Asserted, Grants: []grantBody{}}
	if caller.Rights != nil {
		body.Grants = renderGrants(caller.Rights.Grants)
	}
	return answer(w, http.StatusOK, body)
}

type heldBody struct {
	App   string    `json:"app,omitempty"`
	User  string    `json:"user,omitempty"`
	Grant grantBody `json:"grant"`
}

// getGrants lists every grant there is.
func (a *api) getGrants(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	q, err := readQuery(r)
	if err != nil {
		return err
	}
	if err := q.faults.Err(); err != nil {
		return err
	}

	list := []heldBody{}
	for _, app := range acc.Apps() {
		for _, g := range renderGrants(app.Grants) {
			list = append(list, heldBody{App: app.Code, Grant: g})
		}
	}

	for _, u := range acc.Users() {
		for _, g := range renderGrants(u.Grants) {
			list = append(list, heldBody{User: u.Name, Grant: g})
		}
	}

	return answer(w, http.StatusOK, struct {
		Count  int        `json:"count"`
		Grants []heldBody `json:"grants"`
	}{len(list), list})
}

// postGrant gives a grant to an app or a user.
func (a *api) postGrant(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	h, g, err := readHeld(w, r)
	if err != nil {
		return err
	}
	return done(w, acc.AddGrant(r.Context(), caller, h, g))
}

// deleteGrant takes a grant back.
func (a *api) deleteGrant(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	h, g, err := readHeld(w, r)
	if err != nil {
		return err
	}
	return done(w, acc.RemoveGrant(r.Context(), caller, h, g))
}

func readHeld(w http.ResponseWriter, r *http.Request) (h auth.Holder, g gozzard.Grant, err error) {
	err = readRequest(w, r, func(root *strictjson.Value) {
		root.Only("app", "user", "grant")
		app, user, grant := root.Get("app"), root.Get("user"), root.Get("grant")
		h.App, h.User = app.OptStr(), user.OptStr()
		if (h.App == "") == (h.User == "") {
			app.Fault("give either app or user")
		}
		g = readGrant(&grant)
	})
	return h, g, err
}

// done answers a change that has nothing to tell.
func done(w http.ResponseWriter, err error) error {
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, struct{}{})
}
