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

	// Read the request.
	var note, app string
	var days int64
	var proof auth.Proof
	err = readFields[client.NewUserToken](w, r, maxAccountBody, func(root *strictjson.Value) {
		n, d, c := root.Get("note"), root.Get("days"), root.Get("app")
		note, days, app = n.OptStr(), d.OptInt(0, 1, maxTokenDays), c.OptStr()
		proof = readProof(root)
	})
	if err != nil {
		return err
	}

	// A person proves itself again, so that a stolen session makes no token.
	if auth.Alone(caller) || caller.Session != "" {
		prove := func() (string, error) {
			return caller.User, acc.ProveAgain(r.Context(), a.carried(r), proof)
		}
		if err := auth.Login(r, prove); err != nil {
			return err
		}
	}

	// Make the token.
	life := time.Duration(days) * 24 * time.Hour
	if days == 0 {
		life = min(tokenDays*24*time.Hour, acc.MaxTokenAge())
	}
	var secret string
	var t auth.Token
	if app != "" {
		secret, t, err = acc.CreateAppToken(r.Context(), caller, name, app, note, life)
	} else {
		secret, t, err = acc.CreateToken(r.Context(), caller, name, note, life)
	}
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
	return client.UserToken{ID: t.ID, User: t.User, Note: t.Note, Session: t.Session, Created: client.At(t.Created),
		Expires: client.At(t.Expires), Token: secret, Kind: string(t.Kind), App: t.App, Groups: t.Groups}
}
