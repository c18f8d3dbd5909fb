//go:build linux

package console_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

const password = "correct horse battery staple"

func TestSignInByPassword(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	f.AddUser(t, "alice", password, client.Grant{Role: "admin"})
	p := f.Open(t)

	// A wrong password says so, and leaves the form.
	p.WaitText("Sign in to Gozzard")
	p.Accessible()
	p.SignIn("alice", "not the password")
	p.Wait("alert", "")
	if p.Has("navigation", "Pages") {
		t.Error("a wrong password opens the console")
	}
	p.Accessible()

	// The right one opens the page that was asked for, also after a reload.
	p.Go("/console/hosts")
	p.SignIn("alice", password)
	p.Wait("navigation", "Pages")
	p.Wait("link", "Hosts")
	if path := p.Path(); path != "/console/hosts" {
		t.Errorf("the page is %s", path)
	}
	p.Reload()
	p.Wait("navigation", "Pages")
	if n := cookies(p); n != "" {
		t.Errorf("the page can read its cookies: %s", n)
	}

	// After a sign-out nothing is left, also after a step back.
	p.Click("button", "Sign out")
	p.WaitText("Sign in to Gozzard")
	p.Go("/console/processes")
	p.WaitText("Sign in to Gozzard")
	if list := sessions(t, f, "alice"); len(list) != 0 {
		t.Errorf("sessions after the sign-out: %+v", list)
	}
}

func TestSignInByLink(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	link, err := f.Client.ConsoleLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(link.URL)
	if err != nil {
		t.Fatal(err)
	}

	// The link opens the console, and its code does not stay in the address.
	p := f.Open(t)
	p.Go(u.RequestURI())
	p.Wait("navigation", "Pages")
	if path := p.Path(); path != "/console/" {
		t.Errorf("the page is %s", path)
	}

	// It works once.
	other := f.Open(t)
	other.Go(u.RequestURI())
	other.WaitText("This link was used before")
	other.Accessible()
	if other.Has("navigation", "Pages") {
		t.Error("a used link opens the console")
	}
	p.EnterByLink()
}

func TestSignInInChinese(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	f.AddUser(t, "小明", password, client.Grant{Role: "viewer"})
	p := f.Open(t)
	p.Click("button", "中文")
	p.WaitText("登录牧鹅人")
	p.Fill("用户名", "小明")
	p.Fill("密码", "错误的密码")
	p.Click("button", "登录")
	p.Wait("alert", "")
	p.Accessible()
	p.Fill("密码", password)
	p.Click("button", "登录")
	p.Wait("navigation", "页面")
	p.Wait("link", "总览")

	// What a viewer may not do is not shown.
	if p.Has("link", "人员") || p.Has("link", "审计") {
		t.Error("a viewer sees pages of an admin")
	}
	p.Reload()
	p.Wait("link", "总览")
}

// sessions are the sessions of a user.
func sessions(t *testing.T, f *console.Fleet, user string) []client.UserToken {
	t.Helper()
	list, err := f.Client.UserTokens(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	return list.Tokens
}

// cookies are the cookies that code in the page can read.
func cookies(p *console.Page) (text string) {
	p.Eval(`document.cookie`, &text)
	return text
}

// quoted is a text as JavaScript has it.
func quoted(s string) string {
	b, _ := json.Marshal(s) // a text is always valid
	return string(b)
}
