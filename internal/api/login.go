package api

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// postLogin opens a session for a person with a password.
func (a *api) postLogin(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	var secret string
	var t auth.Token
	err = auth.Login(r, func() (string, error) {
		var user, password string
		err := readRequest(w, r, func(root *strictjson.Value) {
			root.Only("user", "password")
			u, p := root.Get("user"), root.Get("password")
			user, password = requireName(&u), readPassword(&p)
		})
		if err != nil {
			return "", err
		}
		secret, t, err = acc.Login(r.Context(), user, password)
		return user, err
	})

	if err != nil {
		return err
	}

	return answer(w, http.StatusOK, renderToken(&t, secret))
}

// postLogout ends the token that the caller came with.
func (a *api) postLogout(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	if !auth.Alone(caller) {
		return gozzard.Errorf(gozzard.ErrInvalid, "only a person's own token can be ended here")
	}
	return done(w, acc.Logout(r.Context(), auth.BearerToken(r)))
}

// A login at the provider under way is in a cookie of the browser that began it.
const (
	attemptCookie = "gozzard_login"
	attemptLife   = 10 * time.Minute
	attemptPath   = "/login/oidc"
)

func (a *api) provider() (*auth.Provider, error) {
	if a.Provider == nil || a.Accounts == nil {
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "there is no login provider")
	}
	return a.Provider, nil
}

// getProviderLogin sends a person to the login provider.
func (a *api) getProviderLogin(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	p, err := a.provider()
	if err != nil {
		return err
	}

	var address string
	var attempt auth.Attempt
	if err := auth.Login(r, func() (_ string, err error) {
		address, attempt, err = p.Begin(r.Context())
		return "",
			err
	}); err != nil {
		return err
	}

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

// setAttempt sends the cookie. Lax: the provider sends the browser back by a link from another site.
func setAttempt(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: attemptCookie, Value: value, Path: attemptPath, MaxAge: int(life.Seconds()),
		HttpOnly: true, Secure: r.TLS != nil,
		SameSite: http.SameSiteLaxMode})
}

// getProviderCallback takes a person back from the login provider and tells the token of the session, this once.
func (a *api) getProviderCallback(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	p, err := a.provider()
	if err != nil {
		return err
	}

	var attempt auth.Attempt

	if c, err := r.Cookie(attemptCookie); err == nil {
		if text, err := base64.RawURLEncoding.DecodeString(c.Value); err == nil {
			_ = json.Unmarshal(text, &attempt) // what is not readable is a login that was not begun here
		}
	}

	setAttempt(w, r, "", -time.Second) // one try
	var secret string
	var t auth.Token
	err = auth.Login(r, func() (string, error) {
		q := r.URL.Query()
		if q.Get("error") != "" {
			return "", gozzard.Errorf(gozzard.ErrUnauthenticated, "the login provider refuses: %q",
				clip(q.Get("error")))
		}
		name, subject, err := p.Finish(r.Context(), attempt, q.Get("state"), q.Get("code"))
		if err != nil {
			return "", err
		}
		secret, t, err = a.Accounts.LoginSubject(r.Context(), name, subject)
		return name, err
	})

	if err != nil {
		return err
	}

	w.Header().Set("Referrer-Policy", "no-referrer")
	return answer(w, http.StatusOK, renderToken(&t, secret))
}
