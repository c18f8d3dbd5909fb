package blueking

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// maxCredential limits each credential; real ones have fewer than 100 bytes.
const maxCredential = 4096

// What BlueKing calls the parts of credentials.
const (
	nameApp       = "bk_app_code"
	nameSecret    = "bk_app_secret"
	nameToken     = "bk_token"
	nameUser      = "bk_username"
	nameSignature = "bk_signature"
	nameNonce     = "bk_nonce"
	nameTime      = "bk_timestamp"
)

var credentialNames = auth.Names{App: nameApp, Secret: nameSecret, Token: nameToken, User: nameUser,
	Signature: nameSignature, Nonce: nameNonce, Time: nameTime}

// AuthorizationHeader has credentials as JSON text. It takes precedence over all other places.
const AuthorizationHeader = "X-Bkapi-Authorization"

// Authenticate identifies the caller of a request. The body may be nil; credentials in headers take precedence over
// those in the body. A user may come without an app, with one of our tokens in the header Authorization.
func Authenticate(book *auth.Directory, r *http.Request, body []byte) (caller gozzard.Caller, app auth.App, err error) {
	err = auth.Guarded(r, func() (auth.App, error) {
		caller, app, err = authenticate(book, r, body)
		return app, err
	})
	if err != nil {
		return gozzard.Caller{}, auth.App{}, err
	}
	return caller, app, nil
}

// ByHeaders authenticates requests by their headers alone, before the body is read.
func ByHeaders(book *auth.Directory) func(*http.Request) (gozzard.Caller, error) {
	return func(r *http.Request) (gozzard.Caller, error) {
		caller, _, err := Authenticate(book, r, nil)
		return caller, err
	}
}

func authenticate(book *auth.Directory, r *http.Request, body []byte) (gozzard.Caller, auth.App, error) {
	c, err := headerCredentials(r)
	if err != nil {
		return gozzard.Caller{}, auth.App{}, err
	}
	if token := auth.BearerToken(r); token != "" && c.App == "" {
		caller, err := book.CheckPerson(token)
		if err == nil {
			book.Seen(r.Context(), caller)
		}
		return caller, auth.App{Code: caller.App}, err
	}

	if len(body) > 0 {
		doc, err := strictjson.Parse(body)
		if err != nil {
			return gozzard.Caller{}, auth.App{}, err
		}
		if c, err = documentCredentials(c, doc); err != nil {
			return gozzard.Caller{}, auth.App{}, err
		}
	}

	if c, err = cookieCredentials(c, r); err != nil {
		return gozzard.Caller{}, auth.App{}, err
	}

	c.Names = &credentialNames
	return book.Check(r.Context(), c)
}

// merge completes a with b. Token and name of the user come from one place: from two places they could be those of two
// users.
func merge(a, b auth.Credentials) auth.Credentials {
	if a.App == "" {
		a.App = b.App
	}
	if a.Secret == "" {
		a.Secret = b.Secret
	}
	if a.Token == "" && a.User == "" {
		a.Token, a.User = b.Token, b.User
	}
	return a
}

// InHeaders reports whether a request has headers for credentials, valid or not.
func InHeaders(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Bkapi-") {
			return true
		}
	}
	return false
}

// headerCredentials reads X-Bkapi-Authorization, then the plain headers that some clients send beside it.
func headerCredentials(r *http.Request) (auth.Credentials, error) {
	// Read the plain headers.
	plain := auth.Credentials{
		App:    r.Header.Get("X-Bkapi-App-Code"),
		Secret: r.Header.Get("X-Bkapi-App-Secret"),
		User:   r.Header.Get("X-Bkapi-User-Name"),
	}
	given := r.Header.Values(AuthorizationHeader)
	if len(given) == 0 || len(given) == 1 && given[0] == "" {
		return plain, nil
	}

	malformed := func(text string) error {
		return &gozzard.Error{Kind: gozzard.ErrInvalid,
			Faults: []gozzard.Fault{{Path: AuthorizationHeader, Text: text}}}
	}

	// Read the JSON header.
	if len(given) > 1 {
		return auth.Credentials{}, malformed("given more than once")
	}

	doc, err := strictjson.Parse([]byte(given[0]))
	if err != nil {
		// the text contains a secret, so the message shows nothing of it
		return auth.Credentials{}, malformed("not a JSON object")
	}

	c, err := documentCredentials(auth.Credentials{}, doc)
	if err != nil {
		return auth.Credentials{}, malformed("not a JSON object of strings")
	}

	return merge(c, plain), nil
}

// documentCredentials adds the credentials at the top level of the document, under their present and their old names.
func documentCredentials(c auth.Credentials, doc *strictjson.Document) (auth.Credentials, error) {
	var faults strictjson.Faults
	root, err := doc.Root(&faults)
	if err != nil {
		return c, err
	}

	get := func(names ...string) string {
		for _, name := range names {
			v := root.Get(name)
			if !v.Given() {
				continue
			}
			switch s := v; {
			case !s.IsString():
				s.Fault("must be a string") // the message does not show the value: it may be a secret
			case len(s.AnyStr()) > maxCredential:
				s.Fault("is longer than %d bytes", maxCredential)
			case s.AnyStr() != "":
				return s.AnyStr()
			}
		}
		return ""
	}

	found := auth.Credentials{
		App:    get(nameApp, "app_code"),
		Secret: get(nameSecret, "app_secret"),
		Token:  get(nameToken),
		User:   get(nameUser, "username"),
	}
	return merge(c, found), faults.Err()
}

// sameSite checks that a browser sent a request from a page of this site.
var sameSite http.CrossOriginProtection

// cookieCredentials adds the login in a browser's cookie, if no other place has a user. A browser sends the cookie
// with every request, also when a page of another site makes the request. So the cookie counts only for a request
// from a page of this site, or for a request that changes nothing.
func cookieCredentials(c auth.Credentials, r *http.Request) (auth.Credentials, error) {
	cookie, err := r.Cookie(nameToken)
	if err != nil || len(cookie.Value) > maxCredential || c.Token != "" || c.User != "" {
		return c, nil
	}
	if sameSite.Check(r) != nil {
		return c, gozzard.Errorf(gozzard.ErrUnauthenticated,
			"the bk_token of a browser's cookie is not taken from a page of another site: send it in %s or in the body",
			AuthorizationHeader)
	}

	token := cookie.Value
	if plain, err := url.QueryUnescape(token); err == nil {
		token = plain
	}

	return merge(c, auth.Credentials{Token: token}), nil
}
