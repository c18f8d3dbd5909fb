package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestArgumentsAreExplained: every command answers missing and surplus arguments with what is wrong and how it is used.
func TestArgumentsAreExplained(t *testing.T) {
	root, missing, surplus := newRoot(), 0, 0
	many := strings.Fields("one two three four five six seven")
	eachCommand(root, func(cmd *cobra.Command) {
		if cmd.Args == nil || cmd.HasSubCommands() {
			return
		}
		if err := cmd.Args(cmd, nil); err != nil {
			missing++
			explained(t, cmd, err)
		}
		if err := cmd.Args(cmd, many); err != nil {
			surplus++
			explained(t, cmd, err)
		}
	})
	if missing < 20 || surplus < 40 {
		t.Errorf("only %d commands with arguments, %d with a limit of them", missing, surplus)
	}
}

func explained(t *testing.T, cmd *cobra.Command, err error) {
	t.Helper()
	text := err.Error()
	if strings.Contains(text, "arg(s)") || strings.Contains(text, "unknown command") ||
		!strings.Contains(text, cmd.CommandPath()) {
		t.Errorf("%s: %s", cmd.CommandPath(), text)
	}
}

func TestArgumentsOfUse(t *testing.T) {
	for use, want := range map[string]struct {
		required string
		most     int
	}{
		"list": {"", 0}, "revoke NAME ID": {"NAME ID", 2}, "tree [BIZ]": {"", 1}, "forget HOST...": {"HOST", 1},
		"restore FILE --data NEWDIR": {"FILE", 1}, "keygen --to FILE": {"", 0},
	} {
		required, most := argumentsOf(use)
		if strings.Join(required, " ") != want.required || most != want.most {
			t.Errorf("%s: %v, at most %d", use, required, most)
		}
	}
}
