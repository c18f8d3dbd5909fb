package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// colourFlag is the flag --color of a command.
type colourFlag struct{ when string }

func colourChoices() []string { return []string{"auto", "always", "never"} }

func (c *colourFlag) register(cmd *cobra.Command, f *pflag.FlagSet) {
	f.StringVar(&c.when, "color", "auto", "`WHEN` to colour tables: auto (on a terminal, unless NO_COLOR is set), "+
		"always or never")
	completeFixed(cmd, "color", colourChoices()...)
}

func (c *colourFlag) check() error {
	if !slices.Contains(colourChoices(), c.when) {
		return usage("--color %q: use %s", c.when, words(colourChoices()))
	}
	return nil
}

// painter is the painter for the output of a command.
func (c *colourFlag) painter(env *cliEnv) painter {
	switch c.when {
	case "always":
		return true
	case "never":
		return false
	}
	unwanted, _ := env.lookup("NO_COLOR")
	return painter(env.screen && unwanted == "")
}

// painter colours texts, or leaves them as they are.
type painter bool

// colour is the parameter of the control sequence that begins a colour.
type colour string

const (
	plain  colour = ""
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	faint  colour = "2"
)

// endColour is the control sequence that ends every colour.
const endColour = "\x1b[0m"

// paint colours a text that is already printable.
func (p painter) paint(c colour, s string) string {
	if !p || c == plain || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + endColour
}
