package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// explainArguments makes every command answer missing and surplus arguments with their names and its usage line. The
// library counts them only. A command that explains its arguments itself keeps its text.
func explainArguments(root *cobra.Command) {
	root.InitDefaultCompletionCmd() // otherwise it comes later
	eachCommand(root, func(cmd *cobra.Command) {
		check := cmd.Args
		if check == nil || cmd.HasSubCommands() { // an unknown command is no argument
			return
		}
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			var explained *exitError
			if err == nil || errors.As(err, &explained) {
				return err
			}
			return argumentError(cmd, args, err)
		}
	})
}

// argumentError says which arguments of a command are missing or surplus.
func argumentError(cmd *cobra.Command, args []string, err error) error {
	required, most := argumentsOf(cmd.Use)
	switch {
	case len(args) < len(required):
		return usage("missing: %s\nusage: %s", strings.Join(required[len(args):], " "), cmd.UseLine())
	case len(args) > most:
		return usage("too many arguments: %s\nusage: %s", printable(strings.Join(args[most:], " ")), cmd.UseLine())
	}
	return usage("%w\nusage: %s", err, cmd.UseLine())
}

// argumentsOf reads the arguments from the usage of a command, such as "revoke NAME ID". It returns those that are
// required, and how many there are at most.
func argumentsOf(use string) (required []string, most int) {
	words := strings.Fields(use)
	for i := 1; i < len(words); i++ {
		switch word := words[i]; {
		case strings.HasPrefix(word, "-"): // a flag with its value
			i++
		case strings.HasPrefix(word, "["):
			most++
		default:
			required = append(required, strings.TrimSuffix(word, "..."))
			most++
		}
	}
	return required, most
}
