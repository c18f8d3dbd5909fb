//go:build linux

package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

// submit sends the form of the open dialog.
func submit(p *console.Page) { p.Eval(`document.querySelector("dialog form").requestSubmit()`, nil) }

// TestPeople: an admin adds a user and a grant, ends the user's session, and finds both in the audit.
func TestPeople(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	f.AddUser(t, "ada", password, client.Grant{Role: "admin"})
	p := f.Open(t)
	p.SignIn("ada", password)
	p.Wait("link", "People")

	// Add a user with a password that is made and shown once.
	p.Go("/console/people")
	p.Click("button", "Add a user")
	p.Wait("dialog", "Add a user")
	p.Fill("Name", "bob")
	p.Accessible()
	submit(p)
	p.WaitText("Password of bob")
	p.Accessible()
	var made string
	p.Eval(`document.querySelector("dialog .once code").textContent`, &made)
	p.Click("button", "Close")
	p.Wait("link", "bob")
	p.Accessible()

	// Without a grant the user sees nothing; with one, a part.
	bob := f.Open(t)
	bob.SignIn("bob", made)
	bob.Wait("navigation", "Pages")
	p.Click("link", "bob")
	p.Wait("heading", "bob")
	p.Click("button", "Give a grant")
	submit(p)
	p.WaitText("viewer on everything")
	p.Accessible()

	// What could bob do here?
	p.Go("/console/people?tab=grants&user=bob&action=stop&host=127.0.0.1")
	p.Click("button", "Ask")
	p.WaitText("No, this is refused")
	p.Accessible()

	// The end of the session ends the page of the user by itself.
	p.Go("/console/people/bob")
	bob.Go("/console/hosts")
	bob.WaitSelector(".live-live")
	p.Click("button", "End")
	p.Wait("dialog", "End 1 session")
	p.Accessible()
	submit(p)
	p.WaitNo("dialog", "")
	began := time.Now()
	bob.Wait("button", "Sign in")
	if d := time.Since(began); d > 10*time.Second { // a second on a machine that does nothing else
		t.Errorf("the page of an ended session stayed for %v", d)
	}

	// The audit has it, and is sound.
	p.Go("/console/audit?user=ada")
	p.WaitText("nothing was changed or removed")
	p.WaitText("Add a user bob")
	p.Accessible()
	p.Eval(`document.querySelector(".audit-table tbody a").click()`, nil)
	p.Wait("dialog", "")
	p.WaitText("Hash")
	p.Accessible()
}

// TestAccount: a user makes a token and a second factor, and signs out everywhere else and then everywhere.
func TestAccount(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	f.AddUser(t, "eve", password, client.Grant{Role: "viewer"})
	p, other := f.Open(t), f.Open(t)
	for _, page := range []*console.Page{other, p} {
		page.SignIn("eve", password)
		page.Wait("navigation", "Pages")
	}
	p.Go("/console/account")
	p.WaitText("this page")
	p.Accessible()

	// A wrong password makes no token and does not end the session.
	p.Click("button", "Make a token")
	p.Fill("Present password", "wrong")
	submit(p)
	p.WaitText("This was not done.")
	p.Fill("Present password", password)
	submit(p)
	p.WaitText("The token is made")
	p.Accessible()
	p.Click("button", "Close")

	// Others end.
	p.Click("button", "Sign out everywhere else")
	p.Wait("dialog", "Sign out everywhere else")
	submit(p)
	other.Wait("button", "Sign in")
	p.WaitNo("dialog", "")

	// The second factor is shown once.
	p.Click("button", "Set up a second factor")
	p.Fill("Present password", password)
	submit(p)
	p.WaitText("otpauth://")
	p.WaitText("Recovery codes")
	p.Accessible()
	p.Click("button", "Cancel")
	if !p.Has("navigation", "Pages") {
		t.Error("the session has ended")
	}

	p.WaitNo("button", "End all") // the list has the one session that is left
	other.SignIn("eve", password)
	other.Wait("navigation", "Pages")
	endAll(t, f, p, other)
}

// endAll ends both sessions of eve from her account: that of the page, too. Her token is no session and stays.
func endAll(t *testing.T, f *console.Fleet, p, other *console.Page) {
	t.Helper()
	have := []map[string]string{p.Cookies(), other.Cookies()}
	p.Click("button", "End all")
	p.Wait("dialog", "End 2 sessions")
	p.WaitText("(this page: you are signed out)")
	p.Accessible()
	submit(p)

	for i, page := range []*console.Page{p, other} {
		page.WaitText("Your session has ended")
		page.Wait("button", "Sign in")
		if status := statusOf(t, f, have[i], "/api/v1/processes"); status != http.StatusUnauthorized {
			t.Errorf("a request of an ended session: %d", status)
		}
	}
	if list := sessions(t, f, "eve"); len(list) != 1 || list[0].Session {
		t.Errorf("after the end of all sessions: %+v", list)
	}
}

// TestForeignRights: a user without the rights sees no page of others, and none of their requests is answered.
func TestForeignRights(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 2)
	f.AddUser(t, "nobody", password)
	f.AddUser(t, "narrow", password, client.Grant{Role: "operator", Namespaces: []string{"shop"}, Nets: []string{"127.0.0.1/32"},
		Accounts: []string{"*"}})
	hosts, err := f.Client.Hosts(t.Context(), 0, 10)
	if err != nil || len(hosts.Hosts) != 2 {
		t.Fatalf("%+v %v", hosts, err)
	}

	for _, user := range []string{"nobody", "narrow"} {
		p := f.Open(t)
		p.SignIn(user, password)
		p.Wait("navigation", "Pages")

		// The menu has nothing of an admin, and the pages of an admin show nothing.
		for _, name := range []string{"People", "Audit", "Server", "Requests"} {
			if p.Has("link", name) {
				t.Errorf("%s has the page %s", user, name)
			}
		}
		for _, path := range []string{"/people", "/people/ada", "/audit", "/server", "/releases"} {
			p.Go("/console" + path)
			p.WaitText("You may not see this")
		}
		for _, path := range []string{"", "/processes", "/businesses", "/tasks", "/hosts", "/hosts/none", "/requests", "/account"} {
			p.Go("/console" + path)
			p.Wait("navigation", "Pages")
			p.WaitNoText("Loading")
		}

		// Requests of an admin's pages are refused.
		for _, r := range []string{"GET /users", "GET /apps", "GET /grants", "GET /audit", "GET /audit/verify", "GET /audit/1",
			"GET /server", "GET /keys", "GET /releases", "GET /rolls", "GET /restore", "POST /users", "POST /apps", "POST /grants",
			"POST /keys/signing", "GET /users/ada/tokens", "POST /users/ada/offboard"} {
			method, path, _ := strings.Cut(r, " ")
			if status := p.Do(method, "/api/v1"+path); status < 400 || status == http.StatusInternalServerError {
				t.Errorf("%s: %s: %d", user, r, status)
			}
		}

		// Only hosts of the grant are listed.
		p.Go("/console/hosts")
		if user == "nobody" {
			p.WaitText("There are no hosts")
		} else {
			p.WaitText("1 of 1 host")
		}
		if text := p.Text(); strings.Contains(text, "127.0.0.2") {
			t.Errorf("%s sees a foreign host:\n%s", user, text)
		}
		if p.Has("button", "Add a host") || p.Has("button", "Forget") {
			t.Errorf("%s is offered what it may not do", user)
		}
		p.Accessible()
	}
}

// TestSecondPerson: what needs a second person waits on the page of requests until another admin approves it. The same
// server, which starts again for this in any case, also has a login provider.
func TestSecondPerson(t *testing.T) {
	t.Parallel()
	s := console.StartServer(t)
	s.AddUser(t, "carol", password)
	s.AddUser(t, "ada", password, client.Grant{Role: "admin"})
	s.AddUser(t, "ben", password, client.Grant{Role: "admin"})
	s.Join(t, 1, "")
	online(t, s.Fleet)
	s.Define(t, `{namespace: shop, name: rooted, command: [sleep, "100000"], folder: /, user: root, restart: never, start_check: 1s}`)
	provider, flags := providerOf(t, s)
	s.AgainWith(t, append(flags, "--second-person", "admin-grants,root-hosts=0")...)

	p := s.Open(t)
	p.SignIn("ada", password)
	p.Wait("link", "Requests")
	p.Go("/console/people/carol")
	p.Click("button", "Give a grant")
	p.Eval(`const e = document.querySelector("dialog select"); e.value = "admin"; e.dispatchEvent(new Event("change", {bubbles: true}))`, nil)
	submit(p)
	p.WaitText("for a second person")
	p.Accessible()
	p.Click("link", "Requests that wait")
	p.WaitText("Give the role admin")
	if p.Has("button", "Approve") {
		t.Error("the person that asked may approve")
	}
	p.Accessible()

	other := s.Open(t)
	other.SignIn("ben", password)
	other.Wait("link", "Requests")
	other.Go("/console/requests")
	other.Click("button", "Approve")
	other.Wait("dialog", "")
	other.Accessible()
	submit(other)
	other.WaitText("Nothing waits for a second person")
	p.Go("/console/people/carol")
	p.WaitText("admin on everything")

	secondPersonOfTask(t, s, p, other)
	providerActs(t, s, provider, p)
}
