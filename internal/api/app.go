package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// getApps lists the apps, without their secrets.
func (a *api) getApps(w http.ResponseWriter, _ *http.Request, _ gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	list := client.AppList{Apps: []client.App{}}
	for _, app := range acc.Apps() {
		list.Apps = append(list.Apps, client.App{Code: app.Code, Secrets: len(app.Secrets), AssertsUsers: app.AssertsUsers,
			MissingActionMeansStart: app.MissingActionMeansStart, Signs: acc.Signs(app.Code),
			Grants: renderGrants(app.Grants), UnknownUsers: app.UnknownUsers, Disabled: app.Disabled})
	}

	list.Count = len(list.Apps)
	return answer(w, http.StatusOK, list)
}

// postApp makes an app. The answer has its secret, which no other answer shows.
func (a *api) postApp(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	var app auth.App
	var signing bool
	err = readFields[client.NewApp](w, r, maxAccountBody, func(root *strictjson.Value) {
		code, asserts, missing := root.Get("code"), root.Get("asserts_users"), root.Get("missing_op_type_means_start")
		signs, grants, unknown := root.Get("signs"), root.Get("grants"), root.Get("unknown_users")
		app.Code = requireName(&code)
		app.AssertsUsers, app.MissingActionMeansStart = asserts.OptBool(false), missing.OptBool(false)
		signing, app.UnknownUsers = signs.OptBool(false), new(unknown.OptBool(false))
		grants.OptList(maxGrantList, func(e *strictjson.Value) { app.Grants = append(app.Grants, readGrant(e)) })
	})
	if err != nil {
		return err
	}

	secret, err := acc.CreateApp(r.Context(), caller, app, signing)
	if err != nil {
		return err
	}

	return answer(w, http.StatusCreated, client.AppSecret{Code: app.Code, Secret: secret})
}

// putApp changes the flags of an app.
func (a *api) putApp(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	var f auth.Flags
	err = readFields[client.AppChange](w, r, maxAccountBody, func(root *strictjson.Value) {
		optional := func(name string) *bool {
			v := root.Get(name)
			if !v.Given() {
				return nil
			}
			b := v.Bool()
			return &b
		}
		f = auth.Flags{AssertsUsers: optional("asserts_users"),
			MissingActionMeansStart: optional("missing_op_type_means_start"),
			UnknownUsers:            optional("unknown_users"), Disabled: optional("disabled")}
	})
	if err != nil {
		return err
	}

	return done(w, acc.SetFlags(r.Context(), caller, r.PathValue("code"), f))
}

// deleteApp deletes an app.
func (a *api) deleteApp(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	return done(w, acc.DropApp(r.Context(), caller, r.PathValue("code")))
}

// postSecret makes a new secret for an app. No other answer shows it.
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
	return answer(w, http.StatusCreated, client.AppSecret{Code: code, Secret: secret})
}

// deleteSecrets revokes every secret of an app but its newest.
func (a *api) deleteSecrets(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	return done(w, acc.RetireSecrets(r.Context(), caller, r.PathValue("code")))
}
