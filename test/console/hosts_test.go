//go:build linux

package console_test

import (
	"slices"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

// TestEnrolHost: a token made on the page brings a real host in, which is approved, seen and revoked on the page.
func TestEnrolHost(t *testing.T) {
	t.Parallel()
	s := console.StartServer(t)
	s.AddUser(t, "ada", password, client.Grant{Role: "admin"})
	p := s.Open(t)
	p.SignIn("ada", password)
	p.Wait("navigation", "Pages")
	p.Go("/console/hosts")
	p.WaitText("There are no hosts")
	p.Accessible()

	// Make a token that asks for an approval.
	p.Click("button", "Add a host")
	p.Wait("dialog", "Add a host")
	p.Accessible()
	p.Eval(`document.querySelector("dialog input[type=checkbox]").click()`, nil)
	submit(p)
	p.WaitText("The token is made")
	p.WaitText("/join | sudo sh")
	p.Accessible()
	var token string
	p.Eval(`document.querySelector("dialog .once code").textContent`, &token)
	p.Click("button", "I have it")

	// A host joins with it.
	s.Join(t, 1, token)

	// It waits, is approved, and comes online by itself.
	p.Reload()
	p.WaitText("1 host waits for you")
	p.Accessible()
	p.Click("button", "Approve")
	p.Wait("dialog", "Approve 127.0.0.1")
	p.Accessible()
	submit(p)
	p.WaitNoText("waits for you")
	p.Until("the host is online", `document.querySelector(".hosts-table .online-yes")`)
	p.Accessible()

	// The page of the host says what it is, and revokes it.
	p.Click("link", "127.0.0.1")
	p.Wait("heading", "127.0.0.1")
	p.WaitText("Features that this host does not have")
	p.Accessible()
	p.Click("button", "Revoke")
	p.Wait("dialog", "Revoke 127.0.0.1")
	p.Accessible()
	submit(p)
	p.WaitText("The host is excluded.")
	p.Until("the host is offline", `document.querySelector(".online-no")`)
	p.Accessible()

	hostActs(p)
	rejectHost(t, s, p)

	// The token is in the list, used up; the releases and the server say how they are.
	p.Go("/console/hosts?tab=enrol")
	p.WaitText("used up")
	p.Accessible()
	p.Go("/console/releases")
	p.WaitText("No release is published")
	p.Accessible()
	p.Go("/console/server")
	p.WaitText("The server accepts operations")
	p.WaitText("Certificate authority of the hosts")
	p.Accessible()
	keyActs(p)
	p.Go("/console/audit")
	p.WaitText("nothing was changed or removed")

	// The same pages in Chinese, on a phone: nothing stands beside the view.
	p.Click("button", "中文")
	p.Size(390, 800)
	for _, path := range []string{"/hosts", "/hosts?tab=enrol", "/releases", "/server", "/people", "/people?tab=apps",
		"/people?tab=grants", "/requests", "/audit", "/account"} {
		p.Go("/console" + path)
		p.Wait("navigation", "页面")
		p.WaitNoText("正在加载")
		p.Accessible()
		narrow(p)
	}
}

// hostActs: a revoked host gets another address and a token to join again, which is revoked, and is removed for ever.
func hostActs(p *console.Page) {
	p.Click("button", "Addresses")
	p.Wait("dialog", "Addresses")
	p.Fill("The host gets", "127.0.0.9")
	p.Accessible()
	submit(p)
	p.WaitNo("dialog", "")
	p.WaitText("127.0.0.9")
	p.Click("button", "Join again")
	p.Wait("dialog", "Let this agent join again")
	p.Accessible()
	submit(p)
	p.WaitText("The token is made")
	p.Click("button", "I have it")

	host := p.Path()
	p.Go("/console/hosts?tab=enrol")
	p.Click("button", "Revoke")
	p.WaitText("Hosts that joined with it stay members")
	p.Accessible()
	submit(p)
	p.WaitNo("dialog", "")
	p.WaitText("revoked")

	p.Go(host)
	p.Click("button", "Remove")
	p.Wait("dialog", "Remove 127.0.0.1 for ever")
	p.Accessible()
	submit(p)
	p.WaitText("There is no such host")
}

// rejectHost: a host that waits for an approval is rejected, and can never join again.
func rejectHost(t *testing.T, s *console.Server, p *console.Page) {
	t.Helper()
	token, err := s.Client.CreateEnrolToken(t.Context(), client.EnrolTokenRequest{Approve: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Join(t, 2, token.Token)
	state := func() (state string) {
		members, err := s.Client.Members(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			if slices.Contains(m.IPs, "127.0.0.2") {
				state = m.State
			}
		}
		return state
	}
	if now := state(); now != "pending" {
		t.Fatalf("the host that joined is %q", now)
	}

	p.Go("/console/hosts")
	p.WaitText("1 host waits for you")
	p.Click("button", "Reject")
	p.Wait("dialog", "Reject 127.0.0.2")
	p.WaitText("this agent id can never join again")
	p.Accessible()
	submit(p)
	p.WaitNoText("waits for you")
	if now := state(); now != "removed" {
		t.Errorf("the rejected host is %q", now)
	}
}

// keyActs: a new key that signs commands, and a new authority of the hosts, on the page of the server.
func keyActs(p *console.Page) {
	p.Go("/console/server")
	press(p, ".columns .card:nth-child(1) button", "Rotate")
	p.Wait("dialog", "Rotate the signing key")
	p.Accessible()
	submit(p)
	p.WaitNo("dialog", "")
	p.Until("a second key", `[...document.querySelectorAll("main td")].some((c) => c.innerText.trim() === "2 in use")`)

	press(p, ".columns .card:nth-child(2) button", "Rotate")
	p.Wait("dialog", "Make the next authority")
	p.Accessible()
	submit(p)
	p.WaitText("Next authority")
	p.Click("button", "Finish the rotation")
	p.Wait("dialog", "Finish the rotation of the authority")
	p.Fill("Number of hosts", "0")
	p.Accessible()
	submit(p)
	p.WaitNoText("Next authority")
}
