package blueking

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// addSignature reads the signature of an app that does not send its secret: bk_signature, bk_nonce and bk_timestamp
// in the query string. The query string may also name the app and the user.
//
// A signed request is read whole before the app is identified, so it has at most MaxBodyUnknown bytes.
func addSignature(c *auth.Credentials, r *http.Request, body []byte) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return gozzard.Errorf(gozzard.ErrInvalid, "query string is malformed")
	}
	if !q.Has(nameSignature) {
		return nil
	}

	for name, values := range q {
		// The signed text has no escapes. Reject parameters that make it ambiguous.
		if len(values) > 1 || len(values[0]) > maxCredential || strings.Contains(name+values[0], "&") ||
			name == "data" {
			return gozzard.Errorf(gozzard.ErrInvalid,
				"%s: a signed request has each parameter once, not too long, without & and without one named data",
				strictjson.Quote(name))
		}
	}

	at, err := strconv.ParseInt(q.Get(nameTime), 10, 64)
	if err != nil || at < 0 || at > 1<<40 {
		return gozzard.Errorf(gozzard.ErrInvalid, "bk_timestamp: must be a time in seconds")
	}

	*c = merge(*c, auth.Credentials{App: firstOf(q, nameApp, "app_code"), Token: q.Get(nameToken),
		User: firstOf(q, nameUser, "username")})
	c.Signature = &auth.Signature{Value: q.Get(nameSignature), Nonce: q.Get(nameNonce), At: time.Unix(at, 0),
		Text: signedText(r, q, body)}
	return nil
}

func firstOf(q url.Values, names ...string) string {
	for _, name := range names {
		if v := q.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// signedText is the text that a client signs: the method, the path and all parameters except the signature, sorted,
// with the body as a parameter named data.
func signedText(r *http.Request, q url.Values, body []byte) string {
	pairs := make([][2]string, 0, len(q)+1)
	for name := range q {
		if name != nameSignature {
			pairs = append(pairs, [2]string{name, q.Get(name)})
		}
	}

	if r.Method != http.MethodGet && len(body) > 0 && r.ContentLength != 0 {
		pairs = append(pairs, [2]string{"data", string(body)})
	}

	slices.SortFunc(pairs, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	var text strings.Builder
	text.WriteString(r.Method)
	text.WriteString(r.URL.EscapedPath())

	for i, p := range pairs {
		text.WriteByte("?&"[min(i, 1)])
		text.WriteString(p[0])
		text.WriteByte('=')
		text.WriteString(p[1])
	}

	return text.String()
}
