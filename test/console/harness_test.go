//go:build linux

package console_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/test/console"
)

func TestMain(m *testing.M) { console.Main(m) }

// serve serves one page, with a policy that allows its own code.
func serve(t *testing.T, html string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self' 'unsafe-inline'; connect-src 'self'")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(html))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const counter = `<!doctype html><html lang="en"><title>Counter</title><main><h1>Counter</h1>
<label for="n">Name</label> <input id="n">
<button id="b" disabled>Greet</button> <p id="out" role="status"></p></main>
<script>
	setTimeout(() => { b.disabled = false; }, 100);
	b.onclick = (e) => { out.textContent = "Hello " + n.value + (e.shiftKey ? " with shift" : ""); };
	addEventListener("keydown", (e) => { if (e.ctrlKey && e.key === "k") out.textContent = "palette"; });
</script>`

// TestHarness: what tests of the page rely on.
func TestHarness(t *testing.T) {
	console.NeedBrowser(t)
	p := console.NewPage(t, serve(t, counter))
	p.Go("/")
	p.Fill("Name", "nobody")
	p.Fill("Name", "世界")
	p.Click("button", "Greet")
	p.WaitText("Hello 世界")
	p.Click("button", "Greet", console.Shift)
	p.WaitText("with shift")
	p.Press("k", console.Ctrl)
	p.WaitText("palette")
	p.WaitNoText("Hello")
	if !p.Has("heading", "Counter") || p.Has("heading", "Other") || p.Path() != "/" {
		t.Error("the page is not found by its roles")
	}
	file := filepath.Join(t.TempDir(), "page.png")
	p.Picture(file)
	if info, err := os.Stat(file); err != nil || info.Size() < 1000 {
		t.Errorf("%v %v", info, err)
	}
	p.Accessible()
}

// TestHarnessFaults: an exception, an error in the console and a violation of the policy are noticed, each in a tab of
// its own. A request that fails is no fault.
func TestHarnessFaults(t *testing.T) {
	console.NeedBrowser(t)
	for name, c := range map[string]struct{ code, want string }{
		"exception": {`setTimeout(() => { throw new Error("broken") })`, "broken"},
		"rejection": {`Promise.reject(new Error("alone"))`, "alone"},
		"console":   {`console.error("bad", 7)`, "bad"},
		"policy":    {`document.body.style = "color: red"; document.body.append(Object.assign(new Image(), {src: "/a.png"}))`, "img-src"},
		"network":   {`fetch("/none").then(() => document.title = "done")`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := console.NewPage(t, serve(t, `<!doctype html><body><p>text<script>`+c.code+`</script>`))
			p.Go("/")
			p.WaitText("text")
			p.Settle()
			got := strings.Join(p.Faults(), "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("faults %q, want %q", got, c.want)
			}
			p.Allow("")
		})
	}
}
