package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newUserOffboardCommand is `gozzard user offboard`.
func newUserOffboardCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "offboard NAME",
		Short: "End everything that a user has, and list what remains",
		Long: `End the sessions, tokens and grants of a user, remove its password and its second factor, and disable
it. The user stays recorded, so its name gets nothing through any app. The command then lists what
remains and what you can do about it: apps of which the user was shown a secret, tokens that hosts
can still join with, work that has not ended, and event streams.`,
		Example: `  gozzard user offboard alice
  gozzard user offboard alice -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				o, err := c.OffboardUser(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if output.structured() {
					return output.write(env.out, o)
				}
				return env.writeOffboarded(&o)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// writeOffboarded prints what ended, and a line with its remedy for everything that remains.
func (env *cliEnv) writeOffboarded(o *client.Offboarded) error {
	if err := env.say("ended for user %s: %d sessions, %d tokens, %d grants\n", o.User, o.Sessions,
		o.Tokens, o.Grants); err != nil {
		return err
	}

	t := newTable("REMAINS", "WHICH", "WHAT TO DO")
	for _, code := range o.Apps {
		t.add(env.text("app secret that the user saw"), code, env.text("gozzard app rotate %[1]s, then gozzard app retire %[1]s", code))
	}
	for _, code := range o.AppsBefore {
		t.add(env.text("app secret from before this was recorded"), code, env.text("gozzard app rotate %s, if the user may know it", code))
	}
	for _, k := range o.EnrolTokens {
		t.add(env.text("enrolment token"), k.ID, "gozzard token revoke "+k.ID)
	}
	for _, work := range o.Work {
		t.add("running", work, env.text("it continues; look at it with gozzard task"))
	}
	if o.Streams > 0 {
		t.add(env.text("event streams"), fmt.Sprint(o.Streams), env.text("the server ends them"))
	}
	return t.write(env.out)
}
