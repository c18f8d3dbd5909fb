package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

type appBody struct {
	Code                    string      `json:"code"`
	Secrets                 int         `json:"secrets"` // how many are valid
	AssertsUsers            bool        `json:"asserts_users"`
	MissingActionMeansStart bool        `json:"missing_op_type_means_start"`
	Signs                   bool        `json:"signs"`
	Grants                  []grantBody `json:"grants"`
}

// secretBody is the only answer in which a secret is told.
type secretBody struct {
	Code   string `json:"code"`
	Secret string `json:"secret"`
}

// getApps lists the apps, without their secrets.
func (a *api) getApps(w http.ResponseWriter, _ *http.Request, _ gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	list := []appBody{}
	for _, app := range acc.Apps() {
		list = append(list, appBody{Code: app.Code, Secrets: len(app.Secrets), AssertsUsers: app.AssertsUsers,
			MissingActionMeansStart: app.MissingActionMeansStart, Signs: acc.Signs(app.Code),
			Grants: renderGrants(app.Grants)})
	}

	return answer(w, http.StatusOK, struct {
		Count int       `json:"count"`
		Apps  []appBody `json:"apps"`
	}{len(list), list})
}

// postApp makes an app and tells its secret, this once.
func (a *api) postApp(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	var app auth.App
	var signing bool
	err = readRequest(w, r, func(root *strictjson.Value) {
		root.Only("code", "asserts_users", "missing_op_type_means_start", "signs", "grants")
		code, asserts, missing := root.Get("code"), root.Get("asserts_users"), root.Get("missing_op_type_means_start")
		signs, grants := root.Get("signs"), root.Get("grants")
		app.Code = requireName(&code)
		app.AssertsUsers, app.MissingActionMeansStart, signing = asserts.OptBool(false), missing.OptBool(false),
			signs.OptBool(false)
		grants.OptList(maxGrantList, func(e *strictjson.Value) { app.Grants = append(app.Grants, readGrant(e)) })
	})

	if err != nil {
		return err
	}

	secret, err := acc.CreateApp(r.Context(), caller, app, signing)
	if err != nil {
		return err
	}

	return answer(w, http.StatusCreated, secretBody{app.Code, secret})
}

// putApp changes switches of an app.
func (a *api) putApp(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	var f auth.Flags
	err = readRequest(w, r, func(root *strictjson.Value) {
		root.Only("asserts_users", "missing_op_type_means_start")
		optional := func(name string) *bool {
			v := root.Get(name)
			if !v.Given() {
				return nil
			}
			b := v.Bool()
			return &b
		}
		f = auth.Flags{AssertsUsers: optional("asserts_users"),
			MissingActionMeansStart: optional("missing_op_type_means_start")}
	})

	if err != nil {
		return err
	}

	return done(w, acc.SetFlags(r.Context(), caller, r.PathValue("code"), f))
}

// deleteApp makes an app unknown.
func (a *api) deleteApp(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	return done(w, acc.DropApp(r.Context(), caller, r.PathValue("code")))
}

// postSecret gives an app its next secret and tells it, this once.
func (a *api) postSecret(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	code := r.PathValue("code")
	secret, err := acc.AddSecret(r.Context(), caller, code)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, secretBody{code, secret})
}

// deleteSecrets ends every secret of an app but its newest.
func (a *api) deleteSecrets(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	return done(w, acc.RetireSecrets(r.Context(), caller, r.PathValue("code")))
}
