//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// peopleFleet is a built server with the people of the tests below.
type peopleFleet struct {
	*ft.Server
	t *testing.T
}

const password = "a password of some length"

func newPeopleFleet(t *testing.T, flags ...string) *peopleFleet {
	t.Helper()
	return &peopleFleet{Server: ft.StartServer(t, "", ft.Known(t, "server", flags...)...), t: t}
}

// who sets the credentials of a request to our own API.
type who func(*http.Request)

func bearer(token string) who {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// app acts for a user by a word of credentials: bk_username or bk_token.
func app(code, secret, word, value string) who {
	return func(r *http.Request) {
		b, _ := json.Marshal(map[string]string{"bk_app_code": code, "bk_app_secret": secret, word: value}) // four texts
		r.Header.Set("X-Bkapi-Authorization", string(b))
	}
}

func (f *peopleFleet) admin() who {
	return app(f.Cred.AppCode, f.Cred.Secret, "bk_username", f.Cred.Username)
}

func nobody(*http.Request) {}

// do sends a request to our own API and checks the status of its answer. A test goes on if a refusal does not come, to
// see what else is possible.
func (f *peopleFleet) do(as who, method, path string, body ft.J, want int) ft.J {
	f.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		f.t.Fatal(err)
	}
	var content io.Reader = strings.NewReader(string(text))
	if body == nil {
		content = http.NoBody
	}
	req, err := http.NewRequestWithContext(f.t.Context(), method, strings.TrimSuffix(f.Cred.URL, "/")+path, content)
	if err != nil {
		f.t.Fatal(err)
	}
	as(req)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}

	res, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	if res.StatusCode != want {
		f.t.Errorf("%s %s: %d %s, want %d", method, path, res.StatusCode, raw, want)
		if want < 400 {
			f.t.FailNow()
		}
	}
	answer := ft.J{}
	if err := json.Unmarshal(raw, &answer); err != nil {
		f.t.Fatalf("%s %s: %v in %s", method, path, err, raw)
	}
	return answer
}

func (f *peopleFleet) user(name, role string) {
	f.t.Helper()
	grant := ft.J{"role": role}
	if role == "operator" {
		grant["accounts"] = []string{"*", "root"}
	}
	f.do(f.admin(), "POST", "/api/v1/users", ft.J{"name": name, "password": password, "grants": []ft.J{ft.KnownFields(f.t, grant)}}, 201)
}

// login opens a session with a password and a code.
func (f *peopleFleet) login(name, code string) string {
	f.t.Helper()
	body := ft.J{"user": name, "password": password}
	if code != "" {
		body["code"] = code
	}
	return text(f.do(nobody, "POST", "/api/v1/login", body, 200), "token")
}

func text(j ft.J, name string) string {
	s, _ := j[name].(string)
	return s
}

// esb calls a door of BlueKing with an app and the words of a user, and returns whether the call succeeded.
func (f *peopleFleet) esb(secret string, words ft.J) bool {
	f.t.Helper()
	body := ft.J{"bk_app_code": "portal", "bk_app_secret": secret, "bk_username": "", "meta": ft.J{"namespace": "gse"},
		"page": ft.J{"start": 0, "limit": 1}}
	for k, v := range words {
		body[k] = v
	}
	ans, err := f.Try("sync_proc_status", body)
	if err != nil {
		f.t.Fatal(err)
	}
	return ans.Result
}

// TestTI10DeletedPerson: a person that is deleted has nothing through an app, on no door, and not after a restart of the
// server, under the old name or after it was made again by mistake.
func TestTI10DeletedPerson(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newPeopleFleet(t)
	f.user("mallory", "viewer")
	made := f.do(f.admin(), "POST", "/api/v1/apps", ft.J{"code": "portal", "asserts_users": true,
		"grants": []ft.J{{"role": "admin"}}}, 201)
	secret := text(made, "secret")
	mallory := app("portal", secret, "bk_username", "mallory")
	through := f.do(f.admin(), "POST", "/api/v1/users/mallory/tokens", ft.KnownFields(t, ft.J{"app": "portal"}), 201)
	f.do(mallory, "GET", "/api/v1/hosts", nil, 200)
	f.do(mallory, "GET", "/api/v1/users", nil, 403) // a viewer

	// Delete the person. The app may do everything, and the person nothing.
	f.do(f.admin(), "DELETE", "/api/v1/users/mallory", nil, 200)
	refused := func(when string) {
		t.Helper()
		for _, path := range []string{"/api/v1/hosts", "/api/v1/users", "/api/v1/whoami"} {
			f.do(mallory, "GET", path, nil, 403)
		}
		f.do(app("portal", secret, "bk_token", text(through, "token")), "GET", "/api/v1/hosts", nil, 401)
		if f.esb(secret, ft.J{"bk_username": "mallory"}) || f.esb(secret, ft.J{"bk_token": text(through, "token")}) {
			t.Errorf("%s: a door of BlueKing serves a deleted person", when)
		}
	}
	refused("deleted")
	f.do(f.admin(), "POST", "/api/v1/users", ft.J{"name": "mallory"}, 409)

	// Other names get nothing either, until an admin decides that for the app. The deleted person still gets nothing.
	f.do(app("portal", secret, "bk_username", "Mallory"), "GET", "/api/v1/hosts", nil, 403)
	f.do(f.admin(), "PUT", "/api/v1/apps/portal", ft.J{"unknown_users": true}, 200)
	f.do(app("portal", secret, "bk_username", "stranger"), "GET", "/api/v1/users", nil, 200)
	refused("an app for unknown users")
	f.Kill(15)
	f.Again()
	f.AwaitReady()
	refused("after a restart")
	f.do(f.admin(), "POST", "/api/v1/users", ft.J{"name": "mallory"}, 409)
	f.do(f.admin(), "POST", "/api/v1/users", ft.J{"name": "mallory", "reuse_name": true}, 201)
}

// TestTI11StolenSession: a session makes no token without the password, and nothing that it made outlives a new password.
func TestTI11StolenSession(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newPeopleFleet(t, "--max-token-age=720h")
	f.user("alice", "operator")
	f.user("root", "admin")
	stolen := bearer(f.login("alice", ""))

	// A session alone makes no token: not for an app, not for a day, not by an admin for somebody, and no new password.
	const mine = "/api/v1/users/alice/tokens"
	f.do(stolen, "POST", mine, ft.J{"days": 1}, 401)
	f.do(stolen, "POST", mine, ft.J{"app": f.Cred.AppCode}, 401)
	f.do(stolen, "POST", mine, ft.J{"password": password + "x"}, 401)
	root := bearer(f.login("root", ""))
	f.do(root, "POST", mine, ft.J{}, 401)
	f.do(root, "PUT", "/api/v1/users/root/password", ft.J{"password": "another one of some length"}, 401)

	// With the password there are tokens, within the age that the admin set.
	f.do(stolen, "POST", mine, ft.KnownFields(t, ft.J{"password": password, "days": 31}), 400)
	token := text(f.do(stolen, "POST", mine, ft.KnownFields(t, ft.J{"password": password, "days": 30}), 201), "token")
	f.do(bearer(token), "GET", "/api/v1/hosts", nil, 200)
	f.do(bearer(token), "POST", mine, ft.J{}, 401)

	// A new password, and a user that is disabled for a moment, end everything.
	for what, end := range map[string]func(){
		"password": func() {
			f.do(f.admin(), "PUT", "/api/v1/users/alice/password", ft.J{"password": password}, 200)
		},
		"disable": func() {
			f.do(f.admin(), "PUT", "/api/v1/users/alice", ft.J{"disabled": true}, 200)
			f.do(f.admin(), "PUT", "/api/v1/users/alice", ft.J{"disabled": false}, 200)
		},
	} {
		session := f.login("alice", "")
		token := text(f.do(bearer(session), "POST", mine, ft.KnownFields(t, ft.J{"password": password}), 201), "token")
		end()
		for kind, secret := range map[string]string{"session": session, "token": token} {
			if f.do(bearer(secret), "GET", "/api/v1/hosts", nil, 401)["error"] == nil {
				t.Errorf("%s: the %s goes on", what, kind)
			}
		}
	}
}

// TestTI12TokenForAnApp: a token for an app is not accepted alone or through another app, and a token that is sent alone
// not through an app, on any door.
func TestTI12TokenForAnApp(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newPeopleFleet(t)
	f.user("alice", "admin")
	secrets := map[string]string{}
	for _, code := range []string{"portal", "other"} {
		secrets[code] = text(f.do(f.admin(), "POST", "/api/v1/apps",
			ft.J{"code": code, "grants": []ft.J{{"role": "viewer"}}}, 201), "secret")
	}
	session := f.login("alice", "")
	token := func(app string) string {
		return text(f.do(bearer(session), "POST", "/api/v1/users/alice/tokens",
			ft.KnownFields(t, ft.J{"app": app, "password": password}), 201), "token")
	}
	through, alone := token("portal"), token("")

	// The app that was given a token acts as viewer, and cannot use it as the admin that alice is.
	f.do(app("portal", secrets["portal"], "bk_token", through), "GET", "/api/v1/hosts", nil, 200)
	f.do(app("portal", secrets["portal"], "bk_token", through), "GET", "/api/v1/users", nil, 403)
	f.do(bearer(through), "GET", "/api/v1/users", nil, 401)
	f.do(app("other", secrets["other"], "bk_token", through), "GET", "/api/v1/hosts", nil, 401)

	// The other kinds are not accepted from an app, in the header, the body or a cookie.
	f.do(bearer(alone), "GET", "/api/v1/users", nil, 200)
	for _, secret := range []string{alone, session} {
		f.do(app("portal", secrets["portal"], "bk_token", secret), "GET", "/api/v1/hosts", nil, 401)
		if f.esb(secrets["portal"], ft.J{"bk_token": secret}) {
			t.Error("a token that is sent alone is accepted from an app")
		}
	}
	if !f.esb(secrets["portal"], ft.J{"bk_token": through}) {
		t.Error("a token for an app is not accepted from it")
	}
}

// TestTI13PlainLoginService: the server does not ask a login service beyond this machine without TLS, unless it is
// started with a flag that says so.
func TestTI13PlainLoginService(t *testing.T) {
	t.Parallel() // it mostly waits
	outside := outsideAddress(t)
	start := func(address string, flags ...string) *ft.Program {
		args := append([]string{"server", "--data", t.TempDir(), "--listen", "127.0.0.1:" + strconv.Itoa(ft.FreePort(t)),
			"--agent-listen", "127.0.0.1:" + strconv.Itoa(ft.FreePort(t)), "--bk-login-url", address}, flags...)
		return ft.Start(t, "server", nil, args...)
	}

	for _, address := range []string{"http://" + outside + "/", "HTTP://" + outside + "/", "http://localhost.example.com/",
		"http://127.0.0.1.example.com/", "http://[::ffff:10.9.0.6]/", "http://0.0.0.0:80/"} {
		p := start(address)
		ft.Until(t, time.Minute, func() string { return "the server neither starts nor ends: " + p.Output() }, func() bool {
			select {
			case <-p.Done():
				return true
			default:
				return strings.Contains(p.Output(), "server started")
			}
		})
		p.Kill(15)
		if p.ExitCode() == 0 || !strings.Contains(p.Output(), "use https beyond this machine") {
			t.Errorf("%s: exit code %d, %s", address, p.ExitCode(), p.Output())
		}
	}

	for _, c := range []struct {
		address, flag string
		warns         bool
	}{{"http://" + outside + "/", "--bk-login-insecure", true}, {"http://127.0.0.1:1/", "--bk-login-insecure=false", false}} {
		p := start(c.address, c.flag)
		ft.Until(t, time.Minute, func() string { return "the server does not start: " + p.Output() },
			func() bool { return strings.Contains(p.Output(), "server started") })
		if strings.Contains(p.Output(), "logins are checked without TLS") != c.warns {
			t.Errorf("%s: %s", c.address, p.Output())
		}
		p.Kill(15)
	}
}

// outsideAddress is an address of this machine that is not loopback, or one of a documentation network.
func outsideAddress(t *testing.T) string {
	t.Helper()
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return "192.0.2.1"
}

// TestTI13LoginServiceDecides: behind the flag the login service decides about names, and an app without --unknown-users
// still lets in the people of the record only.
func TestTI13LoginServiceDecides(t *testing.T) {
	t.Parallel() // it mostly waits
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"result":true,"data":{"bk_username":%q}}`, r.URL.Query().Get("bk_token"))
	}))
	t.Cleanup(service.Close)
	f := newPeopleFleet(t, "--bk-login-url="+service.URL)
	secret := text(f.do(f.admin(), "POST", "/api/v1/apps", ft.J{"code": "portal", "grants": []ft.J{{"role": "admin"}}}, 201),
		"secret")
	f.user("alice", "viewer")
	f.do(app("portal", secret, "bk_token", "alice"), "GET", "/api/v1/hosts", nil, 200)
	f.do(app("portal", secret, "bk_token", "ceo"), "GET", "/api/v1/hosts", nil, 403)
}

// TestTI14SecondFactor: with a second factor a password alone opens nothing, and no code counts twice.
func TestTI14SecondFactor(t *testing.T) {
	f := newPeopleFleet(t, "--require-totp=admins")
	f.user("root", "admin")
	f.user("alice", "viewer")
	f.login("alice", "") // needs none
	root := func(code string) ft.J { return ft.J{"user": "root", "password": password, "code": code} }
	f.do(nobody, "POST", "/api/v1/login", root(""), 403)

	// Make the factor with the password alone, and confirm it.
	f.do(nobody, "POST", "/api/v1/totp", ft.J{"user": "root", "password": password + "x"}, 401)
	made := f.do(nobody, "POST", "/api/v1/totp", root(""), 201)
	recovery := made["recovery_codes"].([]any)
	code := func(periods int) string {
		c, err := ft.TOTPCode(text(made, "secret"), time.Now().Add(time.Duration(periods)*30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	f.do(nobody, "PUT", "/api/v1/totp", root("000000000"), 401)
	used := code(0)
	f.do(nobody, "PUT", "/api/v1/totp", root(used), 200)

	// The password alone, a used code, an older code, and a code with a wrong password open nothing.
	for _, c := range []string{"", used, code(-1), "      ", recovery[0].(string) + "x"} {
		f.do(nobody, "POST", "/api/v1/login", root(c), 401)
	}
	f.do(nobody, "POST", "/api/v1/login", ft.J{"user": "root", "password": password + "x", "code": code(1)}, 401)

	// The next code opens a session, once, also after a restart. So does a recovery code.
	next := code(1)
	f.login("root", next)
	f.do(nobody, "POST", "/api/v1/login", root(next), 401)
	f.Kill(15)
	f.Again()
	f.AwaitReady()
	f.do(nobody, "POST", "/api/v1/login", root(next), 401)
	session := f.login("root", recovery[0].(string))
	f.do(nobody, "POST", "/api/v1/login", root(recovery[0].(string)), 401)

	// The session alone neither removes the factor nor makes a new one or a token, also not with the password.
	f.do(bearer(session), "DELETE", "/api/v1/users/root/totp", ft.J{"password": password}, 401)
	f.do(nobody, "POST", "/api/v1/totp", root(""), 401)
	f.do(bearer(session), "POST", "/api/v1/users/root/tokens", ft.J{"password": password}, 401)
	f.do(bearer(session), "POST", "/api/v1/users/root/tokens", ft.J{"password": password, "code": recovery[1]}, 201)
	for _, secret := range []string{text(made, "secret"), recovery[2].(string)} {
		if strings.Contains(f.Output(), secret) {
			t.Error("a secret of the second factor is in the log")
		}
	}
}

// TestNamedAdmins: the shared app is disabled once a named admin can log in, and never the last way in.
func TestNamedAdmins(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newPeopleFleet(t)
	disable := ft.J{"disabled": true}
	f.do(f.admin(), "PUT", "/api/v1/apps/admin", disable, 409)
	f.do(f.admin(), "PUT", "/api/v1/apps/admin", ft.J{"unknown_users": false}, 409)
	f.do(f.admin(), "POST", "/api/v1/users", ft.J{"name": "ghost", "grants": []ft.J{{"role": "admin"}}}, 201)
	f.do(f.admin(), "PUT", "/api/v1/apps/admin", disable, 409) // ghost cannot log in
	f.user("carol", "admin")
	f.do(f.admin(), "PUT", "/api/v1/apps/admin", disable, 200)
	f.do(f.admin(), "GET", "/api/v1/users", nil, 403)
	if ans, err := f.Try("sync_proc_status", ft.J{"meta": ft.J{"namespace": "gse"},
		"page": ft.J{"start": 0, "limit": 1}}); err != nil || ans.Result {
		t.Errorf("a disabled app on a door of BlueKing: %v %s", err, ans.Raw)
	}

	// The last named admin stays, and the app comes back when it is lost.
	carol := bearer(f.login("carol", ""))
	for _, end := range []func(){
		func() { f.do(carol, "POST", "/api/v1/users/carol/offboard", nil, 409) },
		func() { f.do(carol, "DELETE", "/api/v1/users/carol", nil, 409) },
		func() { f.do(carol, "PUT", "/api/v1/users/carol", disable, 409) },
		func() {
			f.do(carol, "DELETE", "/api/v1/grants", ft.J{"user": "carol", "grant": ft.J{"role": "admin"}}, 409)
		},
	} {
		end()
	}
	f.do(carol, "PUT", "/api/v1/apps/admin", ft.J{"disabled": false}, 200)
	f.do(f.admin(), "GET", "/api/v1/users", nil, 200)
}

// TestOffboard: everything that a person has ends, and what remains is named.
func TestOffboard(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newPeopleFleet(t)
	f.user("carol", "admin")
	session := f.login("carol", "")
	carol := bearer(session)
	token := text(f.do(carol, "POST", "/api/v1/users/carol/tokens", ft.J{"password": password}, 201), "token")
	secret := text(f.do(carol, "POST", "/api/v1/apps", ft.J{"code": "portal", "asserts_users": true,
		"unknown_users": true, "grants": []ft.J{{"role": "viewer"}}}, 201), "secret")
	f.do(f.admin(), "POST", "/api/v1/apps", ft.J{"code": "other"}, 201)
	f.do(f.admin(), "POST", "/api/v1/apps/other/secrets", nil, 201)

	o := f.do(f.admin(), "POST", "/api/v1/users/carol/offboard", nil, 200)
	if fmt.Sprint(o["ended_sessions"], o["ended_tokens"], o["ended_grants"], o["apps"]) != "1 1 1 [portal]" {
		t.Errorf("offboarding answers %v", o)
	}

	// Nothing of the person works: session, token, login, or the name through the app that the person made.
	f.do(carol, "GET", "/api/v1/hosts", nil, 401)
	f.do(bearer(token), "GET", "/api/v1/hosts", nil, 401)
	f.do(nobody, "POST", "/api/v1/login", ft.J{"user": "carol", "password": password}, 401)
	f.do(app("portal", secret, "bk_username", "carol"), "GET", "/api/v1/hosts", nil, 403)
	if users := fmt.Sprint(f.do(f.admin(), "GET", "/api/v1/users", nil, 200)); strings.Contains(users, "admin") {
		t.Errorf("the users are %s", users)
	}
}

// TestGroupsOfTheProvider: the grants of a group count for a login that names the group, and end with it.
func TestGroupsOfTheProvider(t *testing.T) {
	t.Parallel() // it mostly waits
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of-gozzard\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &oidcFleet{t: t, provider: ft.NewProvider(t)}
	listen := "127.0.0.1:" + strconv.Itoa(ft.FreePort(t))
	f.base = "http://" + listen
	f.Server = ft.StartServer(t, "", "--listen", listen, "--oidc-issuer", f.provider.URL, "--oidc-client-id", "gozzard",
		"--oidc-secret-file", secret, "--oidc-redirect-url", f.base+"/login/oidc/callback", "--oidc-groups-claim", "groups")
	p := &peopleFleet{Server: f.Server, t: t}
	f.addUser("a@example.com") // a viewer
	admins := ft.J{"group": "/fleet/admins", "grant": ft.J{"role": "admin"}}
	p.do(p.admin(), "POST", "/api/v1/grants", admins, 200)
	login := func(groups any) (token string) {
		t.Helper()
		f.provider.Claims = func(c map[string]any) { c["groups"] = groups; c["roles"] = []string{"/fleet/admins"} }
		page := f.login()
		var s struct{ Token string }
		if err := json.Unmarshal([]byte(page.body), &s); err != nil || s.Token == "" {
			t.Fatalf("a login is answered %d %s", page.status, page.body)
		}
		return s.Token
	}

	// Only the very name counts, in the claim that the server was given.
	for _, groups := range []any{nil, "/fleet/admin", []string{"/fleet/admins/x", "/FLEET/ADMINS", " /fleet/admins"},
		[]any{1, map[string]any{"name": "/fleet/admins"}}} {
		p.do(bearer(login(groups)), "GET", "/api/v1/users", nil, 403)
	}

	// A member is an admin for as long as this login lasts. A token of the person has the person's own grants.
	member := login([]string{"/others", "/fleet/admins"})
	outside := login(nil)
	p.do(bearer(member), "GET", "/api/v1/users", nil, 200)
	p.do(bearer(outside), "GET", "/api/v1/users", nil, 403)
	token := text(p.do(bearer(member), "POST", "/api/v1/users/a@example.com/tokens", ft.J{}, 201), "token")
	p.do(bearer(token), "GET", "/api/v1/users", nil, 403)
	p.do(bearer(token), "POST", "/api/v1/users/a@example.com/tokens", ft.J{}, 401) // no fresh login

	// The groups survive a restart of the server, and end with the login or with the grant.
	f.Kill(15)
	f.Again()
	f.AwaitReady()
	p.do(bearer(member), "GET", "/api/v1/users", nil, 200)
	p.do(p.admin(), "DELETE", "/api/v1/grants", admins, 200)
	p.do(bearer(member), "GET", "/api/v1/users", nil, 403)
	p.do(p.admin(), "POST", "/api/v1/grants", admins, 200)
	p.do(bearer(member), "GET", "/api/v1/users", nil, 200)
	p.do(bearer(member), "POST", "/api/v1/logout", nil, 200)
	p.do(bearer(member), "GET", "/api/v1/users", nil, 401)
}
