package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var writePages = flag.Bool("update", false, "write the generated pages in docs")

// Flags of every command that calls a server: the page explains them once.
var callerFlags = []string{"url", "credentials"}

// TestCommandReference compares docs/command-reference.md, in both languages, with the commands of this program.
func TestCommandReference(t *testing.T) {
	for _, e := range editions() {
		comparePage(t, e.folder+"command-reference.md", e.commandReference())
	}
}

// TestConfigurationReference compares docs/configuration-reference.md, in both languages, with the flags of the long-running commands.
func TestConfigurationReference(t *testing.T) {
	for _, e := range editions() {
		comparePage(t, e.folder+"configuration-reference.md", e.configurationReference())
	}
}

// comparePage fails when a generated page differs from what the program says; with -update it writes the page.
func comparePage(t *testing.T, name string, want []byte) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the pages describe the program for Linux")
	}

	path := filepath.Join("..", "..", "docs", name)
	if *writePages {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}

	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/%s differs from the program at line %d; "+
			"write it with: go test ./cmd/gozzard -run Reference -update", name, firstDifference(got, want))
	}
}

func firstDifference(a, b []byte) int {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(x), len(y)) {
		if !bytes.Equal(x[i], y[i]) {
			return i + 1
		}
	}
	return min(len(x), len(y)) + 1
}

const generated = "<!-- Generated: go test ./cmd/gozzard -run Reference -update -->\n\n"

// commandReference is the page of all commands.
func (e *edition) commandReference() []byte {
	var b bytes.Buffer
	e.title(&b, "Command reference", "command-reference.md")
	fmt.Fprintf(&b, "%s\n\n%s\n\n## %s\n\n| %s |\n|---|---|\n", e.say("about commands"), e.say("about completion"), e.say("Exit codes"), e.say("code | meaning"))
	for _, c := range []struct {
		code int
		text string
	}{
		{exitOK, "The command succeeded."}, {exitFailed, "The command failed."},
		{exitUsage, "A flag, an argument or a document is wrong."},
		{exitNotRunning, "A process or an agent is not running."},
		{exitNotAllowed, "The caller is not allowed to do this."}, {exitNoMatch, "Nothing matched."},
		{exitPartly, "The command failed on some hosts."},
		{exitTimedOut, "The command did not finish within `--timeout`, or a host went offline before it answered. The task continues."},
		{exitStorage, "A disk failed while a server or an agent wrote to it; the program ended."},
		{exitDetached, "Ctrl-C ended the wait. The task continues."},
	} {
		fmt.Fprintf(&b, "| %d | %s |\n", c.code, e.say(c.text))
	}

	fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s", e.say("Flags of every command that calls a server"),
		e.say("The reference below does not repeat these two flags."), e.flagTableHead())
	ps, _, err := e.root.Find([]string{"ps"})
	if err != nil {
		panic(err) // the test fails
	}
	for _, name := range callerFlags {
		e.writeFlag(&b, ps.Flags().Lookup(name))
	}

	walk(e.root, func(c *cobra.Command) { e.writeCommand(&b, c) })
	return b.Bytes()
}

// walk visits the commands below c in the order of their names. Help and completion come from the library.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	children := slices.Clone(c.Commands())
	slices.SortFunc(children, func(a, b *cobra.Command) int { return strings.Compare(a.Name(), b.Name()) })
	for _, child := range children {
		if child.Hidden || child.Name() == "help" || child.Name() == "completion" {
			continue
		}
		visit(child)
		walk(child, visit)
	}
}

func (e *edition) writeCommand(b *bytes.Buffer, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s%s\n", c.CommandPath(), escape(strings.TrimRight(c.Short, ".。")), e.say("."))
	if c.Long != "" {
		b.WriteString("\n")
		writeLong(b, c.Long)
	}
	if c.Runnable() {
		fmt.Fprintf(b, "\n```\n%s\n```\n", c.UseLine())
	}

	if c.Example != "" {
		fmt.Fprintf(b, "\n%s\n\n```sh\n%s\n```\n", e.say("Examples:"), unindent(c.Example))
	}

	var own []*pflag.Flag
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && !slices.Contains(callerFlags, f.Name) {
			own = append(own, f)
		}
	})
	c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && !slices.Contains(callerFlags, f.Name) {
			own = append(own, f)
		}
	})

	if len(own) == 0 {
		return
	}
	b.WriteString("\n" + e.flagTableHead())
	for _, f := range own {
		e.writeFlag(b, f)
	}
}

func (e *edition) flagTableHead() string {
	return "| " + e.say("flag | type | default | meaning") + " |\n|---|---|---|---|\n"
}

func (e *edition) writeFlag(b *bytes.Buffer, f *pflag.Flag) {
	name := "`--" + f.Name + "`"
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	value, meaning := e.flagText(f)
	fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, value, flagDefault(f), meaning)
}

// flagText gives the type of a flag's value and its meaning.
func (e *edition) flagText(f *pflag.Flag) (value, meaning string) {
	value, usage := pflag.UnquoteUsage(f)
	switch value {
	case "":
		value = e.say("switch")
	case "string", "int", "float", "duration", "strings":
		value = e.say(value)
	default:
		value = "`" + value + "`"
	}
	return value, escape(usage)
}

func flagDefault(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "[]", "false", "0", "0s", "-1":
		return ""
	}
	return "`" + strings.Trim(f.DefValue, "[]") + "`"
}

// writeLong writes the long text of a command: paragraphs as they are, indented blocks as code.
func writeLong(b *bytes.Buffer, text string) {
	for i, block := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		var code bool
		for line := range strings.Lines(block) {
			line = strings.TrimRight(line, "\n")
			indented := strings.HasPrefix(line, " ")
			if indented != code {
				if code {
					b.WriteString("```\n\n")
				} else {
					b.WriteString("\n```text\n")
				}
				code = indented
			}
			if !indented {
				line = escape(line)
			}
			b.WriteString(line + "\n")
		}
		if code {
			b.WriteString("```\n")
		}
	}
}

func unindent(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimPrefix(strings.TrimRight(line, "\n"), "  "))
	}
	return strings.Join(lines, "\n")
}

var special = regexp.MustCompile(`[\\*_<|\[]`)

// escape writes text so that Markdown shows it as it is.
func escape(text string) string { return special.ReplaceAllString(text, `\$0`) }

// configurationReference is the page of all settings of the long-running commands.
func (e *edition) configurationReference() []byte {
	var b bytes.Buffer
	e.title(&b, "Configuration reference", "configuration-reference.md")
	b.WriteString(e.say("about settings") + "\n")
	for _, name := range []string{"server", "agent", "relay", "dev", "sim"} {
		c, _, err := e.root.Find([]string{name})
		if err != nil {
			panic(err) // the test fails
		}
		fmt.Fprintf(&b, "\n## gozzard %s\n\n| %s |\n", name, e.say("flag and key | environment | type | default | meaning"))
		b.WriteString("|---|---|---|---|---|\n")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" || f.Name == "config" {
				return
			}
			env := "GOZZARD_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
			value, meaning := e.flagText(f)
			fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", f.Name, env, value, flagDefault(f), meaning)
		})
	}
	return b.Bytes()
}
