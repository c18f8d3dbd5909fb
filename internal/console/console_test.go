package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func serve(t *testing.T, c *Console, method, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Result()
}

func built(t *testing.T) *Console {
	t.Helper()
	c, err := read(fstest.MapFS{
		"dist/index.html":         {Data: []byte("<!doctype html>" + strings.Repeat("page ", 100))},
		"dist/assets/app-AB12.js": {Data: []byte(strings.Repeat("let a = 1;", 100))},
		"dist/.keep":              {},
	})
	if err != nil || !c.Built() {
		t.Fatalf("built %t, %v", c.Built(), err)
	}
	return c
}

func TestEveryAddressIsThePage(t *testing.T) {
	c := built(t)
	for _, path := range []string{"/console/", "/console/processes?f=x", "/console/process/a%2Fb/c"} {
		if got := serve(t, c, "GET", path); got.StatusCode != 200 || got.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.Header.Get("Content-Type"))
		}
	}
	for _, path := range []string{"/", "/console"} {
		if got := serve(t, c, "GET", path); got.StatusCode != 302 || got.Header.Get("Location") != Prefix {
			t.Errorf("%s: %d to %q", path, got.StatusCode, got.Header.Get("Location"))
		}
	}
}

func TestFilesOfThePage(t *testing.T) {
	c := built(t)
	file := "/console/assets/app-AB12.js"

	got := serve(t, c, "GET", file, "Accept-Encoding", "gzip, br")
	if got.StatusCode != 200 || got.Header.Get("Content-Encoding") != "gzip" || got.ContentLength > 200 {
		t.Errorf("zipped: %d, %q, %d bytes", got.StatusCode, got.Header.Get("Content-Encoding"), got.ContentLength)
	}
	if got := serve(t, c, "GET", file); got.Header.Get("Content-Encoding") != "" || got.ContentLength != 1000 {
		t.Errorf("plain: %q, %d bytes", got.Header.Get("Content-Encoding"), got.ContentLength)
	}
	if got := got.Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
		t.Errorf("cache: %q", got)
	}
	if got := serve(t, c, "GET", "/console/assets/gone.js"); got.StatusCode != 404 || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("a file that is gone: %d", got.StatusCode)
	}
	if got := serve(t, c, "POST", "/console/"); got.StatusCode != 405 {
		t.Errorf("POST: %d", got.StatusCode)
	}
}

// Every answer has the policy: also those without content, because a browser takes it from each answer.
func TestPolicyOnEveryAnswer(t *testing.T) {
	c := built(t)
	for _, path := range []string{"/", "/console/", "/console/assets/app-AB12.js", "/console/assets/gone.js"} {
		h := serve(t, c, "GET", path).Header
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(h.Get("Content-Security-Policy"), part) {
				t.Errorf("%s: no %s in %q", path, part, h.Get("Content-Security-Policy"))
			}
		}
		if strings.Contains(h.Get("Content-Security-Policy"), "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

// A one-time link that a page of another origin opens is not used: it may be the link of an attacker.
func TestLinkOfAnotherPage(t *testing.T) {
	c := built(t)
	for site, want := range map[string]int{"": 200, "none": 200, "same-origin": 200, "same-site": 403, "cross-site": 403} {
		r := httptest.NewRequest("GET", "/console/enter?code=x", nil)
		r.Header.Set("Sec-Fetch-Site", site)
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d", site, w.Code)
		}
	}
}

func TestProgramWithoutThePage(t *testing.T) {
	c, err := read(fstest.MapFS{"dist/.keep": {}})
	if err != nil || c.Built() {
		t.Fatalf("built %t, %v", c.Built(), err)
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest("GET", "/console/", nil))
	if !strings.Contains(w.Body.String(), "make build") {
		t.Errorf("the page does not say how to get the console: %s", w.Body)
	}
}
