package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newUserTokenCommand is `gozzard user token`.
func newUserTokenCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage personal tokens",
		Long: `Manage the tokens of a user. A token has the rights of its user. It is sent beside an app's
credentials, or alone in the header "Authorization: Bearer TOKEN" of the native API. The tokens that
hosts join with are another kind: see "gozzard token".`,
	}
	revoke := &cobra.Command{
		Use:     "revoke NAME ID",
		Short:   "Revoke a token",
		Example: "  gozzard user token revoke alice 1f2e3d4c5b6a",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withClient(func(c *client.Client) error {
				return c.RevokeUserToken(cmd.Context(), args[0], args[1])
			})
		},
	}

	cmd.AddCommand(newUserTokenCreateCommand(env), newUserTokenListCommand(env), revoke)
	return cmd
}

// newUserTokenCreateCommand is `gozzard user token create`.
func newUserTokenCreateCommand(env *cliEnv) *cobra.Command {
	var note, out string
	var days int
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token",
		Long: `Create a token. It is printed once and cannot be shown again. With --out it is written to a
credentials file that only its owner can read.`,
		Example: `  gozzard user token create alice --days 30 --note laptop
  gozzard user token create alice --out alice.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withClient(func(c *client.Client) error {
				t, err := c.CreateUserToken(cmd.Context(), args[0], note, days)
				if err != nil {
					return err
				}
				if out == "" {
					return checkWrite(fmt.Fprintln(env.out, t.Token))
				}
				if err := (credentials{URL: c.URL(), Token: t.Token, CA: env.ca}).Write(out); err != nil {
					return failed(fmt.Errorf("cannot store the token %s; revoke it: %w", t.ID, err))
				}
				env.remark("token %s is in %s, valid until %s", t.ID, out, t.Expires.Local().Format(time.DateTime))
				return nil
			})
		},
	}

	cmd.Flags().StringVar(&note, "note", "", "purpose of the token, in a few words")
	cmd.Flags().IntVar(&days, "days", 90, "number of days that it is valid, at most 366")
	cmd.Flags().StringVar(&out, "out", "", "write credentials to this `FILE` instead of printing the token")
	return cmd
}

// newUserTokenListCommand is `gozzard user token list`.
func newUserTokenListCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:     "list NAME",
		Short:   "List the tokens of a user",
		Example: `  gozzard user token list alice`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				list, err := c.UserTokens(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if output.structured() {
					return output.write(env.out, list)
				}

				t := newTable("ID", "KIND", "CREATED", "EXPIRES", "NOTE")
				for _, k := range list.Tokens {
					kind, expires := "personal", "never"
					if k.Session {
						kind = "session"
					}
					if !k.Expires.IsZero() {
						expires = k.Expires.Local().Format(time.DateTime)
					}
					t.add(k.ID, kind, k.Created.Local().Format(time.DateTime), expires, k.Note)
				}

				return t.write(env.out)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}
