package blueking_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
)

// signedDoor has one call, and two apps: one signs its requests, the other does not.
func signedDoor(t *testing.T) http.Handler {
	t.Helper()
	b, err := auth.New(auth.Config{Apps: []auth.App{
		{Code: "signs", Secrets: []auth.Digest{auth.Hash("key")}, SignKeys: []string{"key"}, AssertsUsers: true},
		{Code: "plain", Secrets: []auth.Digest{auth.Hash("key")}, AssertsUsers: true},
	}})
	if err != nil {
		t.Fatal(err)
	}

	return blueking.New(blueking.Door{
		Prefixes: []blueking.Prefix{{Path: "/api/c/compapi/v2/x", Family: "f", Gateway: true}}, Auth: b,
		Log: slog.New(slog.DiscardHandler),
		Routes: []blueking.Route{{Name: "who", Families: []string{"f"}, Access: blueking.AccessUser, Read: true,
			MaxBody: blueking.MaxBodyMulti,
			Handle:  func(_ context.Context, c *blueking.Call) (any, error) { return c.Caller, nil }}},
	})
}

// send sends a request that is signed as clients sign: over the text that they make of their parameters.
func send(h http.Handler, method, key string, params map[string]string, body string,
	edit func(q url.Values, r *http.Request)) *httptest.ResponseRecorder {
	const path = "/api/c/compapi/v2/x/who/"
	text := method + path + "?"
	all := map[string]string{}
	for k, v := range params {
		all[k] = v
	}

	if body != "" {
		all["data"] = body
	}

	var pairs []string
	for _, k := range []string{"bk_app_code", "bk_nonce", "bk_timestamp", "bk_username", "data"} { // sorted
		if v, ok := all[k]; ok {
			pairs = append(pairs, k+"="+v)
		}
	}

	q := url.Values{"bk_signature": {auth.Sign(key, text+strings.Join(pairs, "&"))}}
	for k, v := range params {
		q.Set(k, v)
	}

	r := httptest.NewRequest(method, path, strings.NewReader(body))

	if edit != nil {
		edit(q, r)
	}

	r.URL.RawQuery = q.Encode()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestSignedRequests(t *testing.T) {
	h := signedDoor(t)
	nonce := 0
	params := func(app string) map[string]string {
		nonce++
		return map[string]string{"bk_app_code": app, "bk_nonce": fmt.Sprint(nonce),
			"bk_timestamp": fmt.Sprint(time.Now().Unix() + 1), "bk_username": "alice"}
	}

	for _, method := range []string{http.MethodPost, http.MethodGet} {
		body := ""
		if method == http.MethodPost {
			body = `{"text": "ö & ?"}`
		}
		w := send(h, method, "key", params("signs"), body, nil)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"user":"alice"`) {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}

	used := params("signs")
	if w := send(h, http.MethodPost, "key", used, "{}", nil); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}

	old := params("signs")
	old["bk_timestamp"] = fmt.Sprint(time.Now().Unix() - 301)
	for name, w := range map[string]*httptest.ResponseRecorder{
		"replayed":      send(h, http.MethodPost, "key", used, "{}", nil),
		"old":           send(h, http.MethodPost, "key", old, "{}", nil),
		"wrong key":     send(h, http.MethodPost, "kez", params("signs"), "{}", nil),
		"does not sign": send(h, http.MethodPost, "key", params("plain"), "{}", nil),
		"unknown":       send(h, http.MethodPost, "key", params("nobody"), "{}", nil),
		"other body": send(h, http.MethodPost, "key", params("signs"), `{"a":1}`, func(_ url.Values, r *http.Request) {
			r.Body = http.NoBody
			*r = *httptest.NewRequest(r.Method, r.URL.Path, strings.NewReader(`{"a":2}`))
		}),
		"other user": send(h, http.MethodPost, "key", params("signs"), "{}",
			func(q url.Values, _ *http.Request) { q.Set("bk_username", "root") }),
		"other method": send(h, http.MethodGet, "key", params("signs"), "",
			func(_ url.Values, r *http.Request) { r.Method = http.MethodPost }),
	} {
		if w.Code != http.StatusUnauthorized && w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}

	for name, edit := range map[string]func(q url.Values, r *http.Request){
		"twice":    func(q url.Values, _ *http.Request) { q.Add("bk_nonce", "z") },
		"cut":      func(q url.Values, _ *http.Request) { q.Set("bk_app_code", "signs&bk_nonce=x") },
		"data":     func(q url.Values, _ *http.Request) { q.Set("data", "{}") },
		"no time":  func(q url.Values, _ *http.Request) { q.Del("bk_timestamp") },
		"bad time": func(q url.Values, _ *http.Request) { q.Set("bk_timestamp", "1e9") },
	} {
		if w := send(h, http.MethodPost, "key", params("signs"), "{}", edit); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}

	long := `{"text":"` + strings.Repeat("x", blueking.MaxBodyUnknown) + `"}`
	if w := send(h, http.MethodPost, "key", params("signs"), long, nil); w.Code != http.StatusUnauthorized {
		t.Errorf("a long signed body: %d %s", w.Code, w.Body)
	}
}

func TestBearer(t *testing.T) {
	b, err := auth.New(auth.Config{
		Apps:   []auth.App{{Code: "app", Secrets: []auth.Digest{auth.Hash("s")}, AssertsUsers: true}},
		Users:  []auth.User{{Name: "alice"}},
		Tokens: []auth.Token{{User: "alice", Digest: auth.Hash("tok")}},
	})
	if err != nil {
		t.Fatal(err)
	}

	for header, user := range map[string]string{"Bearer tok": "alice", "bearer  tok ": "alice", "Bearer no": "",
		"Basic tok": "", "tok": "", "Bearer": "", "Bearer " + strings.Repeat("t", 5000): ""} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", header)
		caller, _, err := blueking.Authenticate(b, r, nil)
		if caller.User != user || (err == nil) != (user != "") {
			t.Errorf("%q: %+v, %v", header, caller, err)
		}
	}

	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer tok")
	r.Header.Set(blueking.AuthorizationHeader, `{"bk_app_code":"app","bk_app_secret":"s","bk_username":"bob"}`)

	if caller, _, err := blueking.Authenticate(b, r, nil); err != nil || caller.App != "app" || caller.User != "bob" {
		t.Errorf("an app with a foreign header: %+v, %v", caller, err)
	}
}
