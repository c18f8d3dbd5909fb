//go:build linux

package console

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Page is a tab of the browser. Its methods fail the test when something does not come within Patience.
type Page struct {
	t     testing.TB
	fleet *Fleet
	base  string // scheme and host of the server
	ctx   context.Context

	mu      sync.Mutex
	faults  []string // what the page did that no page may do
	allowed []string
	settled int             // how often settle ran
	marks   map[string]bool // what came of it
}

// NewPage opens a tab, with cookies and storage of its own, for a server. The tab is empty.
func NewPage(t testing.TB, base string) *Page {
	t.Helper()
	browser, err := chromium()
	if err != nil {
		t.Fatalf("cannot start Chromium: %v", err)
	}

	return open(t, base, browser, chromedp.WithNewBrowserContext())
}

// Beside opens another tab of the same person: with the cookies and the storage of this one. The tab is empty.
func (p *Page) Beside() *Page {
	p.t.Helper()
	q := open(p.t, p.base, p.ctx)
	q.fleet = p.fleet
	return q
}

func open(t testing.TB, base string, parent context.Context, options ...chromedp.ContextOption) *Page {
	t.Helper()
	ctx, stop := chromedp.NewContext(parent, options...)
	p := &Page{t: t, base: base, ctx: ctx, marks: map[string]bool{}}
	if err := p.begin(); err != nil {
		stop()
		t.Fatalf("cannot open a tab: %v", err)
	}

	t.Cleanup(func() {
		defer stop()
		p.end()
	})
	return p
}

// begin prepares a tab. The language and the zone of the machine do not matter.
func (p *Page) begin() error {
	if err := chromedp.Do(p.ctx, chromedp.EmulateViewport(1280, 800)); err != nil {
		return err
	}
	if _, err := chromedp.Call(p.ctx, emulation.SetLocaleOverride,
		emulation.SetLocaleOverrideParams{Locale: "en_US"}); err != nil {
		return err
	}
	if _, err := chromedp.Call(p.ctx, emulation.SetTimezoneOverride,
		emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"}); err != nil {
		return err
	}
	return p.listen()
}

// end reports what the page did wrong, and leaves a picture of the page of a failed test.
func (p *Page) end() {
	if err := p.settle(); err != nil {
		p.t.Errorf("the page does not answer any more: %v", err)
	}
	for _, f := range p.Faults() {
		p.t.Errorf("the page did what it must not: %s", f)
	}
	if !p.t.Failed() {
		return
	}

	dir, err := os.MkdirTemp("", "gozzard-page-")
	if err != nil {
		p.t.Log(err)
		return
	}
	var shown struct{ Where, Text string }
	if err := p.eval(`({Where: location.href, Text: document.body?.innerText ?? ""})`, &shown); err == nil {
		p.t.Logf("the page %s has the text:\n%s", shown.Where, clip(shown.Text, 2000))
	}
	file := filepath.Join(dir, strings.ReplaceAll(p.t.Name(), "/", "_")+".png")
	if err := p.picture(file); err != nil {
		p.t.Logf("there is no picture of the page: %v", err)
		return
	}
	p.t.Logf("a picture of the page is in %s", file)
}

// limited is a context for one step.
func (p *Page) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(p.ctx, Patience)
}

// must runs a step. It fails the test if the step fails.
func (p *Page) must(what string, f func(ctx context.Context) error) {
	p.t.Helper()
	ctx, stop := p.limited()
	defer stop()
	if err := f(ctx); err != nil {
		p.t.Fatalf("cannot %s: %v", what, err)
	}
}

// do runs actions. It fails the test if one fails.
func (p *Page) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	p.must(what, func(ctx context.Context) error { return chromedp.Do(ctx, actions...) })
}

// Go opens an address of the server, such as /console/processes, and waits until it is loaded.
func (p *Page) Go(path string) {
	p.t.Helper()
	p.do("open "+path, chromedp.Navigate(p.base+path))
}

// Visit opens an address of any server, and waits until it is loaded.
func (p *Page) Visit(address string) {
	p.t.Helper()
	p.do("open "+address, chromedp.Navigate(address))
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.t.Helper()
	p.do("load the page again", chromedp.Reload())
}

// Back goes back in the history of the tab.
func (p *Page) Back() {
	p.t.Helper()
	p.Eval(`void history.back()`, nil)
}

// Path is the path and the query in the address bar.
func (p *Page) Path() string {
	p.t.Helper()
	var s string
	p.Eval(`location.pathname + location.search`, &s)
	return s
}

// Cookies are the cookies that the browser sends to the server, by name; those that scripts cannot read as well.
func (p *Page) Cookies() map[string]string {
	p.t.Helper()
	have := map[string]string{}
	p.must("read the cookies", func(ctx context.Context) error {
		r, err := chromedp.Call(ctx, network.GetCookies, network.GetCookiesParams{URLs: []string{p.base}})
		if err != nil {
			return err
		}
		for _, c := range r.Cookies {
			have[c.Name] = c.Value
		}
		return nil
	})
	return have
}

// Size makes the view so many CSS pixels large. It is 1280 by 800 at first.
func (p *Page) Size(width, height int64) {
	p.t.Helper()
	p.do("change the size", chromedp.EmulateViewport(width, height))
}

// Prefer sets a feature of CSS media queries, such as prefers-color-scheme to dark.
func (p *Page) Prefer(feature, value string) {
	p.t.Helper()
	p.must("set "+feature, func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: feature, Value: value}}})
		return err
	})
}

// Eval evaluates an expression in the page and waits for its promise. out is a pointer for the value, or nil.
func (p *Page) Eval(js string, out any) {
	p.t.Helper()
	if err := p.eval(js, out); err != nil {
		p.t.Fatalf("cannot evaluate %s: %v", clip(js, 200), err)
	}
}

func (p *Page) eval(js string, out any) error {
	ctx, stop := p.limited()
	defer stop()
	yes := true
	r, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: js, ReturnByValue: &yes,
		AwaitPromise: &yes, UserGesture: &yes})
	switch {
	case err != nil:
		return err
	case r.ExceptionDetails != nil:
		return errors.New(exceptionText(r.ExceptionDetails))
	case out == nil || r.Result == nil:
		return nil
	}
	return json.Unmarshal([]byte(r.Result.Value), out)
}

// Until waits until an expression is true in the page. A page that is just being replaced does not fail it.
func (p *Page) Until(what, js string) {
	p.t.Helper()
	p.until(what, func(context.Context) (ok bool, err error) {
		err = p.eval("Boolean("+js+")", &ok)
		return ok, err
	})
}

// until waits for a condition; what says it in words.
func (p *Page) until(what string, cond func(ctx context.Context) (bool, error)) {
	p.t.Helper()
	ctx, stop := p.limited()
	defer stop()
	var last error
	for ctx.Err() == nil {
		ok, err := cond(ctx)
		if ok {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
		case <-time.After(25 * time.Millisecond):
		}
	}
	p.t.Fatalf("waited in vain for %s: %v", what, errors.Join(last, p.ctx.Err()))
}

// WaitText waits until the page shows a text.
func (p *Page) WaitText(text string) {
	p.t.Helper()
	p.Until("the text "+text, "document.body?.innerText.includes("+quote(text)+")")
}

// WaitNoText waits until the page does not show a text.
func (p *Page) WaitNoText(text string) {
	p.t.Helper()
	p.Until("the end of the text "+text, "document.body && !document.body.innerText.includes("+quote(text)+")")
}

// WaitSelector waits until a CSS selector finds something.
func (p *Page) WaitSelector(css string) {
	p.t.Helper()
	p.Until(css, "document.querySelector("+quote(css)+")")
}

// WaitNoSelector waits until a CSS selector finds nothing.
func (p *Page) WaitNoSelector(css string) {
	p.t.Helper()
	p.Until("the end of "+css, "!document.querySelector("+quote(css)+")")
}

// Text is what the page shows.
func (p *Page) Text() string {
	p.t.Helper()
	var s string
	p.Eval(`document.body.innerText`, &s)
	return s
}

// Picture writes a PNG of what is in view.
func (p *Page) Picture(file string) {
	p.t.Helper()
	if err := p.picture(file); err != nil {
		p.t.Fatalf("cannot make a picture of the page: %v", err)
	}
}

func (p *Page) picture(file string) error {
	ctx, stop := p.limited()
	defer stop()
	r, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{})
	if err != nil {
		return err
	}
	return os.WriteFile(file, r.Data, 0o644)
}

// quote is a text as JavaScript has it.
func quote(s string) string { return toJSON(s) }

// toJSON writes a value of strings, maps and numbers, which has no error.
func toJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}
