package api

import (
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// How long a token is valid, in days.
const (
	tokenDays    = 90
	maxTokenDays = int64(auth.MaxTokenLife / (24 * time.Hour))
)

// getTokens lists the tokens of a user.
func (a *api) getTokens(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	name := r.PathValue("name")
	if err := selfOrAdmin(caller, name); err != nil {
		return err
	}

	list := client.UserTokenList{Tokens: []client.UserToken{}}
	for _, t := range acc.Tokens(name) {
		list.Tokens = append(list.Tokens, renderToken(&t, ""))
	}

	list.Count = len(list.Tokens)
	return answer(w, http.StatusOK, list)
}

// postToken makes a token of a user. No other answer shows its text.
func (a *api) postToken(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	name := r.PathValue("name")
	if err := selfOrAdmin(caller, name); err != nil {
		return err
	}

	var note string
	var days int64
	err = readFields[client.NewUserToken](w, r, maxAccountBody, func(root *strictjson.Value) {
		n, d := root.Get("note"), root.Get("days")
		note, days = n.OptStr(), d.OptInt(tokenDays, 1, maxTokenDays)
	})
	if err != nil {
		return err
	}

	secret, t, err := acc.CreateToken(r.Context(), caller, name, note, time.Duration(days)*24*time.Hour)
	if err != nil {
		return err
	}

	return answer(w, http.StatusCreated, renderToken(&t, secret))
}

// deleteToken revokes a token of a user.
func (a *api) deleteToken(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if err := selfOrAdmin(caller, name); err != nil {
		return err
	}
	return done(w, acc.DropToken(r.Context(), caller, name, r.PathValue("id")))
}

func renderToken(t *auth.Token, secret string) client.UserToken {
	return client.UserToken{ID: t.ID, User: t.User, Note: t.Note, Session: t.Session, Created: t.Created,
		Expires: t.Expires, Token: secret}
}
