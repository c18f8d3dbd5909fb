package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newServersTokenCommand is `gozzard servers token`.
func newServersTokenCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create a token with which one more server gets the keys, and print it",
		Long: `Create a token for one more server and print it alone on one line. On the new machine "gozzard
server join" gets the authority and the signing key with it, from the server that made the token.
Keep the token in a file that only its owner can read: with these keys anyone can command every
host.

A token is valid once, for at most one hour, and only as long as its creator is an admin of
everything. The server has it in memory only: a restart ends it. It is not for hosts: they join with
"gozzard token create". A server that runs with --second-person makes none.`,
		Example: `  gozzard servers token > token
  gozzard servers token --ttl 10m -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				t, err := c.CreateServerToken(cmd.Context(), client.ServerTokenRequest{TTL: ttl.String()})
				if err != nil {
					return err
				}
				if output.structured() {
					return output.write(env.out, t)
				}
				env.remark("valid until %s, for one server", t.Expires.Format(time.RFC3339))
				return checkWrite(fmt.Fprintln(env.out, t.Token))
			})
		},
	}

	cmd.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long the token is valid, at most 1h")
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}
