//go:build linux

package fleettest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// tab is a page of the console in a browser. Like a browser it sends its cookies with every request.
type tab struct {
	t       *testing.T
	url     string
	cookies []*http.Cookie
	csrf    string
	id      string
}

// send sends a request as a page of the server does, changed by edits.
func (b *tab) send(method, path, body string, edits ...func(*http.Request)) (status int, answer string, res *http.Response) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if method != http.MethodGet {
		req.Header.Set("Origin", b.url)
		req.Header.Set("X-Gozzard-CSRF", b.csrf)
		req.Header.Set("Content-Type", "application/json")
	}
	for _, c := range b.cookies {
		req.AddCookie(c)
	}
	for _, edit := range edits {
		edit(req)
	}

	res, err = http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, string(raw), res
}

// want is send that checks the status. The test goes on, to see what else is possible.
func (b *tab) want(status int, method, path, body string, edits ...func(*http.Request)) string {
	b.t.Helper()
	got, answer, _ := b.send(method, path, body, edits...)
	if got != status {
		b.t.Errorf("%s %s: %d %s, want %d", method, path, got, answer, status)
	}
	return answer
}

// enter opens a session by a request and keeps its cookie, as a browser does.
func (b *tab) enter(path string, body ft.J) *tab {
	b.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	status, answer, res := b.send("POST", path, string(text))
	var s struct{ CSRF, ID string }
	if err := json.Unmarshal([]byte(answer), &s); err != nil || status != http.StatusOK || len(res.Cookies()) != 1 {
		b.t.Fatalf("no session: %d %s %v", status, answer, err)
	}
	b.cookies, b.csrf, b.id = res.Cookies(), s.CSRF, s.ID
	return b
}

func (f *peopleFleet) tab() *tab { return &tab{t: f.t, url: strings.TrimSuffix(f.Cred.URL, "/")} }

func (f *peopleFleet) signIn(name string) *tab {
	f.t.Helper()
	return f.tab().enter("/api/v1/session", ft.J{"user": name, "password": password})
}

func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// rebound is a request of a page whose name points to this machine.
func rebound(host string) func(*http.Request) {
	return func(r *http.Request) {
		r.Host = host
		r.Header.Set("Origin", "http://"+host)
	}
}

// TestTE19OtherPagesInTheBrowser: an admin is signed in to the console, and a page of another site in the same browser
// tries to use the session. The browser sends the cookie with its requests.
func TestTE19OtherPagesInTheBrowser(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newPeopleFleet(t)
	f.user("root", "admin")
	b := f.signIn("root")
	const evil = `{"name":"evil","password":"a password of some length"}`
	port := b.url[strings.LastIndex(b.url, ":"):]

	attacks := map[string][]func(*http.Request){
		"a form of another site":    {with("Origin", "https://evil.example"), with("Sec-Fetch-Site", "cross-site")},
		"a site, old browser":       {with("Origin", "https://evil.example"), with("Sec-Fetch-Site", "")},
		"a sandboxed frame":         {with("Origin", "null"), with("Sec-Fetch-Site", "cross-site")},
		"a page on another port":    {with("Origin", "http://127.0.0.1:1"), with("Sec-Fetch-Site", "same-site")},
		"another port, old browser": {with("Origin", "http://127.0.0.1:1"), with("Sec-Fetch-Site", "")},
		"a rebound name":            {rebound("evil.example" + port)},
		"a rebound name of a kind":  {rebound("127.0.0.1.evil.example" + port)},
	}
	for what, edits := range attacks {
		t.Run(what, func(t *testing.T) {
			b := *b
			b.t = t
			b.want(403, "POST", "/api/v1/users", evil, edits...)
			b.want(403, "POST", "/api/v1/session", `{"user":"root","password":"`+password+`"}`, edits...)
			if status, answer, _ := b.send("GET", "/api/v1/users", "", edits...); status == http.StatusOK {
				t.Errorf("the page reads the users: %s", answer)
			}
		})
	}

	// A page that reaches the server without the header can change nothing.
	b.want(403, "POST", "/api/v1/users", evil, with("X-Gozzard-CSRF", ""))
	b.want(403, "POST", "/api/v1/users", evil, with("X-Gozzard-CSRF", f.signIn("root").csrf))
	if list := b.want(200, "GET", "/api/v1/users", ""); strings.Contains(list, "evil") {
		t.Errorf("an attack had an effect: %s", list)
	}
	b.want(201, "POST", "/api/v1/users", evil) // the page of the server itself
}

// TestTE19CookieIsForTheNativeAPI: BlueKing's doors do not look at the cookie of the console, and a header with credentials
// counts alone.
func TestTE19CookieIsForTheNativeAPI(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newPeopleFleet(t)
	f.user("root", "admin")
	f.user("alice", "viewer")
	b := f.signIn("root")
	stranger := f.tab()

	out, err := exec.Command(ft.Binary(t), "server", "--print-routes").Output()
	if err != nil {
		t.Fatal(err)
	}
	random, parameter := regexp.MustCompile(`[0-9a-f]{32}`), regexp.MustCompile(`\{[^}]*\}`)
	doors := map[string]int{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) < 3 || words[2] == "api" || words[2] == "console" || words[2] == "docs" {
			continue
		}
		path := parameter.ReplaceAllString(words[1], "1")
		with, answer, _ := b.send(words[0], path, "{}")
		without, same, _ := stranger.send(words[0], path, "{}")
		if with != without || random.ReplaceAllString(answer, "") != random.ReplaceAllString(same, "") {
			t.Errorf("%s %s sees the cookie: %d %s, without it %d %s", words[0], path, with, answer, without, same)
		}
		doors[words[2]]++
	}
	if len(doors) != 3 {
		t.Errorf("the doors are %v", doors)
	}

	// The token of a viewer beside the cookie of an admin is a viewer.
	b.want(200, "GET", "/api/v1/users", "")
	b.want(403, "GET", "/api/v1/users", "", bearer(f.login("alice", "")))
	b.want(401, "GET", "/api/v1/users", "", bearer("wrong"))
	b.want(401, "GET", "/api/v1/users", "", app("nobody", "wrong", "bk_username", "root"))

	// The value of the cookie is no token, and no token is a cookie.
	f.do(bearer(b.cookies[0].Value), "GET", "/api/v1/whoami", nil, 401)
	planted := f.tab()
	planted.cookies = []*http.Cookie{{Name: b.cookies[0].Name, Value: f.login("root", "")}}
	planted.want(401, "GET", "/api/v1/whoami", "")
}

// TestTE19RightsOfASession: a session has the rights of its user, not more, and they change with the grants.
func TestTE19RightsOfASession(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newPeopleFleet(t)
	f.user("alice", "viewer")
	b := f.signIn("alice")
	for _, path := range []string{"/api/v1/users", "/api/v1/apps", "/api/v1/grants", "/api/v1/audit", "/api/v1/keys"} {
		b.want(403, "GET", path, "")
	}
	b.want(403, "POST", "/api/v1/enrol/tokens", `{}`)
	b.want(403, "DELETE", "/api/v1/users/root/tokens/1", "")
	b.want(401, "POST", "/api/v1/users/alice/tokens", `{}`)
	b.want(200, "GET", "/api/v1/hosts", "")

	f.do(f.admin(), "POST", "/api/v1/grants", ft.J{"user": "alice", "grant": ft.J{"role": "admin"}}, 200)
	b.want(200, "GET", "/api/v1/users", "")
	f.do(f.admin(), "DELETE", "/api/v1/grants", ft.J{"user": "alice", "grant": ft.J{"role": "admin"}}, 200)
	b.want(403, "GET", "/api/v1/users", "")
}

// TestTS16PlantedCookie: a cookie that an attacker puts into the browser before the login does not become the session.
func TestTS16PlantedCookie(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newPeopleFleet(t)
	f.user("root", "admin")
	f.user("mallory", "viewer")
	thief := f.signIn("mallory")

	b := f.tab()
	b.cookies = thief.cookies
	b.enter("/api/v1/session", ft.J{"user": "root", "password": password})
	thief.want(403, "GET", "/api/v1/users", "")
	b.want(200, "GET", "/api/v1/users", "")

	// Two cookies of that name, as a page on another port can cause, are no session.
	b.cookies = append(thief.cookies, b.cookies...)
	b.want(401, "GET", "/api/v1/whoami", "")

	// A value that the attacker chose is not taken over.
	chosen := []*http.Cookie{{Name: thief.cookies[0].Name, Value: "gzc_" + strings.Repeat("A", 43)}}
	b = f.tab()
	b.cookies = chosen
	b.enter("/api/v1/session", ft.J{"user": "root", "password": password})
	thief.cookies = chosen
	thief.want(401, "GET", "/api/v1/session", "")
}

// TestTS16LinkToTheConsole: a link works once and on the machine of the server, and its session has the rights of the
// caller that made it.
func TestTS16LinkToTheConsole(t *testing.T) {
	t.Parallel() // it mostly waits
	dev := ft.StartDev(t, 1)
	f := &peopleFleet{Server: &ft.Server{API: dev.API}, t: t}
	codeIn := func(text string) string {
		t.Helper()
		m := regexp.MustCompile(`/console/enter\?code=([A-Za-z0-9_-]{43})\s`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no link in %s", text)
		}
		return m[1]
	}
	ft.Until(t, time.Minute, dev.Output, func() bool { return strings.Contains(dev.Output(), "another link") })

	// The link of dev, from elsewhere, from another page, and twice.
	code := codeIn(dev.Output())
	body := `{"code":"` + code + `"}`
	stranger := f.tab()
	stranger.want(403, "POST", "/api/v1/session/enter", body, with("X-Forwarded-For", "192.0.2.1"))
	stranger.want(403, "POST", "/api/v1/session/enter", body, with("Origin", "https://evil.example"))
	stranger.want(403, "POST", "/api/v1/session/enter", body, with("Sec-Fetch-Site", "same-site"))
	stranger.want(421, "POST", "/api/v1/session/enter", body, rebound("evil.example"))
	stranger.want(401, "POST", "/api/v1/session/enter", `{"code":"wrong"}`)
	b := f.tab().enter("/api/v1/session/enter", ft.J{"code": code})
	stranger.want(401, "POST", "/api/v1/session/enter", body)
	if session := b.want(200, "GET", "/api/v1/session", ""); !strings.Contains(session, `"user":"admin"`) ||
		!strings.Contains(session, `"admin":true`) {
		t.Errorf("the session of dev is %s", session)
	}

	// Callers that cannot make one, and a person that can.
	stranger.want(401, "POST", "/api/v1/session/link", "")
	b.want(403, "POST", "/api/v1/session/link", "")
	stranger.want(403, "POST", "/api/v1/session/link", "", f.admin(), with("X-Forwarded-For", "192.0.2.1"))
	secret := text(f.do(f.admin(), "POST", "/api/v1/apps", ft.J{"code": "shop", "asserts_users": true,
		"unknown_users": true, "grants": []ft.J{{"role": "viewer"}}}, 201), "secret")
	stranger.want(403, "POST", "/api/v1/session/link", "", app("shop", secret, "bk_username", "admin"))
	f.user("alice", "viewer")
	link := text(f.do(bearer(f.login("alice", "")), "POST", "/api/v1/session/link", nil, 200), "url")
	alice := f.tab().enter("/api/v1/session/enter", ft.J{"code": codeIn(link + "\n")})
	alice.want(403, "GET", "/api/v1/users", "")

	// The session is in the list of its user, and ends there.
	if list := b.want(200, "GET", "/api/v1/users/admin/tokens", ""); !strings.Contains(list, b.id) {
		t.Errorf("the session is not in the list: %s", list)
	}
	f.do(f.admin(), "DELETE", "/api/v1/users/admin/tokens/"+b.id, nil, 200)
	b.want(401, "GET", "/api/v1/session", "")
}

// TestTI18EndOfASession: a session that is ended sees nothing any more, and its open stream closes within a second.
func TestTI18EndOfASession(t *testing.T) {
	f := newPeopleFleet(t)
	f.user("alice", "viewer")

	for what, end := range map[string]func(b *tab){
		"log-out":     func(b *tab) { b.want(200, "DELETE", "/api/v1/session", "") },
		"everywhere":  func(*tab) { f.signIn("alice").want(200, "DELETE", "/api/v1/session/others", "") },
		"an admin":    func(b *tab) { f.do(f.admin(), "DELETE", "/api/v1/users/alice/tokens/"+b.id, nil, 200) },
		"no password": func(*tab) { f.do(f.admin(), "PUT", "/api/v1/users/alice/password", ft.J{"password": password}, 200) },
	} {
		t.Run(what, func(t *testing.T) {
			b := f.signIn("alice")
			streams := []*bufio.Scanner{b.stream("/api/v1/events/stream"), b.stream(b.livePath())}
			end(b)
			ended := time.Now()

			for _, stream := range streams {
				last := ""
				for stream.Scan() {
					if stream.Text() != "" {
						last = stream.Text()
					}
				}
				took := time.Since(ended)
				t.Logf("a stream closed %s after the end", took)
				if took > 4*time.Second { // a second and the slowness of a machine; without a signal a stream looks every 5 s
					t.Errorf("a stream went on for %s", took)
				}
				if last != `data: {"reason":"session"}` {
					t.Errorf("a stream ended with %q", last)
				}
			}
			b.want(401, "GET", "/api/v1/session", "")
			b.want(401, "GET", "/api/v1/hosts", "")
		})
	}
}

// livePath is the live stream after a snapshot.
func (b *tab) livePath() string {
	b.t.Helper()
	raw := b.want(200, "GET", "/api/v1/live/snapshot", "")
	var head struct {
		Epoch string
		Seq   uint64
	}
	if err := json.NewDecoder(strings.NewReader(raw[min(len(raw), 8):])).Decode(&head); err != nil {
		b.t.Fatalf("no snapshot: %v in %.200q", err, raw)
	}
	return fmt.Sprintf("/api/v1/live/stream?epoch=%s&after=%d", head.Epoch, head.Seq)
}

// stream opens a stream of events, and returns when it is open.
func (b *tab) stream(path string) *bufio.Scanner {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.AddCookie(b.cookies[0])
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		b.t.Fatalf("no stream: %v %v", res, err)
	}
	b.t.Cleanup(func() { _ = res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	if !lines.Scan() {
		b.t.Fatal("the stream is empty")
	}
	return lines
}

// TestConsoleIdleIsBounded: a server does not start with an idle time that makes the console useless.
func TestConsoleIdleIsBounded(t *testing.T) {
	t.Parallel() // it mostly waits
	if out, err := exec.Command(ft.Binary(t), "server", "--console-idle", "1s", "--data", t.TempDir()).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "--console-idle: 1s is less than 1m") {
		t.Errorf("a server starts with an idle time of a second: %v %s", err, out)
	}
}
