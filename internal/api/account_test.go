package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/live"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/storetest"
)

// accountServer is the API with accounts in a real record. The app admin has the secret of newServer.
type accountServer struct {
	t       *testing.T
	store   *sqlstore.Store
	handler http.Handler
}

func newAccountServer(t *testing.T, provider *auth.Provider) *accountServer {
	t.Helper()
	return newAccountServerAt(t, provider, time.Now)
}

// newAccountServerAt is newAccountServer with a clock of the accounts.
func newAccountServerAt(t *testing.T, provider *auth.Provider, now func() time.Time) *accountServer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "record.db")
	storetest.NewSQLite(t, path)
	store, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})

	acc, err := auth.Open(t.Context(), store, auth.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}

	apps := []auth.App{{Code: "admin", Secrets: []auth.Digest{auth.Hash(secret)}, AssertsUsers: true}}
	if err := acc.Import(t.Context(), auth.Config{Apps: apps}); err != nil {
		t.Fatal(err)
	}

	p := newPlane()
	return &accountServer{t: t, store: store, handler: api.New(api.Options{Plane: p,
		Live:         live.New(live.Options{Fleet: p.Index}),
		Authenticate: blueking.ByHeaders(acc.Directory()), Challenge: blueking.AuthorizationHeader, Accounts: acc,
		Provider: provider, Rights: acc.Directory().RightsOf, Carries: blueking.InHeaders})}
}

// as sets the credentials of the caller in a request.
type as func(*http.Request)

func app(code, secret string) as {
	return func(r *http.Request) {
		// three strings
		b, _ := json.Marshal(map[string]string{"bk_app_code": code, "bk_app_secret": secret, "bk_username": "me"})
		r.Header.Set("X-Bkapi-Authorization", string(b))
	}
}

func person(token string) as {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// anonymous sets no credentials.
func anonymous(*http.Request) {}

var admin = app("admin", secret)

// do sends a request and checks the status of its answer. into may be nil.
func (d *accountServer) do(caller as, method, path, body string, status int, into any) string {
	d.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	caller(r)
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)

	if w.Code != status {
		d.t.Fatalf("%s %s: %d %s, want %d", method, path, w.Code, w.Body, status)
	}
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			d.t.Fatalf("%s %s: %v", method, path, err)
		}
	}

	return w.Body.String()
}

type secretAnswer struct{ Code, Secret, Token, ID string }

func TestAppsOverTheAPI(t *testing.T) {
	d := newAccountServer(t, nil)
	var made, next secretAnswer
	d.do(admin, "POST", "/api/v1/apps",
		`{"code":"shop","asserts_users":true,"unknown_users":true,"grants":[{"role":"operator","businesses":[2],"actions":["start"],"accounts":["shop"]}]}`,
		201, &made)
	d.do(admin, "POST", "/api/v1/apps", `{"code":"shop"}`, 409, nil)
	shop := app("shop", made.Secret)
	list := d.do(admin, "GET", "/api/v1/apps", "", 200, nil)
	if strings.Contains(list, made.Secret) || !strings.Contains(list, `"actions":["start"]`) ||
		!strings.Contains(list, `"secrets":1`) {
		t.Fatalf("the apps are %s", list)
	}

	if caller := d.do(shop, "GET", "/api/v1/whoami", "", 200, nil); !strings.Contains(caller, `"businesses":[2]`) ||
		!strings.Contains(caller, `"asserted":true`) {
		t.Fatalf("shop is %s", caller)
	}

	d.do(admin, "POST", "/api/v1/apps/shop/secrets", "", 201, &next)
	d.do(app("shop", next.Secret), "GET", "/api/v1/whoami", "", 200, nil)
	d.do(shop, "GET", "/api/v1/whoami", "", 200, nil)
	d.do(admin, "DELETE", "/api/v1/apps/shop/secrets", "", 200, nil)
	d.do(shop, "GET", "/api/v1/whoami", "", 401, nil)
	d.do(admin, "PUT", "/api/v1/apps/shop", `{"asserts_users":false}`, 200, nil)
	d.do(app("shop", next.Secret), "GET", "/api/v1/whoami", "", 403, nil)
	d.do(admin, "DELETE", "/api/v1/apps/shop", "", 200, nil)
	d.do(app("shop", next.Secret), "GET", "/api/v1/whoami", "", 401, nil)
	d.do(admin, "DELETE", "/api/v1/apps/shop", "", 404, nil)
	d.do(admin, "DELETE", "/api/v1/apps/admin", "", 409, nil)

	rows, err := d.store.Audit(t.Context(), 10)
	if err != nil || len(rows) != 6 || rows[0].Act != "app:delete shop" || rows[0].Caller.App != "admin" ||
		rows[0].Caller.User != "me" {
		t.Fatalf("%v, the audit is %+v", err, rows)
	}
}

func TestUsersOverTheAPI(t *testing.T) {
	d := newAccountServer(t, nil)
	d.do(admin, "POST", "/api/v1/users",
		`{"name":"alice","password":"a long password","grants":[{"role":"viewer","nets":["10.0.0.0/8"]}]}`, 201, nil)
	d.do(admin, "POST", "/api/v1/users", `{"name":"bob"}`, 201, nil)
	d.do(anonymous, "POST", "/api/v1/login", `{"user":"alice","password":"a wrong password"}`, 401, nil)
	d.do(anonymous, "POST", "/api/v1/login", `{"user":"bob","password":""}`, 401, nil)
	var session, token, other secretAnswer
	d.do(anonymous, "POST", "/api/v1/login", `{"user":"alice","password":"a long password"}`, 200, &session)
	alice := person(session.Token)
	if caller := d.do(alice, "GET", "/api/v1/whoami", "", 200, nil); !strings.Contains(caller,
		`"app":"user:alice","user":"alice","asserted":false`) {
		t.Fatalf("alice is %s", caller)
	}

	d.do(alice, "POST", "/api/v1/users/alice/tokens", `{"days":1,"note":"laptop"}`, 401, nil)
	d.do(alice, "POST", "/api/v1/users/alice/tokens", `{"days":1,"password":"a wrong password"}`, 401, nil)
	d.do(alice, "POST", "/api/v1/users/alice/tokens", `{"days":1,"note":"laptop","password":"a long password"}`, 201,
		&token)
	d.do(person(token.Token), "GET", "/api/v1/whoami", "", 200, nil)

	if list := d.do(alice, "GET", "/api/v1/users/alice/tokens", "", 200, nil); !strings.Contains(list, token.ID) ||
		strings.Contains(list, token.Token) {
		t.Fatalf("the tokens are %s", list)
	}

	// A user cannot change the login of another user, and an app that acts for alice is not alice.
	d.do(admin, "POST", "/api/v1/users/bob/tokens", `{}`, 201, &other)
	bob := person(other.Token)
	var shop, through secretAnswer
	d.do(admin, "POST", "/api/v1/apps", `{"code":"shop","grants":[{"role":"viewer"}]}`, 201, &shop)
	d.do(admin, "POST", "/api/v1/users/alice/tokens", `{"app":"shop"}`, 201, &through)
	d.do(person(through.Token), "GET", "/api/v1/whoami", "", 401, nil)

	delegate := func(r *http.Request) {
		// three strings
		b, _ := json.Marshal(map[string]string{"bk_app_code": "shop", "bk_app_secret": shop.Secret,
			"bk_token": through.Token})
		r.Header.Set("X-Bkapi-Authorization", string(b))
	}

	d.do(delegate, "GET", "/api/v1/whoami", "", 200, nil)

	for _, caller := range []as{bob, delegate} {
		d.do(caller, "GET", "/api/v1/users/alice/tokens", "", 403, nil)
		d.do(caller, "POST", "/api/v1/users/alice/tokens", `{}`, 403, nil)
		d.do(caller, "DELETE", "/api/v1/users/alice/tokens/"+token.ID, "", 403, nil)
		d.do(caller, "PUT", "/api/v1/users/alice/password", `{"password":"another password"}`, 403, nil)
	}

	d.do(alice, "DELETE", "/api/v1/users/alice/tokens/"+token.ID, "", 200, nil)
	d.do(person(token.Token), "GET", "/api/v1/whoami", "", 401, nil)
	d.do(alice, "PUT", "/api/v1/users/alice/password", `{"password":"another password"}`, 401, nil)
	d.do(alice, "PUT", "/api/v1/users/alice/password", `{"old":"a long password","password":"another password"}`, 200,
		nil)
	d.do(alice, "GET", "/api/v1/whoami", "", 401, nil)
	d.do(anonymous, "POST", "/api/v1/login", `{"user":"alice","password":"another password"}`, 200, &session)
	d.do(person(session.Token), "POST", "/api/v1/logout", "", 200, nil)
	d.do(person(session.Token), "GET", "/api/v1/whoami", "", 401, nil)

	if list := d.do(admin, "GET", "/api/v1/users", "", 200, nil); !strings.Contains(list, `"count":2`) ||
		strings.Contains(list, "argon2id") {
		t.Fatalf("the users are %s", list)
	}

	d.do(admin, "PUT", "/api/v1/users/bob", `{"disabled":true}`, 200, nil)
	d.do(bob, "GET", "/api/v1/whoami", "", 401, nil)
	d.do(admin, "POST", "/api/v1/users/bob/tokens", `{}`, 409, nil)
	d.do(admin, "DELETE", "/api/v1/users/bob", "", 200, nil)
	d.do(bob, "GET", "/api/v1/whoami", "", 401, nil)
}

func TestGrantsOverTheAPI(t *testing.T) {
	d := newAccountServer(t, nil)
	d.do(admin, "POST", "/api/v1/users", `{"name":"alice"}`, 201, nil)
	const grant = `{"user":"alice","grant":{"role":"operator","namespaces":["shop*"],"hosts":"listed","clouds":[0],"accounts":["shop"]}}`
	d.do(admin, "POST", "/api/v1/grants", grant, 200, nil)

	if list := d.do(admin, "GET", "/api/v1/grants", "", 200, nil); !strings.Contains(list,
		`{"user":"alice","grant":{"role":"operator","namespaces":["shop*"],"clouds":[0],"hosts":"listed","accounts":["shop"]}}`) {
		t.Fatalf("the grants are %s", list)
	}

	d.do(admin, "DELETE", "/api/v1/grants", grant, 200, nil)
	d.do(admin, "DELETE", "/api/v1/grants", grant, 404, nil)

	for _, bad := range []string{`{}`, `{"user":"alice"}`, `{"user":"a","app":"b","grant":{"role":"viewer"}}`,
		`{"user":"alice","grant":{"role":"king"}}`,
		`{"user":"alice","grant":{"role":"viewer","nets":["10.0.0.1/8"]}}`,
		`{"user":"alice","grant":{"role":"operator","actions":["none"],"accounts":["*"]}}`,
		`{"user":"alice","grant":{"role":"operator","namespaces":["shop*"],"clouds":[0]}}`,
		`{"user":"alice","grant":{"role":"operator","namespaces":["shop*"],"accounts":["shop"]}}`,
		`{"user":"alice","grant":{"role":"operator","namespaces":["shop*"],"hosts":"assigned","accounts":["shop"]}}`,
		`{"user":"alice","grant":{"role":"operator","businesses":[2],"hosts":"any","accounts":["shop"]}}`,
		`{"user":"alice","grant":{"role":"viewer","businesses":[2],"namespaces":["shop*"],"clouds":[0]}}`,
		`{"user":"alice","grant":{"role":"operator","clouds":[0],"accounts":["Root"]}}`,
		`{"user":"alice","grant":{"role":"operator","clouds":[0],"accounts":["sh*"]}}`,
		`{"user":"alice","grant":{"role":"viewer","accounts":["shop"]}}`,
		`{"user":"alice","grant":{"role":"viewer","busineses":[2]}}`, `[]`, `{`} {
		d.do(admin, "POST", "/api/v1/grants", bad, 400, nil)
	}
}

// TestAccountsNeedAnAdmin walks over every path of accounts with callers that are not admins of everything.
func TestAccountsNeedAnAdmin(t *testing.T) {
	d := newAccountServer(t, nil)
	var near, far, token secretAnswer
	d.do(admin, "POST", "/api/v1/apps",
		`{"code":"near","asserts_users":true,"unknown_users":true,"grants":[{"role":"admin","businesses":[2],"accounts":["*"]},{"role":"enroller"},{"role":"operator","accounts":["*"]}]}`, 201, &near)
	d.do(admin, "POST", "/api/v1/apps", `{"code":"far","asserts_users":true,"unknown_users":true}`, 201, &far)
	d.do(admin, "POST", "/api/v1/users", `{"name":"alice","grants":[{"role":"operator","accounts":["*"]}]}`, 201, nil)
	d.do(admin, "POST", "/api/v1/users/alice/tokens", `{}`, 201, &token)
	before := d.do(admin, "GET", "/api/v1/grants", "", 200, nil)
	paths := []string{"GET /api/v1/apps", "POST /api/v1/apps", "PUT /api/v1/apps/near", "DELETE /api/v1/apps/far",
		"POST /api/v1/apps/near/secrets",
		"DELETE /api/v1/apps/near/secrets", "GET /api/v1/users", "POST /api/v1/users", "PUT /api/v1/users/alice",
		"DELETE /api/v1/users/alice",
		"POST /api/v1/users/alice/offboard", "GET /api/v1/grants", "POST /api/v1/grants", "DELETE /api/v1/grants"}
	body := `{"code":"evil","name":"evil","app":"near","grant":{"role":"admin"},"disabled":true}`
	for _, p := range paths {
		method, path, _ := strings.Cut(p, " ")
		d.do(anonymous, method, path, body, 401, nil)
		d.do(app("near", "guess"), method, path, body, 401, nil)
		d.do(person("guess"), method, path, body, 401, nil)
		for _, caller := range []as{app("near", near.Secret), app("far", far.Secret), person(token.Token)} {
			d.do(caller, method, path, body, 403, nil)
		}
	}

	if after := d.do(admin, "GET", "/api/v1/grants", "", 200, nil); after != before {
		t.Fatalf("refused requests had effects: %s", after)
	}
}

func TestAccountsNotKept(t *testing.T) {
	s := newServer(t)
	if r := s.call("GET", "/api/v1/apps", ""); r.code != 404 || r.failure(t).Error.Kind != gozzard.ErrNotFound {
		t.Fatalf("%d %s", r.code, r.body)
	}
}
