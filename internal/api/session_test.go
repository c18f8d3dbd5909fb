package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/test/fleettest"
)

// browser is a browser on the machine of the server: it keeps the cookie and sends it with every request.
type browser struct {
	d      *accountServer
	host   string
	cookie *http.Cookie
	client.Session
}

func (d *accountServer) newBrowser() *browser { return &browser{d: d, host: "127.0.0.1:8080"} }

// do sends a request as a page of this server does, changed by edit.
func (b *browser) do(method, path, body string, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = b.host, "127.0.0.1:50000"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method != http.MethodGet {
		r.Header.Set("Origin", "http://"+b.host)
		r.Header.Set("X-Gozzard-CSRF", b.CSRF)
	}
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	for _, f := range edit {
		f(r)
	}
	w := httptest.NewRecorder()
	b.d.handler.ServeHTTP(w, r)
	return w
}

// want is do that checks the status.
func (b *browser) want(status int, method, path, body string, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	b.d.t.Helper()
	w := b.do(method, path, body, edit...)
	if w.Code != status {
		b.d.t.Fatalf("%s %s gets %d, want %d: %s", method, path, w.Code, status, w.Body)
	}
	return w
}

// take keeps the session of an answer.
func (b *browser) take(w *httptest.ResponseRecorder) *browser {
	b.d.t.Helper()
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		b.d.t.Fatalf("the answer sets %d cookies", len(cookies))
	}
	b.cookie = cookies[0]
	if err := json.Unmarshal(w.Body.Bytes(), &b.Session); err != nil {
		b.d.t.Fatal(err)
	}
	return b
}

func (b *browser) signIn(user string) *browser {
	b.d.t.Helper()
	return b.take(b.want(200, "POST", "/api/v1/session", `{"user":"`+user+`","password":"a long password"}`))
}

func kindOf(t *testing.T, w *httptest.ResponseRecorder) gozzard.ErrorKind {
	t.Helper()
	return reply{w.Code, w.Header(), w.Body.String()}.failure(t).Error.Kind
}

func newSessionServer(t *testing.T) *accountServer {
	t.Helper()
	d := newAccountServer(t, nil)
	d.do(admin, "POST", "/api/v1/users", `{"name":"alice","password":"a long password","grants":[{"role":"viewer"}]}`,
		201, nil)
	d.do(admin, "POST", "/api/v1/users", `{"name":"root","password":"a long password","grants":[{"role":"admin"}]}`,
		201, nil)
	return d
}

func TestSession(t *testing.T) {
	d := newSessionServer(t)
	b := d.newBrowser()
	b.want(401, "GET", "/api/v1/session", "")
	b.want(401, "POST", "/api/v1/session", `{"user":"alice","password":"a wrong password"}`)
	b.signIn("alice")

	c := b.cookie
	if c.Name != "gozzard_8080" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure ||
		c.Domain != "" {
		t.Errorf("the cookie is %v", c)
	}
	if b.User != "alice" || b.ID == "" || b.CSRF == "" || b.IdleSeconds != 7200 || b.Expires.IsZero() {
		t.Errorf("the session is %+v", b.Session)
	}
	if want := (client.Can{SeeAll: true}); b.Can != want {
		t.Errorf("a viewer can %+v", b.Can)
	}

	var again client.Session
	if err := json.Unmarshal(b.want(200, "GET", "/api/v1/session", "").Body.Bytes(), &again); err != nil ||
		again != b.Session {
		t.Errorf("the session is %+v, was %+v: %v", again, b.Session, err)
	}

	b.want(200, "GET", "/api/v1/processes", "")
	b.want(403, "GET", "/api/v1/users", "")
	out := b.want(200, "DELETE", "/api/v1/session", "")
	if list := out.Result().Cookies(); len(list) != 1 || list[0].MaxAge != -1 || list[0].Value != "" {
		t.Errorf("the log-out leaves the cookies %v", list)
	}
	b.want(401, "GET", "/api/v1/session", "")

	if root := d.newBrowser().signIn("root"); root.Can != (client.Can{Admin: true, SeeAll: true, Operate: true,
		Define: true, Enrol: true, Audit: true, Users: true, Approve: true, Topology: true}) {
		t.Errorf("an admin can %+v", root.Can)
	}
}

// TestSessionOverTLS checks the cookie of a server with TLS, and of one behind a proxy with TLS.
func TestSessionOverTLS(t *testing.T) {
	d := newSessionServer(t)
	b := d.newBrowser()
	b.host = "fleet.example.com"
	tls := func(r *http.Request) {
		r.TLS = httptest.NewRequest("GET", "https://fleet.example.com/", nil).TLS
		r.Header.Set("Origin", "https://fleet.example.com")
	}
	b.take(b.want(200, "POST", "/api/v1/session", `{"user":"alice","password":"a long password"}`, tls))
	if b.cookie.Name != "__Host-gozzard" || !b.cookie.Secure || b.cookie.Path != "/" {
		t.Errorf("the cookie is %v", b.cookie)
	}
	b.want(200, "GET", "/api/v1/session", "", tls)
	b.want(403, "GET", "/api/v1/session", "", tls, header("Origin", "http://fleet.example.com"))
}

// TestSessionRefusesOtherPages walks over what a page of another site can make a browser do.
func TestSessionRefusesOtherPages(t *testing.T) {
	d := newSessionServer(t)
	b := d.newBrowser().signIn("root")
	const make = `{"name":"evil"}`
	host := func(name string) func(*http.Request) {
		return func(r *http.Request) {
			r.Host = name
			r.Header.Del("Origin")
		}
	}

	for what, edit := range map[string]func(*http.Request){
		"no header":                  header("X-Gozzard-CSRF", ""),
		"another header":             header("X-Gozzard-CSRF", b.CSRF+"x"),
		"a foreign origin":           header("Origin", "https://evil.example.com"),
		"no origin at all":           header("Origin", "null"),
		"another port":               header("Origin", "http://127.0.0.1:9999"),
		"another scheme":             header("Origin", "https://127.0.0.1:8080"),
		"a foreign site":             header("Sec-Fetch-Site", "cross-site"),
		"another port by the header": header("Sec-Fetch-Site", "same-site"),
		"a rebound name":             host("evil.example.com:8080"),
	} {
		if w := b.do("POST", "/api/v1/users", make, edit); w.Code != 403 {
			t.Errorf("a change with %s gets %d: %s", what, w.Code, w.Body)
		}
		if strings.Contains(what, "header") && !strings.Contains(what, "port") {
			continue
		}
		if w := b.do("GET", "/api/v1/users", "", edit); w.Code != 403 {
			t.Errorf("a read with %s gets %d: %s", what, w.Code, w.Body)
		}
		if w := b.do("POST", "/api/v1/session", `{"user":"alice","password":"a long password"}`, edit); w.Code != 403 {
			t.Errorf("a login with %s gets %d: %s", what, w.Code, w.Body)
		}
	}

	b.want(201, "POST", "/api/v1/users", make)
	b.want(200, "GET", "/api/v1/users", "", header("Sec-Fetch-Site", "none")) // typed into the address bar
}

// TestSessionCookieAlone checks where the cookie counts, and what counts as the cookie.
func TestSessionCookieAlone(t *testing.T) {
	d := newSessionServer(t)
	b := d.newBrowser().signIn("root")

	// A header with credentials counts alone, also when they are wrong.
	b.want(401, "GET", "/api/v1/users", "", header("Authorization", "Bearer wrong"))
	b.want(401, "GET", "/api/v1/users", "", header("X-Bkapi-Authorization", `{"bk_app_code":"admin","bk_app_secret":"x"}`))
	var token secretAnswer
	d.do(admin, "POST", "/api/v1/users/alice/tokens", `{}`, 201, &token)
	b.want(403, "GET", "/api/v1/users", "", header("Authorization", "Bearer "+token.Token))

	// A session is valid in the cookie only, and a token is not valid there.
	d.do(person(b.cookie.Value), "GET", "/api/v1/whoami", "", 401, nil)
	var login secretAnswer
	d.do(anonymous, "POST", "/api/v1/login", `{"user":"root","password":"a long password"}`, 200, &login)
	for _, value := range []string{token.Token, login.Token, "x", strings.Repeat("x", 5000)} {
		other := d.newBrowser()
		other.cookie = &http.Cookie{Name: "gozzard_8080", Value: value}
		other.want(401, "GET", "/api/v1/whoami", "")
	}

	// The cookie of another port does not count, and neither do two cookies.
	b.want(401, "GET", "/api/v1/whoami", "", func(r *http.Request) { r.Host = "127.0.0.1:9090" })
	b.want(401, "GET", "/api/v1/whoami", "", func(r *http.Request) {
		r.AddCookie(&http.Cookie{Name: b.cookie.Name, Value: "x"})
	})
	b.want(200, "GET", "/api/v1/whoami", "")
}

// TestSessionIsNotFixed plants a cookie before a login.
func TestSessionIsNotFixed(t *testing.T) {
	d := newSessionServer(t)
	planted := d.newBrowser().signIn("alice")
	b := d.newBrowser()
	b.cookie = planted.cookie
	b.signIn("root")
	if b.cookie.Value == planted.cookie.Value || b.CSRF == planted.CSRF || b.ID == planted.ID {
		t.Error("the login keeps the secret of the planted cookie")
	}
	planted.want(403, "GET", "/api/v1/users", "")

	made := d.newBrowser()
	made.cookie = &http.Cookie{Name: "gozzard_8080", Value: "gzc_" + strings.Repeat("A", 43)}
	made.signIn("root")
	thief := d.newBrowser()
	thief.cookie = &http.Cookie{Name: "gozzard_8080", Value: "gzc_" + strings.Repeat("A", 43)}
	thief.want(401, "GET", "/api/v1/session", "")
}

// TestSessionsOfAUser checks the list of sessions, one that is revoked, and all others.
func TestSessionsOfAUser(t *testing.T) {
	d := newSessionServer(t)
	one, two, three := d.newBrowser().signIn("alice"), d.newBrowser().signIn("alice"), d.newBrowser().signIn("alice")
	root := d.newBrowser().signIn("root")
	var list client.UserTokenList
	if err := json.Unmarshal(one.want(200, "GET", "/api/v1/users/alice/tokens", "").Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Tokens) != 3 || list.Tokens[0].Kind != "console" || !list.Tokens[0].Session {
		t.Fatalf("the sessions are %+v", list)
	}

	// A person sees all of its own sessions by the cookie, and by nothing else.
	if got := one.want(200, "GET", "/api/v1/sessions", "").Body.String(); !strings.Contains(got, `"count":3`) ||
		strings.Contains(got, root.ID) {
		t.Errorf("the sessions are %s", got)
	}
	d.newBrowser().want(401, "GET", "/api/v1/sessions", "", admin)

	one.want(200, "DELETE", "/api/v1/users/alice/tokens/"+two.ID, "")
	two.want(401, "GET", "/api/v1/session", "")
	one.want(403, "DELETE", "/api/v1/users/root/tokens/"+root.ID, "")
	one.want(200, "DELETE", "/api/v1/session/others", "")
	three.want(401, "GET", "/api/v1/session", "")
	one.want(200, "GET", "/api/v1/session", "")
	root.want(200, "GET", "/api/v1/session", "")

	// A stolen session makes no token.
	if w := one.do("POST", "/api/v1/users/alice/tokens", `{}`); w.Code != 401 {
		t.Errorf("a session makes a token: %d %s", w.Code, w.Body)
	}
	one.want(201, "POST", "/api/v1/users/alice/tokens", `{"password":"a long password"}`)
}

// TestSessionLink opens the console by a one-time link.
func TestSessionLink(t *testing.T) {
	d := newSessionServer(t)
	b := d.newBrowser()
	link := func(caller as, edit ...func(*http.Request)) *httptest.ResponseRecorder {
		return d.newBrowser().do("POST", "/api/v1/session/link", "", append([]func(*http.Request){caller}, edit...)...)
	}
	codeOf := func(w *httptest.ResponseRecorder) string {
		t.Helper()
		var l client.SessionLink
		if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil || w.Code != 200 {
			t.Fatalf("no link: %d %s", w.Code, w.Body)
		}
		code, ok := strings.CutPrefix(l.URL, "http://127.0.0.1:8080/console/enter?code=")
		if !ok {
			t.Fatalf("the link is %s", l.URL)
		}
		return `{"code":"` + code + `"}`
	}

	// An app that may do everything gets a session that acts as the app for its user.
	code := codeOf(link(admin))
	b.take(b.want(200, "POST", "/api/v1/session/enter", code))
	if b.User != "me" || b.App != "admin" || !b.Can.Admin || b.Can.Approve {
		t.Errorf("the session is %+v", b.Session)
	}
	if who := b.want(200, "GET", "/api/v1/whoami", "").Body.String(); !strings.Contains(who,
		`"app":"admin","user":"me","asserted":true`) {
		t.Errorf("the session is of %s", who)
	}
	other := d.newBrowser()
	other.take(other.want(200, "POST", "/api/v1/session/enter", codeOf(link(admin))))
	var own client.UserTokenList
	if err := json.Unmarshal(b.want(200, "GET", "/api/v1/sessions", "").Body.Bytes(), &own); err != nil {
		t.Fatal(err)
	}
	if own.Count != 2 || !slices.ContainsFunc(own.Tokens, func(k client.UserToken) bool {
		return k.ID == b.ID && k.Kind == "console_link" && k.App == "admin" && k.Token == ""
	}) {
		t.Errorf("the sessions are %+v", own)
	}
	b.want(200, "DELETE", "/api/v1/session/others", "")
	other.want(401, "GET", "/api/v1/sessions", "")
	if list := b.want(200, "GET", "/api/v1/users/me/tokens", "").Body.String(); !strings.Contains(list, b.ID) {
		t.Errorf("the session is not in the list: %s", list)
	}

	// A code works once, and from this machine only.
	away := func(r *http.Request) { r.RemoteAddr = "192.0.2.1:999" }
	forwarded := header("X-Forwarded-For", "192.0.2.1")
	d.newBrowser().want(401, "POST", "/api/v1/session/enter", code)
	code = codeOf(link(admin))
	d.newBrowser().want(403, "POST", "/api/v1/session/enter", code, away)
	d.newBrowser().want(403, "POST", "/api/v1/session/enter", code, forwarded)
	d.newBrowser().want(403, "POST", "/api/v1/session/enter", code, header("Origin", "http://127.0.0.1:9999"))
	d.newBrowser().want(401, "POST", "/api/v1/session/enter", `{"code":"wrong"}`)
	d.newBrowser().want(200, "POST", "/api/v1/session/enter", code)

	// Callers that cannot make one.
	for what, w := range map[string]*httptest.ResponseRecorder{
		"another machine": link(admin, away), "a proxy": link(admin, forwarded),
		"a session": b.do("POST", "/api/v1/session/link", ""),
	} {
		if w.Code != 403 {
			t.Errorf("%s makes a link: %d %s", what, w.Code, w.Body)
		}
	}
	if w := link(anonymous); w.Code != 401 {
		t.Errorf("a caller without credentials makes a link: %d %s", w.Code, w.Body)
	}
	var shop secretAnswer
	d.do(admin, "POST", "/api/v1/apps", `{"code":"shop","asserts_users":true,"unknown_users":true,"grants":[{"role":"viewer"}]}`,
		201, &shop)
	if w := link(app("shop", shop.Secret)); w.Code != 403 {
		t.Errorf("an app that is no admin makes a link: %d %s", w.Code, w.Body)
	}

	// A person gets a session of its own, with its own rights.
	var token secretAnswer
	d.do(admin, "POST", "/api/v1/users/alice/tokens", `{"days":1}`, 201, &token)
	alice := d.newBrowser()
	alice.take(alice.want(200, "POST", "/api/v1/session/enter", codeOf(link(person(token.Token)))))
	if alice.User != "alice" || alice.App != "" || alice.Can.Admin {
		t.Errorf("the session of a person is %+v", alice.Session)
	}

	// The session of an app ends with the secret that it was opened with.
	d.do(admin, "POST", "/api/v1/apps/admin/secrets", "", 201, nil)
	b.want(200, "GET", "/api/v1/session", "")
	d.do(admin, "DELETE", "/api/v1/apps/admin/secrets", "", 200, nil)
	b.want(401, "GET", "/api/v1/session", "")
}

func TestSessionNeedsTheSecondFactor(t *testing.T) {
	d := newSessionServer(t)
	enrolSecond(t, d, "alice", "a long password")
	w := d.newBrowser().do("POST", "/api/v1/session", `{"user":"alice","password":"a long password"}`)
	if w.Code != 401 || kindOf(t, w) != gozzard.ErrCodeRequired {
		t.Errorf("a login without a code gets %d %s", w.Code, w.Body)
	}
	w = d.newBrowser().do("POST", "/api/v1/session", `{"user":"alice","password":"a wrong password"}`)
	if w.Code != 401 || kindOf(t, w) != gozzard.ErrUnauthenticated {
		t.Errorf("a wrong password gets %d %s", w.Code, w.Body)
	}
}

func TestSessionWays(t *testing.T) {
	d := newSessionServer(t)
	if ways := d.newBrowser().want(200, "GET", "/api/v1/session/ways", "").Body.String(); ways !=
		`{"password":true,"provider":false,"link":true}`+"\n" {
		t.Errorf("on the machine of the server the ways are %s", ways)
	}
	away := func(r *http.Request) { r.RemoteAddr = "192.0.2.1:999" }
	if ways := d.newBrowser().want(200, "GET", "/api/v1/session/ways", "", away).Body.String(); !strings.Contains(ways,
		`"link":false`) {
		t.Errorf("elsewhere the ways are %s", ways)
	}
}

// enrolSecond gives a user a second factor.
func enrolSecond(t *testing.T, d *accountServer, user, password string) {
	t.Helper()
	login := `{"user":"` + user + `","password":"` + password + `"`
	var factor client.TOTPEnrolment
	d.do(anonymous, "POST", "/api/v1/totp", login+`}`, 201, &factor)
	code, err := fleettest.TOTPCode(factor.Secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	d.do(anonymous, "PUT", "/api/v1/totp", login+`,"code":"`+code+`"}`, 200, nil)
}

// TestSessionEndsItsStreams: a stream of a session that ends closes at once, with a last event.
func TestSessionEndsItsStreams(t *testing.T) {
	d := newSessionServer(t)
	srv := httptest.NewServer(d.handler)
	t.Cleanup(srv.Close)
	b := d.newBrowser()
	b.host = strings.TrimPrefix(srv.URL, "http://")

	for what, end := range map[string]func(b *browser){
		"log-out of the live stream": func(b *browser) { b.want(200, "DELETE", "/api/v1/session", "") },
		"log-out":                    func(b *browser) { b.want(200, "DELETE", "/api/v1/session", "") },
		"revoked": func(b *browser) {
			d.do(admin, "DELETE", "/api/v1/users/alice/tokens/"+b.ID, "", 200, nil)
		},
		"disabled": func(*browser) { d.do(admin, "PUT", "/api/v1/users/alice", `{"disabled":true}`, 200, nil) },
	} {
		d.do(admin, "PUT", "/api/v1/users/alice", `{"disabled":false}`, 200, nil)
		b.cookie = nil
		b.signIn("alice")
		path := "/api/v1/events/stream"
		if strings.HasSuffix(what, "live stream") {
			table, err := client.ParseLiveSnapshot(b.want(200, "GET", "/api/v1/live/snapshot", "").Body.Bytes())
			check(t, err)
			path = fmt.Sprintf("/api/v1/live/stream?epoch=%s&after=%d", table.Epoch, table.Seq)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
		check(t, err)
		req.AddCookie(b.cookie)
		res, err := http.DefaultClient.Do(req)
		check(t, err)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("the stream gets %s", res.Status)
		}
		_, err = io.ReadFull(res.Body, make([]byte, len(": \n\n"))) // it is open
		check(t, err)

		end(b)
		ended := time.Now()
		rest, err := io.ReadAll(res.Body)
		check(t, err)
		_ = res.Body.Close()
		if took := time.Since(ended); took > 3*time.Second { // without the signal, up to 5 s
			t.Errorf("%s: the stream went on for %s", what, took)
		}
		if !strings.HasSuffix(string(rest), "event: bye\ndata: {\"reason\":\"session\"}\n\n") {
			t.Errorf("%s: the stream ended with %q", what, rest)
		}
	}
}

// TestProviderLoginEndsInTheConsole logs a user in at a provider, from the console.
func TestProviderLoginEndsInTheConsole(t *testing.T) {
	there := fleettest.NewProvider(t)
	p, err := auth.NewProvider(auth.ProviderOptions{Issuer: there.URL, ClientID: "gozzard", ClientSecret: "s",
		RedirectURL: "http://127.0.0.1:8080/login/oidc/callback"})
	check(t, err)
	d := newAccountServer(t, p)
	login := func(edit func(url.Values)) *httptest.ResponseRecorder {
		t.Helper()
		b := d.newBrowser()
		began := b.want(302, "GET", "/login/oidc?to=console", "")
		b.cookie = began.Result().Cookies()[0]
		query := url.Values{"state": {there.Visit(began.Header().Get("Location"))}, "code": {fleettest.ProviderCode}}
		edit(query)
		return b.want(302, "GET", "/login/oidc/callback?"+query.Encode(), "", header("Sec-Fetch-Site", "cross-site"))
	}

	same := func(url.Values) {}
	for want, w := range map[string]*httptest.ResponseRecorder{
		"user_forbidden":  login(same), // not known here
		"unauthenticated": login(func(q url.Values) { q.Set("error", "access_denied") }),
	} {
		if to := w.Header().Get("Location"); to != "/console/sign-in?error="+want {
			t.Errorf("a login that fails ends at %s", to)
		}
		for _, c := range w.Result().Cookies() {
			if c.Name == "gozzard_8080" {
				t.Errorf("a login that fails sets %v", c)
			}
		}
	}

	d.do(admin, "POST", "/api/v1/users", `{"name":"a@example.com","grants":[{"role":"viewer"}]}`, 201, nil)
	w := login(same)
	if to := w.Header().Get("Location"); to != "/console/" || w.Body.Len() > 0 {
		t.Errorf("the login ends at %s with %s", to, w.Body)
	}
	b := d.newBrowser()
	for _, c := range w.Result().Cookies() {
		if c.Name == "gozzard_8080" {
			b.cookie = c
		}
	}
	if who := b.want(200, "GET", "/api/v1/session", "").Body.String(); !strings.Contains(who, `"user":"a@example.com"`) {
		t.Errorf("the session is %s", who)
	}
	b.want(400, "GET", "/login/oidc?to=https://evil.example.com", "")
}

// TestSessionInTheBackground: what a page does by itself does not keep its session.
func TestSessionInTheBackground(t *testing.T) {
	now := time.Now()
	d := newAccountServerAt(t, nil, func() time.Time { return now })
	d.do(admin, "POST", "/api/v1/users", `{"name":"alice","password":"a long password","grants":[{"role":"viewer"}]}`,
		201, nil)
	b := d.newBrowser().signIn("alice")
	for range 3 {
		now = now.Add(50 * time.Minute)
		b.want(200, "GET", "/api/v1/session", "")
	}
	now = now.Add(110 * time.Minute)
	b.want(200, "GET", "/api/v1/session", "", header("X-Gozzard-Background", "1"))
	now = now.Add(10 * time.Minute)
	b.want(401, "GET", "/api/v1/session", "")
}
