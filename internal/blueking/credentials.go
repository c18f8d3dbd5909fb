package blueking

import (
	"net/http"
	"net/url"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// maxCredential bounds each credential; real ones have fewer than 100 bytes.
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

// AuthorizationHeader carries credentials as JSON text and wins over all other places.
const AuthorizationHeader = "X-Bkapi-Authorization"

// Authenticate finds out who sends a request. The body may be nil; credentials in headers win over those in it. A
// person may come without an app, by a token of ours in the header Authorization.
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

// ByHeaders authenticates requests by their headers alone, so that nothing of an unknown caller's body is read.
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

// merge takes from b what a lacks. A user is taken whole: the name from one place and the token from another would
// be two people.
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

// headerCredentials reads X-Bkapi-Authorization, then the plain headers that some clients send beside it.
func headerCredentials(r *http.Request) (auth.Credentials, error) {
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

	if len(given) > 1 {
		return auth.Credentials{}, malformed("given more than once")
	}

	doc, err := strictjson.Parse([]byte(given[0]))
	if err != nil {
		// the text holds a secret: nothing of it goes into a message
		return auth.Credentials{}, malformed("not a JSON object")
	}

	c, err := documentCredentials(auth.Credentials{}, doc)
	if err != nil {
		return auth.Credentials{}, malformed("not a JSON object of strings")
	}

	return merge(c, plain), nil
}

// documentCredentials adds what the document's top level has, by the names in use and the old ones.
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
				s.Fault("must be a string") // the value itself may be a secret
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

// sameSite is what a browser must say of a request before its cookies count.
var sameSite http.CrossOriginProtection

// cookieCredentials adds the login of a browser, the last place that is looked at. A browser sends it with what a
// page of any site makes it ask for, so it counts only when that page is of this very address, or when nothing can
// be changed.
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
