//go:build linux

package pages_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// unrun are the pages whose commands TestCommandsOfPages does not run, with the reason. TestCommandsInPages of cmd/gozzard checks
// verbs and flags of their commands, too.
var unrun = map[string]string{
	"docs/try-several-servers.md": "TestTrySeveralServers runs them: five machines, PostgreSQL and haproxy",
	"HACKING.md":                  "the targets of make; CI runs them",
}

// TestEveryPageRuns: each page with commands is run, or is in the list of those that are not. Of a page that runs in parts, each
// command is in one part.
func TestEveryPageRuns(t *testing.T) {
	run := map[string]bool{}
	parts := map[string]int{} // how many parts a command is in
	for _, p := range pages() {
		run[p.file] = true
		for _, c := range p.commands(t) {
			parts[fmt.Sprintf("%s:%d", p.file, c.line)]++
		}
	}
	for _, glob := range []string{"*.md", "docs/*.md", "docs/zh/*.md", "examples/*.md"} {
		files, err := filepath.Glob(filepath.Join(repository, glob))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			page := strings.TrimPrefix(file, repository+"/")
			commands, _ := readPage(t, page)
			for _, c := range commands {
				if n := parts[fmt.Sprintf("%s:%d", page, c.line)]; run[page] && n != 1 {
					t.Errorf("%s: line %d: %q is in %d parts of the page, want 1", page, c.line, c.text, n)
				}
			}
			reason := unrun[strings.Replace(page, "docs/zh/", "docs/", 1)]
			switch {
			case len(commands) > 0 && !run[page] && reason == "":
				t.Errorf("%s has %d commands that no test runs: add it to the pages of rules_test.go", page, len(commands))
			case reason != "" && (run[page] || len(commands) == 0):
				t.Errorf("%s is run, or has no commands: remove it from the list of pages that are not run", page)
			}
		}
	}
}
