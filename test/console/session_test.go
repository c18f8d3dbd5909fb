//go:build linux

package console_test

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

// TestRevokedSession: a session that an admin revokes ends at once: its next request is refused, its stream closes within a
// second, and the page asks for a sign-in. A session that a token opened ends with the token.
func TestRevokedSession(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	f.AddUser(t, "alice", password, client.Grant{Role: "admin"})

	t.Run("session", func(t *testing.T) {
		p := f.Open(t)
		p.SignIn("alice", password)
		list := sessions(t, f, "alice")
		for ; len(list) == 0; list = sessions(t, f, "alice") {
			p.Wait("navigation", "Pages")
		}
		ends(t, f, p, list[0].ID)
	})

	t.Run("token", func(t *testing.T) {
		token, c := withToken(t, f, "alice")
		p := f.Open(t)
		p.Go(linkOf(t, c))
		ends(t, f, p, token.ID)
	})
}

// linkOf is the path of a new one-time link.
func linkOf(t *testing.T, c *client.Client) string {
	t.Helper()
	link, err := c.ConsoleLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(link.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.RequestURI()
}

// ends revokes a token of alice and looks how the session of a page ends by it.
func ends(t *testing.T, f *console.Fleet, p *console.Page, id string) {
	t.Helper()
	p.Wait("navigation", "Pages")
	p.WaitSelector(".live-live")
	have := p.Cookies()
	closed := make(chan time.Time, 1)
	body := get(t, f, have, "/api/v1/live/stream")
	go func() {
		_, _ = io.Copy(io.Discard, bufio.NewReader(body)) // until the server ends it
		closed <- time.Now()
	}()

	// On the side of the server.
	if err := f.Client.RevokeUserToken(t.Context(), "alice", id); err != nil {
		t.Fatal(err)
	}
	revoked := time.Now()
	if status := statusOf(t, f, have, "/api/v1/processes"); status != http.StatusUnauthorized {
		t.Errorf("the next request of a revoked session: %d", status)
	}
	select {
	case at := <-closed:
		t.Logf("the stream ended after %s", at.Sub(revoked))
		if d := at.Sub(revoked); d > 5*time.Second { // a few milliseconds on a machine that has nothing else to do
			t.Errorf("the stream of a revoked session went on for %s", d)
		}
	case <-time.After(console.Patience):
		t.Fatal("the stream of a revoked session goes on")
	}

	// On the screen.
	p.WaitText("Your session has ended")
	t.Logf("the page showed it after %s", time.Since(revoked))
	if p.Has("navigation", "Pages") {
		t.Error("the console is still open")
	}
}

// request sends a request with cookies of a browser, and returns its answer.
func request(t *testing.T, f *console.Fleet, cookies map[string]string, path string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimRight(f.Cred.URL, "/")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// get returns the body of an answer, which must be good.
func get(t *testing.T, f *console.Fleet, cookies map[string]string, path string) io.Reader {
	t.Helper()
	answer := request(t, f, cookies, path)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", path, answer.Status)
	}
	return answer.Body
}

func statusOf(t *testing.T, f *console.Fleet, cookies map[string]string, path string) int {
	t.Helper()
	return request(t, f, cookies, path).StatusCode
}

// TestTS16PlantedInABrowser: a cookie that a page of another port planted before the sign-in is not the session after it,
// and a link that such a page opens signs nobody in.
func TestTS16PlantedInABrowser(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	f.AddUser(t, "victim", password, client.Grant{Role: "admin"})
	f.AddUser(t, "attacker", password, client.Grant{Role: "viewer"})
	evil := "http://127.0.0.1:" + evilPage(t)
	name := "gozzard_" + portOf(t, f.Cred.URL)

	// The attacker has a session, and a cookie that is none.
	a := f.Open(t)
	a.SignIn("attacker", password)
	a.Wait("navigation", "Pages")
	own := a.Cookies()[name]

	for what, planted := range map[string]string{"chosen value": "gzc_chosen-by-the-attacker", "session": own} {
		t.Run(what, func(t *testing.T) {
			p := f.Open(t)
			p.Visit(evil)
			p.Eval("document.cookie = "+quoted(name+"="+planted+"; path=/"), nil)
			// The browser keeps the cookie a moment later. Without it the test shows nothing.
			eventually(t, "the cookie is planted", func() bool { return p.Cookies()[name] == planted })
			p.Go("/console/")
			if what == "session" { // the page says in whose name it works; the victim signs out
				p.Click("button", "Sign out")
			}
			p.SignIn("victim", password)
			p.Wait("link", "People")
			if p.Cookies()[name] == planted {
				t.Error("the planted cookie is the session")
			}
			if status := statusOf(t, f, map[string]string{name: planted}, "/api/v1/users"); status < 400 {
				t.Errorf("the planted cookie has the rights of the victim: %d", status)
			}
		})
	}

	// Links: by a page, and a second time.
	_, c := withToken(t, f, "attacker")
	p := f.Open(t)
	p.SignIn("victim", password)
	p.Wait("link", "People")
	before := p.Cookies()[name]
	path := linkOf(t, c)
	q := p.Beside()
	for _, from := range []string{evil, strings.Replace(evil, "127.0.0.1", console.EvilHost, 1)} {
		q.Visit(from)
		q.Eval("void (location.href = "+quoted(strings.TrimRight(f.Cred.URL, "/")+path)+")", nil)
		q.WaitText("A page of another site opened this link")
	}
	if p.Cookies()[name] != before {
		t.Error("a page of another site signed the victim in as another person")
	}
	mine := f.Open(t)
	mine.Go(path) // the link was not used up
	mine.Wait("navigation", "Pages")
	q.Go(path)
	q.WaitText("This link was used before")
	if p.Cookies()[name] != before {
		t.Error("a used link changed the session")
	}
}

// TestNextPerson: a person signs out, and another signs in on the same page. Nothing of the first is shown to the second,
// whose page is live. A second tab that showed the first person follows.
func TestNextPerson(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	f.Define(t, "{namespace: keys, name: "+jewel+", command: exec sleep 1000}")
	f.Define(t, "{namespace: shop, name: till, command: exec sleep 1000, start_check: 1s}")
	f.AddUser(t, "ada", password, client.Grant{Role: "admin"})
	f.AddUser(t, "shopper", password, client.Grant{Role: "viewer", Namespaces: []string{"shop"},
		Nets: []string{"127.0.0.1/32"}})
	p := f.Open(t)
	p.SignIn("ada", password)
	p.Wait("navigation", "Pages")
	p.Go("/console/processes")
	rowsAre(p, 2)
	q := p.Beside()
	q.Go("/console/processes")
	rowsAre(q, 2)

	p.Click("button", "Sign out")
	p.Wait("button", "Sign in")
	q.Wait("button", "Sign in")
	p.SignIn("shopper", password)
	rowsAre(p, 1)
	p.WaitText("till")
	p.WaitNoText(jewel)
	p.WaitSelector(".live-live")
	f.Operate(t, "start", "till")
	p.Until("the process runs", `document.querySelector(".ps-rows .state-running")`)

	// The other tab, too.
	q.Reload()
	rowsAre(q, 1)
	f.Operate(t, "stop", "till")
	for _, tab := range []*console.Page{p, q} {
		tab.Until("the process is stopped", `!document.querySelector(".ps-rows .state-running")`)
		tab.WaitNoText(jewel)
	}
}

// withToken makes a token for a person, and a client that uses it.
func withToken(t *testing.T, f *console.Fleet, name string) (client.UserToken, *client.Client) {
	t.Helper()
	token, err := f.Client.CreateUserToken(t.Context(), name, "of a script", 1)
	if err != nil {
		t.Fatal(err)
	}

	c, err := client.New(f.Cred.URL, client.Credentials{Token: token.Token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return token, c
}
