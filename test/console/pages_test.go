//go:build linux

package console_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

// TestEveryPage: every page of the menu, and one of each kind behind them, has a heading, is found by axe-core to be
// accessible, and fits a phone, in both languages and both themes.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 3, "--demo")
	p := f.Open(t)
	p.EnterByLink()
	p.WaitText("14 processes on 3 hosts")

	f.AddUser(t, "alice", password, client.Grant{Role: "viewer"})
	paths := append(slices.Collect(maps.Values(pagesOf(t, f, "1000", "GSEKIT_BIZ_1000", "orders_1", "alice"))), "/nowhere")

	for _, look := range []struct{ theme, button, word string }{{"light", "中文", "总览"}, {"dark", "English", "Overview"}} {
		p.Prefer("prefers-color-scheme", look.theme)
		p.Click("button", look.button)
		p.Wait("link", look.word)
		for _, path := range paths {
			visit(p, path)
		}
	}
}

// visit looks at one page.
func visit(p *console.Page, path string) {
	p.Size(1280, 800)
	p.Go("/console" + path)
	p.WaitSelector("main h1")
	p.WaitNoSelector("main .loading") // it is still loading
	p.Accessible()

	// On a phone nothing is wider than the screen.
	p.Size(390, 800)
	p.WaitSelector("main h1")
	narrow(p)
}
