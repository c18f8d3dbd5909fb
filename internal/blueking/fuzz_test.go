package blueking_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzCredentials: whatever is in headers, cookie, query and body, no caller is identified without a valid secret, and
// no rejection repeats a secret.
func FuzzCredentials(f *testing.F) {
	z := fuzztest.New(f)
	z.Add(`{"bk_app_code":"trusted","bk_app_secret":"secret","bk_username":"bob"}`, "", "", "", []byte(nil))
	z.Add(`{"bk_app_code":"plain","bk_app_secret":"secret2"}`, "", "bk_token=tok%2Fen%3D", "", []byte(nil))
	z.Add("", "Bearer tok/en=", "", "", []byte(nil))
	z.Add("", "", "", "bk_app_code=plain&bk_signature=AAAA&bk_nonce=1&bk_timestamp=1700000000",
		[]byte(`{"bk_token":"tok/en="}`))
	z.Add("", "", "", "", []byte(`{"app_code":"trusted","app_secret":"secret","username":"bob"}`))
	b := book(f)
	z.Fuzz(func(t *testing.T, authorization, bearer, cookie, query string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.URL = &url.URL{Path: "/", RawQuery: query}
		for name, value := range map[string]string{blueking.AuthorizationHeader: authorization,
			"Authorization": bearer, "Cookie": cookie} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}

		caller, app, err := blueking.Authenticate(b, r, body)
		all := strings.Join([]string{authorization, bearer, cookie, query, string(body)}, "\n")
		escaped := strings.ContainsAny(all, `\%`)

		if err != nil {
			if caller.App != "" || caller.User != "" || app.Code != "" {
				t.Fatalf("%+v with %v", caller, err)
			}
			return
		}

		if !escaped && !strings.Contains(all, "secret") && !strings.Contains(all, "tok/en=") {
			t.Fatalf("%+v by %q", caller, all)
		}
	})
}
