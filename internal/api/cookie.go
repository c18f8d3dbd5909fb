package api

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// A session of the console is in a cookie. A browser sends the cookie with every request to this host, whatever page makes
// the request, so a request with the cookie must prove that it comes from a page of this server.
const (
	csrfHeader   = "X-Gozzard-CSRF"
	idleHeader   = "X-Gozzard-Background" // of a request that a page makes by itself: it does not keep the session
	secureCookie = "__Host-gozzard"
	plainCookie  = "gozzard_" // with the port: browsers do not keep the cookies of two ports apart
	maxCookie    = 256        // bytes; a real value has 47
)

// identify finds the caller of a request: by the credentials in its headers, or else by the cookie of the console. With
// use, a session counts as used.
func (a *api) identify(r *http.Request, use bool) (caller gozzard.Caller, err error) {
	if a.cookie(r) == "" {
		caller, err = a.Authenticate(r)
		if gozzard.KindOf(err) == gozzard.ErrUnauthenticated && !a.hasCredentials(r) {
			return caller, a.missing(err)
		}
		return caller, err
	}
	err = auth.Guarded(r, func() (auth.App, error) {
		_, caller, err = a.session(r, use)
		return auth.App{Code: caller.App}, err
	})
	if err != nil {
		return gozzard.Caller{}, err
	}
	return caller, nil
}

// missing says where the credentials belong that a request does not have. What the audit says about it stays.
func (a *api) missing(err error) error {
	var named error = gozzard.Errorf(gozzard.ErrUnauthenticated, "credentials are missing: send the token of a person in "+
		"the header Authorization, as Bearer TOKEN, or those of an app in the header %s", a.Challenge)
	if e := (*gozzard.Error)(nil); errors.As(err, &e) {
		named = gozzard.Refused(named, e.Refusal)
	}
	return named
}

// session is the session of a request with the cookie.
func (a *api) session(r *http.Request, use bool) (s auth.Session, caller gozzard.Caller, err error) {
	if err := a.checkBrowser(r); err != nil {
		return s, caller, err
	}
	if n := len(r.CookiesNamed(a.cookieName(r))); n > 1 {
		return s, caller, gozzard.Errorf(gozzard.ErrUnauthenticated,
			"the browser sends %d cookies %s: delete the cookies of this site and sign in again", n, a.cookieName(r))
	}

	use = use && r.Header.Get(idleHeader) == ""
	s, caller, err = a.Accounts.Directory().CheckSession(a.cookie(r), use)
	if err != nil {
		return s, gozzard.Caller{}, err
	}
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !safe && !s.Admits(r.Header.Get(csrfHeader)) {
		return s, gozzard.Caller{}, gozzard.Errorf(gozzard.ErrUserForbidden,
			"the header %s is missing or wrong: a change by a session of the console needs its value", csrfHeader)
	}
	return s, caller, nil
}

// hasCredentials reports whether a request has headers for credentials, valid or not.
func (a *api) hasCredentials(r *http.Request) bool {
	return len(r.Header.Values("Authorization")) > 0 || len(r.Header.Values(a.Challenge)) > 0 ||
		a.Carries != nil && a.Carries(r)
}

// cookie is the secret of the session that identifies a request; "" when other credentials identify it.
func (a *api) cookie(r *http.Request) string {
	if a.Accounts == nil || a.hasCredentials(r) {
		return ""
	}
	c, err := r.Cookie(a.cookieName(r))
	if err != nil || len(c.Value) > maxCookie {
		return ""
	}
	return c.Value
}

// carried is the token of a user that identifies a request, from its header or its cookie.
func (a *api) carried(r *http.Request) string {
	if secret := a.cookie(r); secret != "" {
		return secret
	}
	return auth.BearerToken(r)
}

// setCookie sends the cookie of a session; an empty secret removes it.
func (a *api) setCookie(w http.ResponseWriter, r *http.Request, secret string, expires time.Time) {
	c := &http.Cookie{Name: a.cookieName(r), Value: secret, Path: "/", HttpOnly: true, Secure: a.secure(r),
		SameSite: http.SameSiteStrictMode, Expires: expires.UTC()}
	if secret == "" {
		c.Expires, c.MaxAge = time.Time{}, -1
	}
	http.SetCookie(w, c)
}

// cookieName is the name of the cookie. With the prefix __Host- a browser takes the cookie from this host over TLS only.
func (a *api) cookieName(r *http.Request) string {
	if a.secure(r) {
		return secureCookie
	}
	port := "80"
	if _, p, err := net.SplitHostPort(r.Host); err == nil {
		if n, err := strconv.ParseUint(p, 10, 16); err == nil {
			port = strconv.FormatUint(n, 10)
		}
	}
	return plainCookie + port
}

// secure reports whether the browser speaks TLS, to this server or to a proxy before it.
func (a *api) secure(r *http.Request) bool {
	return r.TLS != nil || a.proxied(r) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

func (a *api) proxied(r *http.Request) bool { return a.Proxied != nil && a.Proxied(r) }

// checkBrowser rejects a request that a page of another origin makes, also one of this machine on another port, and a
// request that names this machine by a name of another site (DNS rebinding). Programs that are not browsers send none of
// these headers.
func (a *api) checkBrowser(r *http.Request) error {
	if r.TLS == nil && !a.proxied(r) && !auth.LocalHost(r.Host) {
		return gozzard.Errorf(gozzard.ErrUserForbidden,
			"without TLS, sessions of the console are open to localhost and to loopback addresses only")
	}

	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return gozzard.Errorf(gozzard.ErrUserForbidden, "a page of another origin makes this request: it is not accepted")
	}

	if origin := r.Header.Get("Origin"); origin != "" && !a.sameOrigin(r, origin) {
		return gozzard.Errorf(gozzard.ErrUserForbidden, "a page of another origin makes this request: it is not accepted")
	}
	return nil
}

// sameOrigin reports whether the header Origin names this server.
func (a *api) sameOrigin(r *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || !strings.EqualFold(u.Host, r.Host) {
		return false
	}
	if a.secure(r) {
		return u.Scheme == "https"
	}
	return u.Scheme == "http" || a.proxied(r) && u.Scheme == "https"
}
