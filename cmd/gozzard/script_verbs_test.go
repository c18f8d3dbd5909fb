//go:build linux

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// verbRuns is what the scripts show of one verb.
type verbRuns struct {
	succeeds bool // by exec or soon
	fails    bool // by exits with a code other than 0
	json     bool // with -o json
}

// TestEveryVerbHasAScript fails when a verb is not in testdata/script: with its success, with a failure, and with
// -o json where it has that. A new verb needs a script.
func TestEveryVerbHasAScript(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}

	root := newRoot()
	root.InitDefaultCompletionCmd()
	shown := map[string]*verbRuns{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "-- ") {
				break // the files of the script
			}
			noteRuns(t, root, shown, strings.TrimSpace(line))
		}
	}

	verbs := runnable(root)
	if len(verbs) < 70 {
		t.Errorf("only %d verbs were found", len(verbs))
	}

	for _, c := range verbs {
		got := shown[c.CommandPath()]
		if got == nil {
			got = &verbRuns{}
		}
		if !got.succeeds {
			t.Errorf("no script shows the success of %q", c.CommandPath())
		}
		if !got.fails {
			t.Errorf("no script shows a failure of %q", c.CommandPath())
		}
		if f := c.Flags().Lookup("output"); f != nil && strings.Contains(f.Usage, "json") && !got.json {
			t.Errorf("no script shows -o json of %q", c.CommandPath())
		}
	}
}

// runnable are all commands below c that do something. Help comes from the library.
func runnable(c *cobra.Command) (list []*cobra.Command) {
	for _, child := range c.Commands() {
		if child.Name() == "help" {
			continue
		}
		if child.Runnable() {
			list = append(list, child)
		}
		list = append(list, runnable(child)...)
	}
	return list
}

// inserted matches what a shell inserts into a command.
var inserted = regexp.MustCompile(`\$\([^()]*\)`)

// ran matches the program and its arguments, also within a command of a shell.
var ran = regexp.MustCompile(`(?:^|[\s'(;&|!])gozzard ([^|;&>)\n]+)`)

// noteRuns notes the verbs in one line of a script.
func noteRuns(t *testing.T, root *cobra.Command, shown map[string]*verbRuns, line string) {
	t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	if word != "exec" && word != "soon" && word != "exits" {
		return
	}

	fails := word == "exits" && !strings.HasPrefix(rest, "0 ")
	for _, m := range ran.FindAllStringSubmatch(rest+" "+inserted.ReplaceAllString(rest, "X"), -1) {
		args := strings.Fields(strings.ReplaceAll(m[1], "'", " "))
		c, _, err := root.Find(args)
		if err != nil || c == root {
			continue // a word that is not a verb: the script is about that
		}

		got := shown[c.CommandPath()]
		if got == nil {
			got = &verbRuns{}
			shown[c.CommandPath()] = got
		}
		got.succeeds = got.succeeds || !fails
		got.fails = got.fails || fails
		got.json = got.json || strings.Contains(strings.Join(args, " ")+" ", " -o json ")
	}
}
