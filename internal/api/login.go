package api

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// getWhoAmI answers how the server knows the caller, and the caller's grants.
func (a *api) getWhoAmI(w http.ResponseWriter, _ *http.Request, caller gozzard.Caller) error {
	info := client.CallerInfo{App: caller.App, User: caller.User, Asserted: caller.Asserted, Grants: []client.Grant{}}
	if caller.Rights != nil {
		info.Grants = renderGrants(caller.Rights.Grants)
	}
	return answer(w, http.StatusOK, info)
}

// postLogin opens a session for a user with a password.
func (a *api) postLogin(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	var secret string
	var t auth.Token
	err = auth.Login(r, func() (string, error) {
		var user string
		var proof auth.Proof
		err := readFields[client.LoginRequest](w, r, maxAccountBody, func(root *strictjson.Value) {
			u := root.Get("user")
			user, proof = requireName(&u), readProof(root)
		})
		if err != nil {
			return "", err
		}
		secret, t, err = acc.LoginWith(r.Context(), user, proof)
		return user, err
	})
	if err != nil {
		return err
	}

	return answer(w, http.StatusOK, renderToken(&t, secret))
}

// postLogout revokes the token that the request carries.
func (a *api) postLogout(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	if !auth.Alone(caller) {
		return gozzard.Errorf(gozzard.ErrInvalid, "only the token of a user without an app can be revoked here")
	}
	return done(w, acc.Logout(r.Context(), auth.BearerToken(r)))
}

// A login that has begun at the provider is stored in a cookie of the browser.
const (
	attemptCookie = "gozzard_login"
	attemptLife   = 10 * time.Minute
	attemptPath   = "/login/oidc"
)

func (a *api) provider() (*auth.Provider, error) {
	if a.Provider == nil || a.Accounts == nil {
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "this server has no login provider")
	}
	return a.Provider, nil
}

// getProviderLogin sends a browser to the login provider.
func (a *api) getProviderLogin(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	p, err := a.provider()
	if err != nil {
		return err
	}

	// Begin the login.
	var address string
	var attempt auth.Attempt
	err = auth.Login(r, func() (_ string, err error) {
		address, attempt, err = p.Begin(r.Context())
		return "", err
	})
	if err != nil {
		return err
	}

	// Store it in a cookie, and redirect.
	text, err := json.Marshal(attempt)
	if err != nil {
		return err
	}
	setAttempt(w, r, base64.RawURLEncoding.EncodeToString(text), attemptLife)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusFound)
	return nil
}

// setAttempt sends the cookie. It must be Lax, because the provider sends the browser back from another site.
func setAttempt(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: attemptCookie, Value: value, Path: attemptPath, MaxAge: int(life.Seconds()),
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode})
}

// getProviderCallback opens a session for a browser that comes back from the login provider. No other answer shows the
// token of the session.
func (a *api) getProviderCallback(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	p, err := a.provider()
	if err != nil {
		return err
	}

	// Read the login from the cookie, and delete the cookie: a login has one try.
	var attempt auth.Attempt
	if c, err := r.Cookie(attemptCookie); err == nil {
		if text, err := base64.RawURLEncoding.DecodeString(c.Value); err == nil {
			_ = json.Unmarshal(text, &attempt) // a malformed cookie is rejected below, like a missing one
		}
	}
	setAttempt(w, r, "", -time.Second)

	// Finish the login.
	var secret string
	var t auth.Token
	err = auth.Login(r, func() (string, error) {
		q := r.URL.Query()
		if q.Get("error") != "" {
			return "", gozzard.Errorf(gozzard.ErrUnauthenticated, "the login provider rejects the login: %q",
				clip(q.Get("error")))
		}
		person, err := p.Finish(r.Context(), attempt, q.Get("state"), q.Get("code"))
		if err != nil {
			return "", err
		}
		secret, t, err = a.Accounts.LoginSubject(r.Context(), person.Name, person.Subject, person.Groups...)
		return person.Name, err
	})
	if err != nil {
		return err
	}

	w.Header().Set("Referrer-Policy", "no-referrer")
	return answer(w, http.StatusOK, renderToken(&t, secret))
}
