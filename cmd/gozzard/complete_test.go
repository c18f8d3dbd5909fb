package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestEverythingCompletes fails when a flag or an argument with a value has no completion, and no reason for that in
// freeFlags.
func TestEverythingCompletes(t *testing.T) {
	root := newRoot()
	if missing := uncompleted(root); len(missing) > 0 {
		t.Errorf("no completion, and no reason in freeFlags:\n%s", strings.Join(missing, "\n"))
	}

	used := map[string]bool{}
	everyFlag(root, func(_ *cobra.Command, f *pflag.Flag) { used[f.Name] = true })
	for name, reason := range freeFlags {
		if !used[name] || reason == "" {
			t.Errorf("freeFlags has %s (%q), which no command has, or no reason", name, reason)
		}
	}
	for name := range flagWords {
		if !used[name] {
			t.Errorf("flagWords has %s, which no command has", name)
		}
	}
}

// TestUncompletedIsFound: the test above can fail.
func TestUncompletedIsFound(t *testing.T) {
	root := &cobra.Command{Use: "gozzard"}
	bad := &cobra.Command{Use: "bad THING", RunE: func(*cobra.Command, []string) error { return nil }}
	bad.Flags().String("thing", "", "a thing")
	bad.Flags().Bool("switch", false, "a switch")
	bad.Flags().Int("number", 0, "a number")
	root.AddCommand(bad)
	addCompletion(&cliEnv{}, root)
	if got := uncompleted(root); !slices.Equal(got, []string{"gozzard bad --thing", "gozzard bad THING"}) {
		t.Errorf("found %q", got)
	}
}

// uncompleted are the flags and arguments of a program without a completion.
func uncompleted(root *cobra.Command) (missing []string) {
	everyFlag(root, func(c *cobra.Command, f *pflag.Flag) {
		if _, ok := c.GetFlagCompletionFunc(f.Name); !ok && takesValue(f) {
			missing = append(missing, c.CommandPath()+" --"+f.Name)
		}
	})

	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Runnable() && c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 {
			missing = append(missing, c.CommandPath()+" "+strings.Join(argumentWords(c.Use), " "))
		}
		for _, child := range c.Commands() {
			visit(child)
		}
	}
	visit(root)
	return missing
}

func everyFlag(c *cobra.Command, visit func(*cobra.Command, *pflag.Flag)) {
	for _, set := range []*pflag.FlagSet{c.LocalNonPersistentFlags(), c.PersistentFlags()} {
		set.VisitAll(func(f *pflag.Flag) { visit(c, f) })
	}
	for _, child := range c.Commands() {
		everyFlag(child, visit)
	}
}

// TestCompletionIsHarmless: names come from elsewhere, and a shell inserts them into the command line of a person.
func TestCompletionIsHarmless(t *testing.T) {
	got := completions([]value{{"web", "shop\nx\x1b[2J"}, {"web", "twice"}, {"we\nb", ""}, {"we\x1b[2Jb", ""}, {"db", ""},
		{"wet", ""}, {"wed", ""}, {"we$(reboot)", ""}, {"we'b", ""}, {"we;b", ""}, {"we*", ""}}, []string{"wed"}, "we")
	if want := []string{"web\tshop x[2J", "wet"}; !slices.Equal(got, want) {
		t.Errorf("completes %q, want %q", got, want)
	}
	if got := completions([]value{{"-x", ""}, {"x", ""}}, nil, ""); !slices.Equal(got, []string{"x"}) {
		t.Errorf("completes %q: an option", got)
	}
}
