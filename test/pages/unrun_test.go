//go:build linux

package pages_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// unrun are the pages whose commands TestCommandsOfPages does not run, with the reason. TestCommandsInPages of cmd/gozzard checks
// verbs and flags of their commands, too.
var unrun = map[string]string{
	"docs/command-reference.md":   "examples of the help, made from the program; TestScripts runs the commands with real values",
	"docs/try-several-servers.md": "TestTrySeveralServers runs them: five machines, PostgreSQL and haproxy",
	"HACKING.md":                  "the targets of make; CI runs them",
}

// TestEveryPageRuns: each page with commands is run, or is in the list of those that are not.
func TestEveryPageRuns(t *testing.T) {
	run := map[string]bool{}
	for _, p := range pages() {
		run[p.file] = true
	}
	for _, glob := range []string{"*.md", "docs/*.md", "docs/zh/*.md", "examples/*.md"} {
		files, err := filepath.Glob(filepath.Join(repository, glob))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			page := strings.TrimPrefix(file, repository+"/")
			commands, _ := readPage(t, page)
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
