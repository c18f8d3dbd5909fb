package gsekit_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPageOfCalls: the paths that docs/compatibility.md names are served with their methods, and a path that it names for
// one form only is not served in the other one.
func TestPageOfCalls(t *testing.T) {
	text, err := os.ReadFile("../../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n## GSEKit\n")
	part, _, _ = strings.Cut(part, "\n## ")
	r := newRig(t)
	served := func(method, path string) bool {
		req := httptest.NewRequest(method, path, strings.NewReader("{}"))
		req.Header.Set("X-Bkapi-Authorization", head)
		w := httptest.NewRecorder()
		if !r.Owns(req) {
			return false
		}
		r.ServeHTTP(w, req)
		return w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed
	}

	// Read the rows: the names of calls, and their paths in each form.
	named, n := regexp.MustCompile("`([a-z_]+)`"), 0
	path := regexp.MustCompile("(GET|POST|PUT|PATCH|DELETE) `([^`]+)`")
	for line := range strings.Lines(part) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		for _, name := range named.FindAllStringSubmatch(cells[1], -1) {
			say := func(cell string) map[string]bool {
				out := map[string]bool{}
				for _, m := range path.FindAllStringSubmatch(cell, -1) {
					out[m[1]+" "+strings.NewReplacer("NAME", name[1], "{id}", "158").Replace(m[2])] = true
				}
				return out
			}
			inBody, inPath := say(cells[2]), say(cells[3])
			for _, form := range []struct {
				prefixes []string
				say      map[string]bool
				other    map[string]bool
			}{
				{[]string{bus, "/v2/gsekit/api/"}, inBody, inPath},
				{[]string{"/api/2/", "/o/bk_gsekit/api/2/"}, inPath, inBody},
			} {
				for _, prefix := range form.prefixes {
					for call := range form.say {
						method, rest, _ := strings.Cut(call, " ")
						if n++; !served(method, prefix+rest) || !served(method, prefix+rest+"/") {
							t.Errorf("%s: the page says %s %s%s, which is not served", name[1], method, prefix, rest)
						}
					}
					for call := range form.other {
						method, rest, _ := strings.Cut(call, " ")
						if !form.say[call] && served(method, prefix+rest) {
							t.Errorf("%s: the page does not say %s %s%s, which is served", name[1], method, prefix, rest)
						}
					}
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("the page names %d paths", n)
	}
}
