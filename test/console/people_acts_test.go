//go:build linux

package console_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
	"github.com/gozzard/gozzard/test/fleettest"
)

// does presses a button, waits for the dialog of it, and sends its form.
func does(p *console.Page, button, title string) {
	p.Click("button", button)
	p.Wait("dialog", title)
	submit(p)
	p.WaitNo("dialog", title)
}

// choose chooses a value in the list with a label.
func choose(p *console.Page, label, value string) {
	p.Until("the list "+label, fmt.Sprintf(`(() => {
		const s = [...document.querySelectorAll("select")].find((s) => s.labels[0]?.innerText.trim().startsWith(%q));
		if (!s || ![...s.options].some((o) => o.value === %[2]q)) return false;
		s.value = %[2]q;
		s.dispatchEvent(new Event("change", {bubbles: true}));
		return true;
	})()`, label, value))
}

// TestAdminActs: everything that an admin does with users, apps and grants, each from its button to its effect.
func TestAdminActs(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	f.AddUser(t, "ada", password, client.Grant{Role: "admin"})
	f.AddUser(t, "carl", password)
	p := f.Open(t)
	p.SignIn("ada", password)
	p.Wait("navigation", "Pages")

	grantActs(p)
	userActs(t, f, p)
	appActs(t, f, p)
	auditActs(p)
	auditMore(t, f, p)
}

// grantActs gives a grant on a business and takes it away.
func grantActs(p *console.Page) {
	p.Go("/console/people?tab=grants")
	p.Click("button", "Give a grant")
	p.Wait("dialog", "Give a grant")
	p.Fill("Name", "carl")
	choose(p, "Role", "operator")
	choose(p, "On", "biz")
	p.Fill("Numbers of the businesses", "7")
	p.Fill("Accounts that commands may run as", "*")
	p.Accessible()
	submit(p)
	p.WaitNo("dialog", "")
	p.Fill("Name of a user, app or group", "carl")
	p.WaitText("operator businesses 7; as accounts *")
	does(p, "Remove", "Remove a grant of carl")
	p.WaitText("There are no grants")
}

// userActs: a user gets a new password, loses its tokens, is disabled, enabled, offboarded and deleted.
func userActs(t *testing.T, f *console.Fleet, p *console.Page) {
	t.Helper()
	for _, note := range []string{"one", "two"} {
		if _, err := f.Client.CreateUserToken(t.Context(), "carl", note, 1); err != nil {
			t.Fatal(err)
		}
	}
	p.Go("/console/people?q=carl")
	p.WaitText("1 user")
	p.Click("link", "carl")
	p.Wait("heading", "carl")
	does(p, "Revoke", "Revoke 1 token")
	eventually(t, "one token is left", func() bool { return len(sessions(t, f, "carl")) == 1 })

	// The new password is shown once, and works.
	p.Click("button", "New password")
	p.Wait("dialog", "New password for carl")
	submit(p)
	p.WaitText("Password of carl")
	p.Accessible()
	var made string
	p.Eval(`document.querySelector("dialog .once code").textContent`, &made)
	p.Click("button", "Close")
	carl := f.Open(t)
	losesFactor(t, f, p, carl, made)

	// A disabled user is out, and in again.
	does(p, "Disable", "Disable carl")
	carl.Wait("button", "Sign in")
	p.WaitText("disabled")
	does(p, "Enable", "Enable carl")
	p.WaitText("enabled")
	carl.SignIn("carl", made)
	carl.Wait("navigation", "Pages")

	// The end of everything, and of the name.
	p.Click("button", "Offboard")
	p.Wait("dialog", "End everything that carl has")
	p.Accessible()
	submit(p)
	p.WaitText("carl is offboarded")
	p.WaitText("1 session")
	p.Accessible()
	p.Click("button", "Close")
	carl.Wait("button", "Sign in")
	does(p, "Delete", "Delete carl")
	p.Until("the list of people", `location.pathname === "/console/people"`)
	p.WaitNo("link", "carl")
}

// losesFactor: carl has a second factor and no code. The admin removes it, and the password alone is enough.
func losesFactor(t *testing.T, f *console.Fleet, p, carl *console.Page, made string) {
	t.Helper()
	request := client.TOTPRequest{User: "carl", Password: made}
	enrolment, err := f.Client.EnrolTOTP(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if request.Code, err = fleettest.TOTPCode(enrolment.Secret, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := f.Client.ConfirmTOTP(t.Context(), request); err != nil {
		t.Fatal(err)
	}

	carl.SignIn("carl", made)
	carl.Wait("textbox", "Code of the second factor")
	p.Reload()
	p.Click("button", "Remove the second factor")
	p.Wait("dialog", "Remove the second factor of carl")
	p.Accessible()
	submit(p)
	p.WaitNo("dialog", "")
	p.WaitNo("button", "Remove the second factor")
	if u := userOf(t, f, "carl"); u.TOTP || !u.Password {
		t.Errorf("after the removal: %+v", u)
	}

	carl.Reload()
	carl.SignIn("carl", made)
	carl.Wait("navigation", "Pages")
}

// userOf is a user as the server has it.
func userOf(t *testing.T, f *console.Fleet, name string) client.User {
	t.Helper()
	page, err := f.Client.Users(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range page.Users {
		if u.Name == name {
			return u
		}
	}
	t.Fatalf("there is no user %s", name)
	return client.User{}
}

// appActs: an app is made, gets a second secret, loses the first, and is disabled, enabled and deleted.
func appActs(t *testing.T, f *console.Fleet, p *console.Page) {
	t.Helper()
	works := func(secret string) bool {
		c, err := client.New(f.Cred.URL, client.Credentials{AppCode: "till", AppSecret: secret, Username: "clerk"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.Hosts(t.Context(), 0, 1)
		return err == nil
	}
	secretOf := func() (secret string) {
		p.WaitText("Secret of till")
		p.Eval(`document.querySelector("dialog .once code").textContent`, &secret)
		p.Accessible()
		p.Click("button", "Close")
		p.WaitNo("dialog", "")
		return secret
	}
	row := func(button, title string) { // the buttons of the app in the list
		p.Eval(fmt.Sprintf(`[...document.querySelectorAll("tr")].find((r) => r.querySelector("th")?.innerText === "till")
			.querySelectorAll("button").forEach((b) => { if (b.innerText === %q) b.click(); })`, button), nil)
		p.Wait("dialog", title)
		submit(p)
		p.WaitNo("dialog", title)
	}

	p.Go("/console/people?tab=apps")
	p.Click("button", "Add an app")
	p.Wait("dialog", "Add an app")
	p.Fill("Code", "till")
	choose(p, "Role", "viewer")
	p.Click("checkbox", "It may name the users that it acts for, without their sign-in")
	p.Click("checkbox", "People that the server does not know have the rights of the app")
	p.Accessible()
	submit(p)
	first := secretOf()
	p.Until("the app in the list", `[...document.querySelectorAll("tr th")].some((h) => h.innerText === "till")`)
	row("New secret", "New secret for till")
	second := secretOf()
	if !works(first) || !works(second) {
		t.Error("a secret of the app does not work")
	}

	p.Until("two secrets", `[...document.querySelectorAll("button")].some((b) => b.innerText === "Revoke old secrets")`)
	row("Revoke old secrets", "Revoke old secrets of till")
	if works(first) || !works(second) {
		t.Error("not the old secret is revoked")
	}
	row("Disable", "Disable till")
	p.WaitText("disabled")
	if works(second) {
		t.Error("a disabled app works")
	}
	row("Enable", "Enable till")
	p.WaitNoText("disabled")
	row("Delete", "Delete till")
	p.Until("no app in the list", `![...document.querySelectorAll("tr th")].some((h) => h.innerText === "till")`)
}

// TestAccountActs: a person confirms a second factor, signs in with it, removes it, changes the password and revokes a
// token.
func TestAccountActs(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	f.AddUser(t, "eve", password, client.Grant{Role: "viewer"})
	if _, err := f.Client.CreateUserToken(t.Context(), "eve", "of a script", 1); err != nil {
		t.Fatal(err)
	}
	p := f.Open(t)
	p.SignIn("eve", password)
	p.Wait("navigation", "Pages")
	p.Go("/console/account")
	does(p, "Revoke", "Revoke 1 token")
	p.WaitNoText("of a script")

	// The second factor ends the sessions: from now on a code is asked for. Every code works once.
	p.Click("button", "Set up a second factor")
	p.Fill("Present password", password)
	submit(p)
	p.WaitText("Recovery codes")
	p.WaitText("All your sessions end then, this page too")
	var secret string
	var recovery []string
	p.Eval(`document.querySelectorAll("dialog .once code")[0].textContent`, &secret)
	p.Eval(`document.querySelectorAll("dialog .once code")[2].textContent.split("\n")`, &recovery)
	code, err := fleettest.TOTPCode(secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p.Fill("Code that it shows", code)
	submit(p)
	p.WaitText("Sign in to Gozzard")
	p.SignIn("eve", password)
	p.Fill("Code of the second factor", recovery[0])
	p.Accessible()
	p.Click("button", "Sign in")
	p.Wait("navigation", "Pages")

	// Without it the password is enough again. Each of these two ends the session.
	p.Click("button", "Remove the second factor")
	p.Wait("dialog", "Remove the second factor")
	p.Fill("Present password", password)
	p.Fill("Code of the second factor", recovery[1])
	p.Accessible()
	submit(p)
	p.SignIn("eve", password)
	p.Wait("navigation", "Pages")
	p.Click("button", "Change the password")
	p.Fill("Present password", password)
	p.Fill("New password", "another horse battery staple")
	p.Fill("New password again", "another")
	p.WaitText("The two differ")
	p.Accessible()
	p.Fill("New password again", "another horse battery staple")
	submit(p)
	p.WaitText("Sign in to Gozzard")
	p.SignIn("eve", "another horse battery staple")
	p.Wait("navigation", "Pages")
}
