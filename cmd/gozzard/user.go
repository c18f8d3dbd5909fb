package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newUserCommand is `gozzard user`.
func newUserCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Manage users and their tokens",
		Long: `Manage users. A user is a person. Users log in with a password (gozzard user login) or through the
login provider of the server (/login/oidc), or they use a personal token. They may do what their
grants allow (gozzard grant). Managing users needs the role admin on everything; users manage their
own password and tokens.

Passwords are read from a file or from standard input, never from the command line.`,
	}

	disable := func(disabled bool) func(context.Context, *client.Client, string) error {
		return func(ctx context.Context, c *client.Client, name string) error {
			return c.DisableUser(ctx, name, disabled)
		}
	}

	cmd.AddCommand(newUserListCommand(env), newUserCreateCommand(env), newUserPasswordCommand(env),
		newUserLoginCommand(env), newUserTokenCommand(env),
		newUserWhoCommand(env),
		env.accountCommand("disable NAME", "Disable a user",
			"Disable a user from the next request on. Its grants and tokens stay recorded.", "  gozzard user disable alice",
			disable(true)),
		env.accountCommand("enable NAME", "Enable a user again",
			"Enable a user again, with the tokens that are still valid.", "  gozzard user enable alice",
			disable(false)),
		env.accountCommand("forget-login NAME", "Forget the account of a user at the login provider",
			"The first login binds a user to one account at the provider. This command removes the binding, so that the next login binds it again. Use it when the account was created again.",
			"  gozzard user forget-login alice@example.com",
			func(ctx context.Context, c *client.Client, name string) error { return c.ForgetSubject(ctx, name) }),
		env.accountCommand("delete NAME", "Delete a user with all its tokens",
			"Delete a user with all its tokens.", "  gozzard user delete alice",
			func(ctx context.Context, c *client.Client, name string) error { return c.DeleteUser(ctx, name) }))

	return cmd
}

func newUserListCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the users",
		Example: `  gozzard user list
  gozzard user list -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				all := client.UserPage{Users: []client.User{}}
				for {
					page, err := c.Users(cmd.Context(), len(all.Users), client.MaxPage)
					if err != nil {
						return err
					}
					all.Users, all.Count = append(all.Users, page.Users...), page.Count
					if len(page.Users) < client.MaxPage {
						break
					}
				}

				if output.structured() {
					return output.write(env.out, all)
				}

				t := newTable("USER", "PASSWORD", "PROVIDER", "DISABLED", "GRANTS")
				for _, u := range all.Users {
					t.add(u.Name, yesNo(u.Password), u.Subject, yesNo(u.Disabled), grantsText(u.Grants))
				}

				return t.write(env.out)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

func newUserCreateCommand(env *cliEnv) *cobra.Command {
	var grant grantFlags
	var file string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a user",
		Long: `Create a user. With --password-file the user has a password (at least 12 characters; - is standard
input). Without it, the user logs in through the login provider or uses a token. Without --role the
user may do nothing until it gets a grant.`,
		Example: `  gozzard user create alice --password-file - --role operator --biz 2
  gozzard user create alice@example.com --role viewer`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var grants []client.Grant

			if grant.role != "" {
				grants = []client.Grant{grant.grant()}
			} else if grant.narrowed() {
				return usage("--role is required with the flags that narrow it")
			}

			password := ""

			if file != "" {
				var err error
				if password, err = readPasswordFile(cmd, file); err != nil {
					return err
				}
			}

			return env.withClient(func(c *client.Client) error {
				return c.CreateUser(cmd.Context(), args[0], password,
					grants)
			})
		},
	}

	cmd.Flags().StringVar(&file, "password-file", "", "`FILE` with the password; - is the standard input")
	grant.register(cmd.Flags())
	return cmd
}

// readPasswordFile reads the first line of a file or of the input.
func readPasswordFile(cmd *cobra.Command, path string) (string, error) {
	const most = 4096
	in := cmd.InOrStdin()

	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", usage("cannot read the password: %w", err)
		}
		defer f.Close()
		in = f
	}

	b, err := io.ReadAll(io.LimitReader(in, most))
	if err != nil {
		return "", usage("cannot read the password: %w", err)
	}

	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", usage("the password in %s is empty", path)
	}

	return line, nil
}

func newUserPasswordCommand(env *cliEnv) *cobra.Command {
	var file, old string
	cmd := &cobra.Command{
		Use:   "password NAME",
		Short: "Set a user's password",
		Long: `Set the password of a user and end its sessions. A user without the role admin can change only its
own password, and gives the present one with --old-password-file.`,
		Example: `  gozzard user password alice --password-file new.txt
  gozzard user password alice --password-file new.txt --old-password-file old.txt --credentials me.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			password, err := readPasswordFile(cmd, file)
			if err != nil {
				return err
			}
			before := ""
			if old != "" {
				if before, err = readPasswordFile(cmd, old); err != nil {
					return err
				}
			}
			return env.withClient(func(c *client.Client) error {
				return c.SetPassword(cmd.Context(), args[0], before,
					password)
			})
		},
	}

	cmd.Flags().StringVar(&file, "password-file", "-", "`FILE` with the new password; - is the standard input")
	cmd.Flags().StringVar(&old, "old-password-file", "", "`FILE` with the present password")
	return cmd
}

func newUserLoginCommand(env *cliEnv) *cobra.Command {
	var file, out string
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in and write a credentials file",
		Long: `Log in with a password and write a credentials file that only its owner can read. It is valid for 12
hours. --url is the server; another credentials file with its URL works too.`,
		Example: `  gozzard user login alice --url http://127.0.0.1:8080 --out me.json
  gozzard ps --credentials me.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.dial(true)
			if err != nil {
				return err
			}

			defer c.Close()
			password, err := readPasswordFile(cmd, file)
			if err != nil {
				return err
			}

			t, err := c.Login(cmd.Context(), args[0], password)
			if err != nil {
				return served(err)
			}
			if err := (credentials{URL: c.URL(), Token: t.Token, CA: env.ca}).Write(out); err != nil {
				return failed(err)
			}

			env.remark("logged in until %s, credentials are in %s", t.Expires.Local().Format(time.DateTime), out)
			return nil
		},
	}

	cmd.Flags().StringVar(&file, "password-file", "-", "`FILE` with the password; - is the standard input")
	cmd.Flags().StringVar(&out, "out", "gozzard.json", "credentials `FILE` to write")
	return cmd
}

func newUserWhoCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:     "whoami",
		Short:   "Show your identity and your rights",
		Example: `  gozzard user whoami`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				who, err := c.Who(cmd.Context())
				if err != nil {
					return err
				}
				if output.structured() {
					return output.write(env.out, who)
				}
				t := newTable("APP", "USER", "PROVEN", "GRANTS")
				t.add(who.App, who.User, yesNo(!who.Asserted), grantsText(who.Grants))
				return t.write(env.out)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// newUserTokenCommand is `gozzard user token`.
func newUserTokenCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage personal tokens",
		Long: `Manage the tokens of a user. A token has the rights of its user. It is sent beside an app's
credentials, or alone in the header "Authorization: Bearer TOKEN" of the native API. (Tokens by
which hosts join are those of gozzard token.)`,
	}
	revoke := &cobra.Command{
		Use: "revoke NAME ID", Short: "End a token", Example: "  gozzard user token revoke alice 1f2e3d4c5b6a",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withClient(func(c *client.Client) error {
				return c.RevokeUserToken(cmd.Context(), args[0],
					args[1])
			})
		},
	}

	cmd.AddCommand(newUserTokenCreateCommand(env), newUserTokenListCommand(env), revoke)
	return cmd
}

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
					return written(fmt.Fprintln(env.out, t.Token))
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
