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
		if cmd.HasSubCommands() { // a surplus argument is an unknown command
			if check != nil && cmd.Runnable() && cmd.HasParent() {
				cmd.Args = func(cmd *cobra.Command, args []string) error {
					if err := check(cmd, args); err != nil && len(args) > 0 {
						return unknownCommand(cmd, args[0])
					}
					return check(cmd, args)
				}
			}
			return
		}
		if check == nil {
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

// checkGroup rejects an unknown command of a group of commands. The library prints the help of the group for it and
// succeeds, so a script with a mistyped command would go on.
func checkGroup(root *cobra.Command, args []string) error {
	if len(args) > 1 && args[0] == "help" {
		return checkTopic(root, args[1:])
	}
	cmd, rest, err := root.Find(args)
	if err != nil || cmd == root || !cmd.HasSubCommands() || cmd.Runnable() {
		return nil // the library knows
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return nil // it says so, too
	}
	words := cmd.Flags().Args()
	if help, _ := cmd.Flags().GetBool("help"); help || len(words) == 0 || words[0] == "help" {
		return nil
	}
	return unknownCommand(cmd, words[0])
}

// checkTopic rejects the help of a command that does not exist. The library says so in English, and prints the help of
// all commands.
func checkTopic(root *cobra.Command, topic []string) error {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	group := root
	for _, word := range topic {
		if strings.HasPrefix(word, "-") || !group.HasSubCommands() {
			return nil // the library says what is wrong with a flag
		}
		found, _, err := group.Find([]string{word})
		if err != nil || found == group {
			return unknownCommand(group, word)
		}
		group = found
	}
	return nil
}

// unknownCommand is the error about a word that is no command of a group.
func unknownCommand(group *cobra.Command, word string) error {
	var known []string
	for _, c := range group.Commands() {
		if !c.Hidden {
			known = append(known, c.Name())
		}
	}
	group.SuggestionsMinimumDistance = 2
	if near := group.SuggestionsFor(word); len(near) > 0 {
		return usage("unknown command %q for %q, did you mean %q?", printable(word), group.CommandPath(), near[0])
	}
	return usage("unknown command %q for %q, known are %s", printable(word), group.CommandPath(), strings.Join(known, ", "))
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

// bothRequired is an error that names those of two required flags that were not given.
func bothRequired(first string, hasFirst bool, second string, hasSecond bool) error {
	switch {
	case hasFirst && hasSecond:
		return nil
	case hasFirst:
		return usage("%s is required", second)
	case hasSecond:
		return usage("%s is required", first)
	}
	return usage("%s and %s are required", first, second)
}
