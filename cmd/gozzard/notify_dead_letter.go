package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newDeadLettersCommand is `gozzard notify dead-letters`.
func newDeadLettersCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "dead-letters",
		Short: "List messages of alerts that could not be delivered",
		Long: `List the messages that could not be delivered for a day, that the receiver rejected, or for which too
many newer ones waited, the newest first. This needs the role admin on everything.`,
		Example: `  gozzard notify dead-letters
  gozzard notify dead-letters -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				list, err := c.DeadLetters(cmd.Context())
				if err != nil || output.structured() {
					return firstError(err, func() error { return output.write(env.out, list) })
				}
				t := newTable("ID", "TIME", "RECEIVER", "TRIES", "TITLE", "ERROR")
				for i := range list.DeadLetters {
					d := &list.DeadLetters[i]
					t.add(strconv.FormatInt(d.ID, 10), d.Created.Local().Format(time.DateTime), d.ReceiverName, strconv.Itoa(d.Tries),
						d.Title, env.chinese.Message(d.Error))
				}
				return t.write(env.out)
			})
		},
	}
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	cmd.AddCommand(
		env.letterCommand("retry LETTER", "Try to deliver a dead letter again",
			`Try to deliver a message again that could not be delivered. LETTER is its ID in the list of gozzard notify dead-letters.`,
			"  gozzard notify dead-letters retry 17", "dead letter %d waits for its receiver again\n", (*client.Client).RetryDeadLetter),
		env.letterCommand("remove LETTER", "Remove a dead letter",
			`Remove a message that could not be delivered. LETTER is its ID in the list of gozzard notify dead-letters.`,
			"  gozzard notify dead-letters remove 17", "dead letter %d removed\n", (*client.Client).RemoveDeadLetter))
	return cmd
}

// letterCommand makes a command that does something with a dead letter.
func (env *cliEnv) letterCommand(use, short, long, example, done string,
	f func(*client.Client, context.Context, int64) error) *cobra.Command {
	cmd := env.accountCommand(use, short, long, example, func(ctx context.Context, c *client.Client, text string) error {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return usage("%q is not the id of a dead letter: gozzard notify dead-letters lists them", text)
		}
		return firstError(f(c, ctx, id), func() error { return env.say(done, id) })
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("missing: the id of a dead letter; gozzard notify dead-letters lists them\nusage: %s", cmd.UseLine())
		}
		return cobra.ExactArgs(1)(cmd, args)
	}
	return cmd
}
