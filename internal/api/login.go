package api

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/audit"
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
	return done(w, acc.Logout(r.Context(), a.carried(r)))
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

	to := r.URL.Query().Get("to")
	if to != "" && to != toConsole {
		return gozzard.Errorf(gozzard.ErrInvalid, "to: must be missing or %q", toConsole)
	}

	// Begin the login.
	var address string
	attempt := providerAttempt{To: to}
	err = auth.Login(r, func() (_ string, err error) {
		address, attempt.Attempt, err = p.Begin(r.Context())
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
	redirect(w, address)
	return nil
}

// setAttempt sends the cookie. It must be Lax, because the provider sends the browser back from another site.
func setAttempt(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: attemptCookie, Value: value, Path: attemptPath, MaxAge: int(life.Seconds()),
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode})
}

// toConsole says that a login at the provider ends in the console.
const toConsole = "console"

// providerAttempt is a login at the provider, as the cookie has it.
type providerAttempt struct {
	auth.Attempt
	To string `json:"to,omitempty"`
}

// getProviderCallback opens a session for a browser that comes back from the login provider. No other answer shows the
// token of the session.
func (a *api) getProviderCallback(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	p, err := a.provider()
	if err != nil {
		return err
	}

	// Read the login from the cookie, and delete the cookie: a login has one try.
	var attempt providerAttempt
	if c, err := r.Cookie(attemptCookie); err == nil {
		if text, err := base64.RawURLEncoding.DecodeString(c.Value); err == nil {
			_ = json.Unmarshal(text, &attempt) // a malformed cookie is rejected below, like a missing one
		}
	}
	setAttempt(w, r, "", -time.Second)

	// Finish the login.
	if attempt.To == toConsole {
		a.finishInConsole(w, r, p, &attempt.Attempt)
		return nil
	}
	var secret string
	var t auth.Token
	err = auth.Login(r, func() (string, error) {
		person, err := finishLogin(r, p, &attempt.Attempt)
		if err == nil {
			secret, t, err = a.Accounts.LoginSubject(r.Context(), person.Name, person.Subject, person.Groups...)
		}
		return person.Name, err
	})
	if err != nil {
		return err
	}

	w.Header().Set("Referrer-Policy", "no-referrer")
	return answer(w, http.StatusOK, renderToken(&t, secret))
}

// finishLogin asks the provider for the person that a browser comes back as.
func finishLogin(r *http.Request, p *auth.Provider, attempt *auth.Attempt) (auth.Person, error) {
	q := r.URL.Query()
	if q.Get("error") != "" {
		return auth.Person{}, gozzard.Errorf(gozzard.ErrUnauthenticated, "the login provider rejects the login: %q",
			clip(q.Get("error")))
	}
	return p.Finish(r.Context(), *attempt, q.Get("state"), q.Get("code"))
}

// finishInConsole ends a login that began in the console: with the cookie of a session, or on the page that signs in,
// with the kind of the error.
func (a *api) finishInConsole(w http.ResponseWriter, r *http.Request, p *auth.Provider, attempt *auth.Attempt) {
	var s auth.Session
	err := auth.Login(r, func() (string, error) {
		person, err := finishLogin(r, p, attempt)
		if err == nil {
			s, err = a.Accounts.OpenConsoleSubject(r.Context(), person.Name, person.Subject, person.Groups...)
		}
		return person.Name, err
	})

	to := consolePage
	if err != nil {
		audit.Refused(r.Context(), gozzard.Caller{}, err)
		a.Log.InfoContext(r.Context(), "login at the provider failed", "err", err)
		to = signInPage + "?" + url.Values{"error": {string(gozzard.KindOf(err))}}.Encode()
	} else {
		a.setCookie(w, r, s.Secret, s.Token.Expires)
	}
	redirect(w, to)
}

func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusFound)
}
