package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newUserTokenCommand is `gozzard user token`.
func newUserTokenCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage personal tokens",
		Long: `Manage the tokens of a user. A token has the rights of its user. There are two kinds: a token that is
sent alone in the header "Authorization: Bearer TOKEN" of the native API, and a token for one app
(--for-app), which only that app can send, as bk_token beside its own credentials. Each kind is
rejected in the place of the other. The tokens that hosts join with are something else: see "gozzard
token".`,
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
	var out, file string
	var days int
	var token client.NewUserToken
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token",
		Long: `Create a token. It is printed once and cannot be shown again. With --out it is written to a
credentials file that only its owner can read. A user that makes a token gives its password again,
and a code of the second factor if it has one. A user of the login provider logs in again instead,
at most 10 minutes before. An admin's app needs neither.`,
		Example: `  gozzard user token create alice --days 30 --note laptop
  gozzard user token create alice --out alice.json --credentials me.json --password-file -
  gozzard user token create alice --for-app portal`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("days") {
				token.Days = &days
			}
			if file != "" {
				var err error
				if token.Password, err = env.readPasswordFile(cmd, file); err != nil {
					return err
				}
			}
			return env.withClient(func(c *client.Client) error {
				t, err := c.AddUserToken(cmd.Context(), args[0], token)
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

	cmd.Flags().StringVar(&token.Note, "note", "", "purpose of the token, in a few words")
	cmd.Flags().IntVar(&days, "days", 90, "number of days that it is valid; the server sets the highest (--max-token-age)")
	cmd.Flags().StringVar(&token.App, "for-app", "", "only the app with this `CODE` can use it (default: it is sent alone)")
	cmd.Flags().StringVar(&file, "password-file", "", "`FILE` with your password; - is standard input")
	registerCode(cmd.Flags(), &token.Code)
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

				t := newTable("ID", "KIND", "FOR", "CREATED", "EXPIRES", "NOTE")
				for _, k := range list.Tokens {
					kind, place, expires := "personal", "alone", "never"
					if k.Session {
						kind = "session"
					}
					if strings.HasPrefix(k.Kind, "console") {
						place = "console"
					} else if k.App != "" {
						place = "app " + k.App
					} else if k.Kind == "" && !k.Session {
						place = "alone and apps" // from before there were kinds
					}
					if !k.Expires.IsZero() {
						expires = k.Expires.Local().Format(time.DateTime)
					}
					t.add(k.ID, kind, place, k.Created.Local().Format(time.DateTime), expires, k.Note)
				}

				return t.write(env.out)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}
