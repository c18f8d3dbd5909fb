package api

import (
	"net/http"
	"net/url"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// The pages of the console that this API sends a browser to.
const (
	consolePage = "/console/"
	enterPage   = "/console/enter"
	signInPage  = "/console/sign-in"
)

// getSessionWays answers which ways in exist.
func (a *api) getSessionWays(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	return answer(w, http.StatusOK, client.SessionWays{Password: a.Accounts != nil,
		Provider: a.Provider != nil && a.Accounts != nil, Link: a.Accounts != nil && fromLoopback(r)})
}

// postSession opens a session of the console for a user with a password. It always makes a new secret: a cookie that was
// in the browser before does not become a session.
func (a *api) postSession(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	return a.openSession(w, r, func(acc *auth.Accounts) (string, auth.Session, error) {
		var user string
		var proof auth.Proof
		err := readFields[client.LoginRequest](w, r, maxShortBody, func(root *strictjson.Value) {
			u := root.Get("user")
			user, proof = requireName(&u), readProof(root)
		})
		if err != nil {
			return "", auth.Session{}, err
		}
		s, err := acc.OpenConsole(r.Context(), user, proof)
		return user, s, err
	})
}

// postSessionEnter opens a session by the code of a one-time link.
func (a *api) postSessionEnter(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	return a.openSession(w, r, func(acc *auth.Accounts) (string, auth.Session, error) {
		if !fromLoopback(r) {
			return "", auth.Session{}, gozzard.Errorf(gozzard.ErrUserForbidden,
				"a one-time link works on the machine of the server only: sign in with a name and a password")
		}
		var code string
		err := readFields[client.SessionCode](w, r, maxShortBody, func(root *strictjson.Value) {
			c := root.Get("code")
			code = readPassword(&c)
		})
		if err != nil {
			return "", auth.Session{}, err
		}
		s, err := acc.EnterLink(r.Context(), code)
		return s.Token.User, s, err
	})
}

// openSession opens a session, sends its cookie and answers it.
func (a *api) openSession(w http.ResponseWriter, r *http.Request,
	open func(*auth.Accounts) (user string, s auth.Session, err error)) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	if err := a.checkBrowser(r); err != nil {
		return err
	}

	var s auth.Session
	err = auth.Login(r, func() (user string, err error) {
		user, s, err = open(acc)
		return user, err
	})
	if err != nil {
		return err
	}

	_, caller, err := acc.Directory().CheckSession(s.Secret, true)
	if err != nil {
		return err
	}
	a.setCookie(w, r, s.Secret, s.Token.Expires)
	a.expectViewer(r, caller)
	return answer(w, http.StatusOK, a.renderSession(&s, caller))
}

// getSession answers the session of the cookie.
func (a *api) getSession(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	s, err := a.ownSession(r)
	if err != nil {
		return err
	}
	a.expectViewer(r, caller)
	return answer(w, http.StatusOK, a.renderSession(&s, caller))
}

// getSessions lists the sessions that the user of the cookie may end.
func (a *api) getSessions(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	s, err := a.ownSession(r)
	if err != nil {
		return err
	}

	list := client.UserTokenList{Tokens: []client.UserToken{}}
	for _, t := range a.Accounts.SessionsOf(s) {
		list.Tokens = append(list.Tokens, renderToken(&t, ""))
	}
	list.Count = len(list.Tokens)
	return answer(w, http.StatusOK, list)
}

// deleteSession logs out.
func (a *api) deleteSession(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	s, err := a.ownSession(r)
	if err != nil {
		return err
	}
	if err := a.Accounts.EndSession(r.Context(), s); err != nil {
		return err
	}
	a.setCookie(w, r, "", time.Time{})
	return done(w, nil)
}

// deleteOtherSessions ends all other sessions of the user.
func (a *api) deleteOtherSessions(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	s, err := a.ownSession(r)
	if err != nil {
		return err
	}
	_, err = a.Accounts.EndOthers(r.Context(), s)
	return done(w, err)
}

// ownSession is the session of a request that must have come with the cookie.
func (a *api) ownSession(r *http.Request) (auth.Session, error) {
	if a.cookie(r) == "" {
		return auth.Session{}, gozzard.Errorf(gozzard.ErrUnauthenticated,
			"this needs the cookie of a session of the console")
	}
	s, _, err := a.session(r, true)
	return s, err
}

// postSessionLink makes a one-time link to the console. The session has the rights of the caller: those of a person, or
// of an app that may do everything.
func (a *api) postSessionLink(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	switch {
	case !fromLoopback(r):
		return gozzard.Errorf(gozzard.ErrUserForbidden, "one-time links are made on the machine of the server only: "+
			"open /console/ in a browser and sign in with a name and a password")
	case a.cookie(r) != "":
		return gozzard.Errorf(gozzard.ErrUserForbidden, "a session of the console cannot make a link to another one")
	case !auth.Alone(caller) && !caller.Rights.All():
		return gozzard.Errorf(gozzard.ErrAppForbidden, "only an app with the role admin on everything can make a link: "+
			"sign in with a name and a password")
	}

	code, expires, err := acc.NewLink(caller)
	if err != nil {
		return err
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return answer(w, http.StatusOK, client.SessionLink{URL: LinkURL(scheme+r.Host, code),
		Expires: client.At(expires)})
}

// LinkURL is the URL of a one-time link to the console of the server at a URL.
func LinkURL(server, code string) string {
	return server + enterPage + "?" + url.Values{"code": {code}}.Encode()
}

func (a *api) renderSession(s *auth.Session, caller gozzard.Caller) client.Session {
	t := &s.Token
	return client.Session{User: t.User, App: t.App, ID: t.ID, Created: client.At(t.Created),
		Expires: client.At(t.Expires), IdleSeconds: int(a.Accounts.ConsoleIdle().Seconds()), CSRF: s.CSRF(),
		Can: renderCan(caller)}
}

// renderCan is what the caller could do on some part of the fleet. It decides what a page shows; each request is checked
// by itself.
func renderCan(caller gozzard.Caller) client.Can {
	r := caller.Rights
	some := func(list ...gozzard.Action) bool {
		for _, act := range list {
			if r.MaySomewhere(act) {
				return true
			}
		}
		return false
	}

	return client.Can{Admin: r.All(), SeeAll: r.SeesAll(),
		Operate: some(gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionRestart, gozzard.ActionReload,
			gozzard.ActionKill, gozzard.ActionHost, gozzard.ActionUnhost),
		Define: some(gozzard.ActionRegister, gozzard.ActionUpdate, gozzard.ActionUnregister),
		Enrol:  r.Has(gozzard.RoleEnroller), Audit: r.All(), Users: r.All(), Approve: r.All() && auth.Alone(caller),
		Topology: r.MaySomeBusiness()}
}
