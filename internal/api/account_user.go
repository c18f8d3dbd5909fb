package api

import (
	"math"
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

type userBody struct {
	Name     string      `json:"name"`
	Password bool        `json:"password"`          // there is one
	Subject  string      `json:"subject,omitempty"` // who it is to the login provider
	Disabled bool        `json:"disabled"`
	Grants   []grantBody `json:"grants"`
}

type tokenBody struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`
	Note    string    `json:"note,omitempty"`
	Session bool      `json:"session"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	Token   string    `json:"token,omitempty"` // told once, when it is made
}

func renderToken(t *auth.Token, secret string) tokenBody {
	return tokenBody{ID: t.ID, User: t.User, Note: t.Note, Session: t.Session, Created: t.Created, Expires: t.Expires,
		Token: secret}
}

// getUsers lists a page of the people, without anything they prove themselves with.
func (a *api) getUsers(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	q, err := readQuery(r, "start", "limit")
	if err != nil {
		return err
	}

	start, limit := q.number("start", 0, 0, math.MaxInt32), q.number("limit", defaultPage, 1, maxPage)

	if err := q.faults.Err(); err != nil {
		return err
	}

	all, list := acc.Users(), []userBody{}
	first := min(start, len(all))
	for _, u := range all[first:min(len(all), first+limit)] {
		list = append(list, userBody{Name: u.Name, Password: acc.HasPassword(u.Name), Subject: u.Subject,
			Disabled: u.Disabled, Grants: renderGrants(u.Grants)})
	}

	return answer(w, http.StatusOK, struct {
		Count int        `json:"count"`
		Users []userBody `json:"users"`
	}{len(all), list})
}

// postUser makes a person known.
func (a *api) postUser(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	var u auth.User
	var secret string
	err = readRequest(w, r, func(root *strictjson.Value) {
		root.Only("name", "password", "grants")
		name, password, grants := root.Get("name"), root.Get("password"), root.Get("grants")
		u.Name, secret = requireName(&name), readPassword(&password)
		grants.OptList(maxGrantList, func(e *strictjson.Value) { u.Grants = append(u.Grants, readGrant(e)) })
	})

	if err != nil {
		return err
	}
	if err := acc.CreateUser(r.Context(), caller, u, secret); err != nil {
		return err
	}

	return answer(w, http.StatusCreated, struct{}{})
}

// readPassword reads an optional password. A value of another kind is not shown back.
func readPassword(v *strictjson.Value) string {
	if !v.Given() {
		return ""
	}
	if !v.IsString() {
		v.Fault("must be a string")
		return ""
	}
	return v.AnyStr()
}

// putUser disables or enables a person, or forgets who he is to the login provider.
func (a *api) putUser(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	var disabled *bool
	var forget bool
	err = readRequest(w, r, func(root *strictjson.Value) {
		root.Only("disabled", "forget_subject")
		flag, subject := root.Get("disabled"), root.Get("forget_subject")
		if flag.Given() {
			b := flag.Bool()
			disabled = &b
		}
		if forget = subject.OptBool(false); forget == (disabled != nil) {
			flag.Fault("give either disabled or forget_subject")
		}
	})

	if err != nil {
		return err
	}

	name := r.PathValue("name")

	if forget {
		return done(w, acc.ForgetSubject(r.Context(), caller, name))
	}

	return done(w, acc.Disable(r.Context(), caller, name, *disabled))
}

// deleteUser makes a person unknown, with all his tokens.
func (a *api) deleteUser(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	return done(w, acc.DropUser(r.Context(), caller, r.PathValue("name")))
}

// putPassword sets a person's password. An admin may for everybody; people may their own, with the one they have.
func (a *api) putPassword(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	name := r.PathValue("name")
	if err := selfOrAdmin(caller, name); err != nil {
		return err
	}

	var old, next string
	err = readRequest(w, r, func(root *strictjson.Value) {
		root.Only("old", "password")
		o, p := root.Get("old"), root.Get("password")
		old, next = readPassword(&o), readPassword(&p)
		if next == "" {
			p.Fault("required")
		}
	})

	if err != nil {
		return err
	}

	if !caller.Rights.All() {
		if err := auth.Login(r, func() (string, error) {
			return name,
				acc.CheckPassword(r.Context(), name, old)
		}); err != nil {
			return err
		}
	}

	return done(w, acc.SetPassword(r.Context(), caller, name, next))
}

// selfOrAdmin lets people see to their own login. An app that speaks for somebody is not that person.
func selfOrAdmin(caller gozzard.Caller, name string) error {
	if caller.Rights.All() || auth.Alone(caller) && caller.User == name {
		return nil
	}
	return gozzard.Errorf(gozzard.ErrUserForbidden, "this needs the role admin on everything")
}

// getTokens lists the tokens of a person.
func (a *api) getTokens(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	name := r.PathValue("name")
	if err := selfOrAdmin(caller, name); err != nil {
		return err
	}

	list := []tokenBody{}
	for _, t := range acc.Tokens(name) {
		list = append(list, renderToken(&t, ""))
	}

	return answer(w, http.StatusOK, struct {
		Count  int         `json:"count"`
		Tokens []tokenBody `json:"tokens"`
	}{len(list), list})
}

const (
	tokenDays    = 90 // unless told otherwise
	maxTokenDays = int64(auth.MaxTokenLife / (24 * time.Hour))
)

// postToken makes a token of a person and tells it, this once.
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
	err = readRequest(w, r, func(root *strictjson.Value) {
		root.Only("note", "days")
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

// deleteToken revokes a token of a person.
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
