//go:build linux

package console

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// routePattern finds the pages in the table of the page's own router.
var routePattern = regexp.MustCompile(`(?m)^\s*\["(/[^"]*)", \(\) => import\(`)

// Routes are the patterns of all pages, such as /tasks/:id, from the router of the page itself. A test that walks over all
// pages compares its list with them, so that a new page is not forgotten.
func Routes(t testing.TB) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "web", "src", "pages.tsx"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range routePattern.FindAllStringSubmatch(string(text), -1) {
		list = append(list, m[1])
	}
	if len(list) < 10 {
		t.Fatalf("the router has only the pages %v: has its form changed?", list)
	}
	return list
}
