package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// notOfTree are words of the pages that begin like a command and are none.
var notOfTree = map[string]string{
	"gozzard guard": "the name of a process",
}

var (
	inlineCode  = regexp.MustCompile("`([^`\n]+)`")
	shellBlock  = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```")
	wordOfTree  = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	flagOfPage  = regexp.MustCompile(`^(--?[a-zA-Z][a-zA-Z0-9-]*)(=.*)?$`)
	endOfSimple = regexp.MustCompile(`^(\||\|\||&&?|;|<<?.*|[0-9]?>>?.*|#.*|…|\.\.\.)$`)
)

// TestCommandsInPages: every command of gozzard that a page shows, in a block or in prose, in English or Chinese, has verbs and flags
// that the program has.
func TestCommandsInPages(t *testing.T) {
	pages := []string{"README.md", "README.zh.md", "examples/README.md"}
	for _, glob := range []string{"docs/*.md", "docs/zh/*.md", "docs/adr/*.md"} {
		found, err := filepath.Glob(filepath.Join("..", "..", glob))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range found {
			pages = append(pages, strings.TrimPrefix(page, "../../"))
		}
	}

	root, checked, used := newRoot(), 0, map[string]bool{}
	for _, page := range pages {
		b, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range commandsIn(string(b)) {
			checked++
			if fault := faultOf(root, text); fault != "" {
				if used[text] = true; notOfTree[text] == "" {
					t.Errorf("%s: %s: %s", page, text, fault)
				}
			}
		}
	}
	for text := range notOfTree {
		if !used[text] {
			t.Errorf("no page has %q any more: remove it from the list", text)
		}
	}
	if checked < 1000 {
		t.Errorf("only %d commands were found", checked)
	}
}

// commandsIn lists the commands of gozzard in a page.
func commandsIn(page string) (all []string) {
	add := func(text string) {
		text = strings.TrimPrefix(strings.TrimSpace(text), "bin/")
		if strings.HasPrefix(text, "gozzard ") {
			all = append(all, text)
		}
	}
	for _, m := range shellBlock.FindAllStringSubmatch(page, -1) {
		text := strings.ReplaceAll(m[1], "\\\n", " ")
		for line := range strings.SplitSeq(text, "\n") {
			for _, before := range []string{"(umask 077; ", "on me ", "runuser -u gozzard -- "} {
				line = strings.TrimPrefix(strings.TrimSpace(line), before)
			}
			add(line)
		}
	}
	for _, m := range inlineCode.FindAllStringSubmatch(shellBlock.ReplaceAllString(page, ""), -1) {
		add(m[1])
	}
	return all
}

// faultOf says what the program does not have of a command, "" if nothing.
func faultOf(root *cobra.Command, text string) string {
	cmd, words := root, strings.Fields(text)[1:]
	for i, word := range words {
		word = strings.TrimRight(word, ",;)`")
		flag := flagOfPage.FindStringSubmatch(word)
		switch {
		case word == "--" || endOfSimple.MatchString(word):
			return ""
		case flag != nil:
			if !hasFlag(cmd, flag[1]) {
				return "there is no flag " + flag[1] + " of " + cmd.CommandPath()
			}
		case cmd.HasSubCommands() && wordOfTree.MatchString(word) && (i == 0 || !strings.HasPrefix(words[i-1], "-")):
			next := child(cmd, word)
			if next == nil && (!cmd.Runnable() || cmd.Args != nil && cmd.Args(cmd, []string{word}) != nil) {
				return "there is no command " + word + " of " + cmd.CommandPath()
			}
			if next == nil {
				return ""
			}
			cmd = next
		}
	}
	return ""
}

func child(cmd *cobra.Command, name string) *cobra.Command {
	if name == "help" || name == "completion" { // cobra adds them when it runs
		return &cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}}
	}
	for _, c := range cmd.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}

// hasFlag reports whether a command or one above it has a flag.
func hasFlag(cmd *cobra.Command, name string) bool {
	if name == "--help" || name == "-h" {
		return true
	}
	for c := cmd; c != nil; c = c.Parent() {
		for _, set := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			long, isLong := strings.CutPrefix(name, "--")
			if isLong && set.Lookup(long) != nil || !isLong && len(name) == 2 && set.ShorthandLookup(name[1:]) != nil {
				return true
			}
		}
	}
	return false
}

// TestFaultOf shows what is found.
func TestFaultOf(t *testing.T) {
	root := newRoot()
	for text, want := range map[string]string{
		"gozzard hosts revoke HOST":                     "",
		"gozzard ps --state failed -n shop":             "",
		"gozzard run --name a -- sleep --nothing":       "",
		"gozzard start web; gozzard nothing":            "",
		"gozzard hosts revok HOST":                      "there is no command revok of gozzard hosts",
		"gozzard nothing":                               "there is no command nothing of gozzard",
		"gozzard ps --stat failed":                      "there is no flag --stat of gozzard ps",
		"gozzard agent join --uses 3":                   "there is no flag --uses of gozzard agent join",
		"gozzard token create --ttl=8h --use 3 > token": "there is no flag --use of gozzard token create",
	} {
		if got := faultOf(root, text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
