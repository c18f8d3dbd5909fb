package main

import (
	"context"

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
own password, second factor and tokens.

Passwords are read from a file or from standard input, never from the command line.`,
	}

	disable := func(disabled bool) func(context.Context, *client.Client, string) error {
		return func(ctx context.Context, c *client.Client, name string) error {
			return c.DisableUser(ctx, name, disabled)
		}
	}

	cmd.AddCommand(newUserListCommand(env), newUserCreateCommand(env), newUserPasswordCommand(env),
		newUserLoginCommand(env), newUserTokenCommand(env), newUserWhoamiCommand(env),
		newUserTOTPCommand(env), newUserOffboardCommand(env),
		env.accountCommand("disable NAME", "Disable a user",
			"Disable a user from the next request on. Its sessions and tokens end. Its grants stay recorded.",
			"  gozzard user disable alice", env.saying("user %s is disabled\n", disable(true))),
		env.accountCommand("enable NAME", "Enable a user again",
			"Enable a user again. Its sessions and tokens have ended: it logs in again.",
			"  gozzard user enable alice", env.saying("user %s is enabled\n", disable(false))),
		env.accountCommand("forget-login NAME", "Forget the account of a user at the login provider",
			`The first login binds a user to one account at the provider. This command removes the binding, so
that the next login binds it again, and ends all sessions and tokens of the user. Use it when the
account was created again.`,
			"  gozzard user forget-login alice@example.com",
			env.saying("the account of user %s at the login provider is forgotten\n",
				func(ctx context.Context, c *client.Client, name string) error { return c.ForgetSubject(ctx, name) })),
		env.accountCommand("delete NAME", "Delete a user with all its tokens",
			`Delete a user with all its tokens. The name gets nothing through any app, and "gozzard user create"
uses it again only with --reuse-name. When a person leaves, use "gozzard user offboard" first.`,
			"  gozzard user delete alice",
			env.saying("user %s is deleted\n",
				func(ctx context.Context, c *client.Client, name string) error { return c.DeleteUser(ctx, name) })))

	return cmd
}

// newUserListCommand is `gozzard user list`.
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

				t := newTable("USER", "PASSWORD", "PROVIDER", "TOTP", "DISABLED", "GRANTS")
				for _, u := range all.Users {
					t.add(u.Name, yesNo(u.Password), u.Subject, yesNo(u.TOTP), yesNo(u.Disabled), grantsText(u.Grants))
				}

				return t.write(env.out)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// newUserCreateCommand is `gozzard user create`.
func newUserCreateCommand(env *cliEnv) *cobra.Command {
	var grant grantFlags
	var file string
	var admin bool
	var user client.NewUser
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a user",
		Long: `Create a user. With --password-file the user has a password (at least 12 characters; - is standard
input). Without it, the user logs in through the login provider or uses a token. Without --role the
user may do nothing until it gets a grant. --admin is the role admin on everything.`,
		Example: `  gozzard user create alice --password-file - --role operator --biz 2 --account shop
  gozzard user create alice@example.com --role viewer
  gozzard user create carol --password-file carol.txt --admin`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if admin {
				if grant.role != "" || grant.narrowed() {
					return usage("--admin is the role admin on everything: give it without --role and the flags that narrow it")
				}
				grant.role = "admin"
			}
			if grant.role != "" {
				user.Grants = []client.Grant{grant.grant()}
			} else if grant.narrowed() {
				return usage("--role is required with the flags that narrow it")
			}

			user.Name = args[0]
			if file != "" {
				var err error
				if user.Password, err = env.readPasswordFile(cmd, file); err != nil {
					return err
				}
			}

			return env.withClient(func(c *client.Client) error {
				if err := env.withGrantFlags(c.AddUser(cmd.Context(), user)); err != nil {
					return err
				}
				return env.say("user %s is created\n", printable(user.Name))
			})
		},
	}

	cmd.Flags().StringVar(&file, "password-file", "", "`FILE` with the password; - is standard input")
	cmd.Flags().BoolVar(&admin, "admin", false, "a named admin of everything")
	cmd.Flags().BoolVar(&user.ReuseName, "reuse-name", false, "the name may be that of a user that was deleted")
	grant.register(cmd.Flags())
	return cmd
}
