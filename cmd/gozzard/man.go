package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newManCommand is `gozzard man`, for packages and `make man`.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual pages of all commands into a folder",
		Long: `Write the manual pages of all commands into FOLDER: gozzard.1, and one page for each command. Packages have
them already.`,
		Example: "  gozzard man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		Hidden:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return failed(writeManual(cmd.Root(), args[0]))
		},
	}
}

// writeManual writes the page of every command that the help lists.
func writeManual(c *cobra.Command, folder string) error {
	if c.Hidden || c.Name() == "help" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of the manual: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, manName(c)+".1"), manPage(c), 0o644); err != nil {
		return fmt.Errorf("cannot write the manual: %w", err)
	}

	for _, child := range c.Commands() {
		if err := writeManual(child, folder); err != nil {
			return err
		}
	}
	return nil
}

// manName is the name of the page of a command, such as gozzard-agent-join.
func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is the manual page of a command.
func manPage(c *cobra.Command) []byte {
	var m manual
	m.macro("TH", strings.ToUpper(manName(c)), "1", "", "gozzard "+version, "Gozzard")

	// What it is.
	m.macro("SH", "NAME")
	fmt.Fprintf(&m.b, "%s \\- %s\n", roff(manName(c)), roff(c.Short))
	m.macro("SH", "SYNOPSIS")
	m.macro("nf")
	if c.Runnable() {
		m.line(c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		m.line(c.CommandPath() + " COMMAND")
	}
	m.macro("fi")

	// What it does.
	m.macro("SH", "DESCRIPTION")
	m.text(c.Long)
	if c.Long == "" {
		m.text(c.Short + ".")
	}
	m.commands(c)
	m.flags("OPTIONS", c.NonInheritedFlags())
	m.flags("OPTIONS OF ALL COMMANDS OF "+strings.ToUpper(c.Root().Name()), c.InheritedFlags())
	if c.Example != "" {
		m.macro("SH", "EXAMPLES")
		m.block(strings.Split(c.Example, "\n"))
	}

	m.related(c)
	return m.b.Bytes()
}

// manual collects the lines of a page.
type manual struct{ b bytes.Buffer }

// macro writes a line for the formatter.
func (m *manual) macro(name string, args ...string) {
	m.b.WriteString("." + name)
	for _, a := range args {
		m.b.WriteString(` "` + strings.ReplaceAll(roff(a), `"`, `\(dq`) + `"`)
	}
	m.b.WriteByte('\n')
}

// line writes a line of text.
func (m *manual) line(text string) {
	text = roff(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	m.b.WriteString(text + "\n")
}

// text writes paragraphs. Lines that begin with blanks stay as they are.
func (m *manual) text(text string) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		m.macro("PP")
		var block []string
		for line := range strings.SplitSeq(paragraph, "\n") {
			if strings.HasPrefix(line, " ") {
				block = append(block, line)
				continue
			}
			m.block(block)
			block = nil
			m.line(line)
		}
		m.block(block)
	}
}

// block writes lines as they are.
func (m *manual) block(lines []string) {
	if len(lines) == 0 {
		return
	}
	m.macro("RS", "4")
	m.macro("nf")
	for _, l := range lines {
		m.line(strings.TrimPrefix(l, "  "))
	}
	m.macro("fi")
	m.macro("RE")
}

// commands lists the commands below.
func (m *manual) commands(c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	m.macro("SH", "COMMANDS")
	for _, child := range c.Commands() {
		if child.IsAvailableCommand() && child.Name() != "help" {
			m.macro("TP")
			m.macro("B", child.Name())
			m.line(child.Short + ". See " + manName(child) + "(1).")
		}
	}
}

// flags lists flags.
func (m *manual) flags(title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	m.macro("SH", title)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		word, meaning := pflag.UnquoteUsage(f)
		if word != "" {
			name += " " + word
		}
		if f.DefValue != "" && !slices.Contains([]string{"[]", "false", "0", "0s"}, f.DefValue) &&
			!strings.Contains(meaning, "(default") && takesValue(f) {
			meaning += " (default " + f.DefValue + ")"
		}

		m.macro("TP")
		m.macro("B", name)
		m.line(meaning)
	})
}

// related names the pages around this one.
func (m *manual) related(c *cobra.Command) {
	var pages []string
	if c.HasParent() {
		pages = append(pages, manName(c.Parent()))
	}
	for _, child := range c.Commands() {
		if child.IsAvailableCommand() && child.Name() != "help" {
			pages = append(pages, manName(child))
		}
	}
	if len(pages) == 0 {
		return
	}
	m.macro("SH", "SEE ALSO")
	m.line(strings.Join(pages, "(1), ") + "(1)")
}

// roff escapes what the formatter would obey, and what it may not know.
func roff(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r == '\t':
			b.WriteString("    ")
		case r < ' ': // the texts have none
		case r < 0x7f:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}
