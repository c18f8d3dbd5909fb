package auth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
)

// loginStandIn answers like the login services of the field.
func loginStandIn(t *testing.T) (address string, asked *atomic.Int64) {
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)

		switch r.URL.Query().Get("bk_token") {
		case "good":
			fmt.Fprint(w, `{"result":true,"code":0,"message":"ok","data":{"bk_username":"alice"}}`)
		case "page":
			fmt.Fprint(w, `{"msg":"","data":{"username":"王五"},"ret":0,"result":true,"code":"00"}`)
		case "coded":
			fmt.Fprint(w, `{"code":0,"data":{"bk_username":"carol"}}`)
		case "tok-n":
			fmt.Fprint(w, `{"result":true,"data":{"bk_username":"a\nb"}}`)
		case "down":
			w.WriteHeader(http.StatusBadGateway)
		case "html":
			fmt.Fprint(w, `<html>please log in</html>`)
		case "long":
			fmt.Fprint(w, `{"result":true,"data":{"bk_username":"`+strings.Repeat("x", 1<<20)+`"}}`)
		case "away":
			http.Redirect(w, r, "http://example.com/", http.StatusFound)
		default:
			fmt.Fprint(w, `{"result":false,"code":1302100,"message":"invalid","data":[]}`)
		}
	}))

	t.Cleanup(s.Close)
	return s.URL + "/login/accounts/is_login/?a=b", asked
}

func TestLoginService(t *testing.T) {
	address, asked := loginStandIn(t)
	s, err := blueking.NewLoginService(address, nil)
	must(t, err)
	r := newRig(t, func(o *auth.Options) { o.Verify = s })
	must(t, r.CreateUser(t.Context(), by, auth.User{Name: "alice",
		Grants: []gozzard.Grant{{Role: gozzard.RoleViewer}}}, ""))
	secret, err := r.CreateApp(t.Context(), by, auth.App{Code: "web", Grants: gozzard.Everything().Grants,
		UnknownUsers: new(true)}, false)
	must(t, err)

	check := func(token string) (gozzard.Caller, error) {
		return r.check(t, auth.Credentials{App: "web", Secret: secret, Token: token})
	}

	for token, user := range map[string]string{"good": "alice", "page": "王五", "coded": "carol"} {
		caller, err := check(token)
		must(t, err)
		if caller.User != user || caller.Asserted || caller.Rights.All() != (user != "alice") {
			t.Errorf("%s: %+v", token, caller)
		}
	}

	before := asked.Load()

	for range 10 {
		_, err := check("good")
		must(t, err)
		_, err = check("bad")
		wantKind(t, err, gozzard.ErrUnauthenticated)
	}

	if n := asked.Load() - before; n != 1 {
		t.Errorf("asked %d times for what was known", n)
	}

	for _, token := range []string{"down", "html", "long", "tok-n", "away"} {
		if _, err := check(token); err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", token, err)
		}
	}

	if _, err := r.check(t, auth.Credentials{App: "web", Secret: "wrong", Token: "fresh"}); err == nil ||
		asked.Load() > before+6 {
		t.Error("the login service is asked for strangers")
	}

	caller, err := r.check(t, auth.Credentials{App: "admin", Secret: "root", Token: "down", User: "dave"})
	must(t, err)

	if caller.User != "dave" || !caller.Asserted {
		t.Errorf("a trusted app cannot name a user while the login service is down: %+v", caller)
	}
	if _, err := r.Directory().CheckPerson("good"); err == nil {
		t.Error("a bk_token opens the door without an app")
	}
}
