package docsite_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gozzard/gozzard/internal/docsite"
)

func get(t *testing.T, h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var (
	linkTo = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	named  = regexp.MustCompile(` id="([^"]*)"`)
)

// TestEveryLinkOfTheSite walks over all pages from the first ones: every link leads to a page, a picture or the API of the same
// server, and every anchor is there.
func TestEveryLinkOfTheSite(t *testing.T) {
	site := docsite.New(nil)
	texts, queue := map[string]string{}, []string{"/docs/en/", "/docs/zh/"}
	var anchors [][2]string // page and address
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if _, seen := texts[path]; seen {
			continue
		}
		w := get(t, site, path)
		if w.Code == http.StatusFound {
			queue, texts[path] = append(queue, w.Header().Get("Location")), ""
			continue
		}
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
		texts[path] = w.Body.String()
		for _, m := range linkTo.FindAllStringSubmatch(texts[path], -1) {
			to, err := url.Parse(m[1])
			switch {
			case err != nil:
				t.Errorf("%s: %v", path, err)
			case to.Host != "" || to.Scheme != "":
			case to.Path == "" || docsite.Owns(to.Path):
				target := path
				if to.Path != "" {
					target = to.Path
					queue = append(queue, target)
				}
				if to.Fragment != "" {
					anchors = append(anchors, [2]string{path, target + "#" + to.Fragment})
				}
			case !strings.HasPrefix(to.Path, "/api/v1/") && to.Path != "/console/":
				t.Errorf("%s: the link %s leads out of the site", path, m[1])
			}
		}
	}

	for _, a := range anchors {
		target, name, _ := strings.Cut(a[1], "#")
		found := false
		for _, m := range named.FindAllStringSubmatch(texts[target], -1) {
			found = found || m[1] == name
		}
		if !found && texts[target] != "" {
			t.Errorf("%s: there is no %s", a[0], a[1])
		}
	}
	if len(texts) < 60 || len(anchors) < 200 {
		t.Errorf("%d pages and %d anchors were found; does the pattern still fit?", len(texts), len(anchors))
	}
}

// TestLanguages: the first page is in the language of the browser.
func TestLanguages(t *testing.T) {
	site := docsite.New(nil)
	for header, want := range map[string]string{
		"": "/docs/en/", "zh-CN,zh;q=0.9,en;q=0.8": "/docs/zh/", "fr, ZH": "/docs/zh/", "en-GB,zh": "/docs/en/", "xx": "/docs/en/",
	} {
		for _, path := range []string{"/docs", "/docs/"} {
			if w := get(t, site, path, "Accept-Language", header); w.Code != http.StatusFound || w.Header().Get("Location") != want {
				t.Errorf("%s with %q: %d %s", path, header, w.Code, w.Header().Get("Location"))
			}
		}
	}

	if w := get(t, site, "/docs/zh/install.md"); w.Header().Get("Location") != "/docs/zh/install" {
		t.Errorf("a name as in the source: %v", w.Header())
	}
	if w := get(t, site, "/docs/zh/adr"); w.Header().Get("Location") != "/docs/en/adr" {
		t.Errorf("a page that is in English only: %d %v", w.Code, w.Header())
	}
}

// TestAnswers: methods, unknown pages, headers and compression.
func TestAnswers(t *testing.T) {
	site := docsite.New(nil)
	for path, want := range map[string]int{
		"/docs/en/install": 200, "/docs/en/nope": 404, "/docs/xx/install": 404, "/docs/pictures/task-light.png": 200,
		"/docs/pictures/../install.md": 404, "/docs/pictures/nope.png": 404, "/docs/style.css": 200, "/docs/en/../../etc/passwd": 404,
	} {
		w := get(t, site, path)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "script") {
			t.Errorf("%s: a browser may %q", path, csp)
		}
	}
	w := httptest.NewRecorder()
	site.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/docs/en/", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
	w = httptest.NewRecorder()
	site.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/docs/en/", nil))
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d, %d bytes", w.Code, w.Body.Len())
	}

	z, err := gzip.NewReader(get(t, site, "/docs/en/", "Accept-Encoding", "gzip").Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil || string(text) != get(t, site, "/docs/en/").Body.String() {
		t.Errorf("the compressed page differs: %v", err)
	}
}

// TestSearch finds places in both languages; what a caller types is shown as text.
func TestSearch(t *testing.T) {
	site := docsite.New(nil)
	for q, want := range map[string]string{
		"en/adopted pid file":              `href="/docs/en/identity`,
		"en/EXIT CODE":                     "<mark>exit</mark>",
		"en/qqqzzz":                        "Nothing was found",
		"zh/托管":                            "<mark>托管</mark>",
		"zh/安装服务端的步骤说明":                    `href="/docs/zh/install`,
		"zh/企业微信":                          `href="/docs/zh/notifications`,
		"zh/钉钉":                            `href="/docs/zh/notifications`,
		"zh/飞书":                            `href="/docs/zh/notifications`,
		"zh/不存在的甲乙丙丁":                      "没有找到",
		`en/"><script>alert(1)`:            "&lt;script&gt;",
		"en/" + strings.Repeat("a ", 3000): "Search",
	} {
		language, question, _ := strings.Cut(q, "/")
		text := get(t, site, "/docs/"+language+"/search?q="+url.QueryEscape(question)).Body.String()
		if !strings.Contains(text, want) || strings.Contains(text, "<script") {
			t.Errorf("%.40s: no %s in %.3000s", q, want, text)
		}
	}
}

// TestPagesHaveNoHTML: HTML in a page is no part of what a browser gets.
func TestPagesHaveNoHTML(t *testing.T) {
	site, err := docsite.Read(fstest.MapFS{
		"README.md":    {Data: []byte("# First\n\n<script>alert(1)</script>\n\n[x](javascript:alert(1)) [y](../secret.txt) <b>bold</b> [a](a.md#b)\n")},
		"a.md":         {Data: []byte("# A\n\n## B\n\n## B\n")},
		"zh/README.md": {Data: []byte("# 首页\n\n[English](../README.md)\n\n[a](../a.md)\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	text := get(t, site, "/docs/en/").Body.String()
	for _, bad := range []string{"<script", "javascript:", "secret.txt", "<b>"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %s: %s", bad, text)
		}
	}
	if !strings.Contains(text, `href="/docs/en/a#b"`) || !strings.Contains(text, "y") {
		t.Errorf("links: %s", text)
	}
	if text := get(t, site, "/docs/en/a").Body.String(); !strings.Contains(text, `id="b"`) || !strings.Contains(text, `id="b-1"`) {
		t.Errorf("anchors: %s", text)
	}
	if text := get(t, site, "/docs/zh/").Body.String(); strings.Contains(text, ">English</a></p>") || !strings.Contains(text, `href="/docs/en/a"`) {
		t.Errorf("the first page in Chinese: %s", text)
	}
}
