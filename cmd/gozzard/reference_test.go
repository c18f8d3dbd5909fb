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

// TestCommandReference compares docs/command-reference.md with the commands of this program.
func TestCommandReference(t *testing.T) {
	comparePage(t, "command-reference.md", commandReference(newRoot()))
}

// TestConfigurationReference compares docs/configuration-reference.md with the flags of the long-running commands.
func TestConfigurationReference(t *testing.T) {
	comparePage(t, "configuration-reference.md", configurationReference(newRoot()))
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
func commandReference(root *cobra.Command) []byte {
	var b bytes.Buffer
	b.WriteString(`# Command reference

` + generated + `Every command of the program, with its flags. ` + "`gozzard COMMAND --help`" + ` prints the same text.

Shell completion knows commands, flags, and the names of processes, hosts, businesses and so on that you may see. Packages and ` + "`make install`" + ` install it for bash, zsh and fish; bash
needs the package bash-completion. ` + "`source <(gozzard completion bash)`" + ` turns it on without that. Manual pages are installed, too: ` + "`man gozzard`, `man gozzard-ps`" + `.

## Exit codes

| code | meaning |
|---|---|
`)
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
		fmt.Fprintf(&b, "| %d | %s |\n", c.code, c.text)
	}

	b.WriteString(`
## Flags of every command that calls a server

The reference below does not repeat these two flags.

` + flagTableHead)
	ps, _, err := root.Find([]string{"ps"})
	if err != nil {
		panic(err) // the test fails
	}
	for _, name := range callerFlags {
		writeFlag(&b, ps.Flags().Lookup(name))
	}

	walk(root, func(c *cobra.Command) { writeCommand(&b, c) })
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

func writeCommand(b *bytes.Buffer, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n", c.CommandPath(), escape(strings.TrimSuffix(c.Short, ".")))
	if c.Long != "" {
		b.WriteString("\n")
		writeLong(b, c.Long)
	}
	if c.Runnable() {
		fmt.Fprintf(b, "\n```\n%s\n```\n", c.UseLine())
	}

	if c.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n```sh\n%s\n```\n", unindent(c.Example))
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
	b.WriteString("\n" + flagTableHead)
	for _, f := range own {
		writeFlag(b, f)
	}
}

const flagTableHead = "| flag | type | default | meaning |\n|---|---|---|---|\n"

func writeFlag(b *bytes.Buffer, f *pflag.Flag) {
	name := "`--" + f.Name + "`"
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	value, meaning := flagText(f)
	fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, value, flagDefault(f), meaning)
}

// flagText gives the type of a flag's value and its meaning.
func flagText(f *pflag.Flag) (value, meaning string) {
	value, usage := pflag.UnquoteUsage(f)
	switch value {
	case "":
		value = "switch"
	case "string", "int", "float", "duration", "strings":
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
func configurationReference(root *cobra.Command) []byte {
	var b bytes.Buffer
	b.WriteString(`# Configuration reference

` + generated + `Every setting of ` + "`gozzard server`, `gozzard agent`, `gozzard relay`, `gozzard dev` and `gozzard sim`" + `.
A setting can be given in three places:

1. as a flag: ` + "`--agent-listen 127.0.0.1:4230`" + `
2. in the environment: ` + "`GOZZARD_AGENT_LISTEN=127.0.0.1:4230`" + `
3. in the YAML file of ` + "`--config FILE` or `GOZZARD_CONFIG`: `agent-listen: 127.0.0.1:4230`" + `

A flag wins over the environment. The environment wins over the file.
A key of the file that is not a setting is an error.
A setting that can be repeated is a YAML list in the file.

The settings of the policy of a host are in [people-and-rights.md](people-and-rights.md#the-policy-of-a-host).
The limits are explained in [limits-and-quotas.md](limits-and-quotas.md).
`)

	for _, name := range []string{"server", "agent", "relay", "dev", "sim"} {
		c, _, err := root.Find([]string{name})
		if err != nil {
			panic(err) // the test fails
		}
		fmt.Fprintf(&b, "\n## gozzard %s\n\n| flag and key | environment | type | default | meaning |\n", name)
		b.WriteString("|---|---|---|---|---|\n")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" || f.Name == "config" {
				return
			}
			env := "GOZZARD_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
			value, meaning := flagText(f)
			fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", f.Name, env, value, flagDefault(f), meaning)
		})
	}
	return b.Bytes()
}
