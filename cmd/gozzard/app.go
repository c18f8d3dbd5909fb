package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newAppCommand is `gozzard app`.
func newAppCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "app",
		Short: "Manage apps: programs with credentials",
		Long: `Manage apps. An app is a program that calls the server with a code and a secret. An app may do what
its grants allow ("gozzard grant") and nothing else. Changes apply to its next request. This needs
the role admin on everything.`,
	}
	cmd.AddCommand(newAppListCommand(env), newAppCreateCommand(env), newAppChangeCommand(env), newAppRotateCommand(env),
		env.accountCommand("retire CODE", "Revoke all secrets of an app except the newest",
			"Revoke the old secret after a rotation, when every caller uses the new one.",
			"  gozzard app retire shop",
			env.saying("app %s has its newest secret only\n", func(ctx context.Context, c *client.Client, code string) error {
				return c.RetireAppSecrets(ctx, code)
			})),
		env.accountCommand("delete CODE", "Delete an app",
			"Delete an app. Its next request is rejected. Tasks that it started continue.", "  gozzard app delete shop",
			env.saying("app %s is deleted\n", func(ctx context.Context, c *client.Client, code string) error {
				return c.DeleteApp(ctx, code)
			})),
		env.accountCommand("disable CODE", "Disable an app",
			`Disable an app from the next request on, for example the shared app "admin" when every admin has a
user ("gozzard user create NAME --admin"). The server refuses to disable the last way in for an
admin. The start with --reset-admin brings the app "admin" back with a new secret.`,
			"  gozzard app disable admin", env.saying("app %s is disabled\n", disableApp(true))),
		env.accountCommand("enable CODE", "Enable an app again",
			"Enable an app again, with the secrets that it had.", "  gozzard app enable admin", env.saying("app %s is enabled\n", disableApp(false))))

	return cmd
}

func disableApp(disabled bool) func(context.Context, *client.Client, string) error {
	return func(ctx context.Context, c *client.Client, code string) error {
		return c.ChangeApp(ctx, code, client.AppChange{Disabled: &disabled})
	}
}

// unknownText is what people get through an app that the server does not know, as a cell of a table.
func unknownText(a *client.App) string {
	if a.UnknownUsers == nil {
		return "undecided"
	}
	return yesNo(*a.UnknownUsers)
}

// accountCommand is a command that changes one named thing on the server and prints nothing.
func (env *cliEnv) accountCommand(use, short, long, example string,
	f func(context.Context, *client.Client, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withClient(func(c *client.Client) error { return f(cmd.Context(), c, args[0]) })
		},
	}
}

// saying is f, and then one line with what it did.
func (env *cliEnv) saying(done string, f func(context.Context, *client.Client, string) error) func(context.Context,
	*client.Client, string) error {
	return func(ctx context.Context, c *client.Client, name string) error {
		if err := f(ctx, c, name); err != nil {
			return err
		}
		return env.say(done, printable(name))
	}
}

// newAppListCommand is `gozzard app list`.
func newAppListCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the apps",
		Long: `List the apps with their settings and the number of valid secrets. Secrets cannot be shown: the
server stores only hashes.`,
		Example: `  gozzard app list
  gozzard app list -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				list, err := c.Apps(cmd.Context())
				if err != nil {
					return err
				}
				if output.structured() {
					return output.write(env.out, list)
				}
				t := newTable("APP", "SECRETS", "NAMES USERS", "SIGNS", "UNKNOWN USERS", "DISABLED", "GRANTS")
				for _, a := range list.Apps {
					t.add(a.Code, strconv.Itoa(a.Secrets), yesNo(a.AssertsUsers), yesNo(a.Signs), unknownText(&a),
						yesNo(a.Disabled), grantsText(a.Grants))
					if a.UnknownUsers == nil {
						env.remark("app %s: people that the server does not know have its rights, as in earlier versions; "+
							"decide with \"gozzard app set %[1]s --unknown-users=true\" or \"=false\"", a.Code)
					}
				}
				return t.write(env.out)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// newAppCreateCommand is `gozzard app create`.
func newAppCreateCommand(env *cliEnv) *cobra.Command {
	var app client.NewApp
	var grant grantFlags
	var file string
	cmd := &cobra.Command{
		Use:   "create CODE",
		Short: "Create an app and its secret",
		Long: `Create an app. The secret is printed once and cannot be shown again. With --out the command writes
it to a credentials file that only its owner can read, for "gozzard --credentials". Without --role
the app may do nothing until it gets a grant.

With --asserts-users the app may name the users that it acts for, without their login. Use this for
programs that check their users themselves. People that the server does not know get nothing through
the app, unless it is made with --unknown-users: then they have the rights of the app. With --signs
the app may prove itself by a signature. A signature cannot be checked with a hash, so the server
then stores the secret itself.`,
		Example: `  gozzard app create shop --role operator --biz 2 --account shop
  gozzard app create monitor --role viewer --asserts-users --out monitor.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			app.Code = args[0]

			if grant.role != "" {
				app.Grants = []client.Grant{grant.grant()}
			} else if grant.narrowed() {
				return usage("--role is required with the flags that narrow it")
			}

			return env.withClient(func(c *client.Client) error {
				s, err := c.CreateApp(cmd.Context(), app)
				if err != nil {
					return env.withGrantFlags(err)
				}
				return env.printSecret(c, s, file)
			})
		},
	}

	f := cmd.Flags()
	f.BoolVar(&app.AssertsUsers, "asserts-users", false, "the app may name users without their login")
	f.BoolVar(&app.MissingActionMeansStart, "missing-op-type-means-start", false,
		"for an old client that omits the action when it means start")
	f.BoolVar(&app.Signs, "signs", false, "the app may prove itself by a signature; the server stores its secret")
	f.BoolVar(&app.UnknownUsers, "unknown-users", false,
		"people that the server does not know have the rights of the app")
	f.StringVar(&file, "out", "", "write credentials to this `FILE` instead of printing the secret")
	grant.register(f)
	return cmd
}

// printSecret prints a new secret, or writes it to a credentials file.
func (env *cliEnv) printSecret(c *client.Client, s client.AppSecret, file string) error {
	if file == "" {
		return checkWrite(fmt.Fprintln(env.out, s.Secret))
	}

	made := credentials{URL: c.URL(), AppCode: s.Code, Secret: s.Secret, CA: env.ca}
	if err := made.Write(file); err != nil {
		return failed(fmt.Errorf(
			"cannot store the secret, so it is lost; make another one with \"gozzard app rotate\": %w", err))
	}
	env.remark("credentials of app %s are in %s", s.Code, file)
	return nil
}

// newAppChangeCommand is `gozzard app change`.
func newAppChangeCommand(env *cliEnv) *cobra.Command {
	var asserts, missing, unknown bool
	cmd := &cobra.Command{
		Use:     "change CODE",
		Aliases: []string{"set"},
		Short:   "Change the settings of an app",
		Long: `Change whether an app may name users without their login, whether people that the server does not
know have the rights of the app, and whether a request without an action means start. Settings that
you do not give stay as they are. "gozzard app set" is the same command.`,
		Example: `  gozzard app change monitor --asserts-users=false
  gozzard app set portal --unknown-users=false`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := func(name string, v *bool) *bool {
				if !cmd.Flags().Changed(name) {
					return nil
				}
				return v
			}
			change := client.AppChange{AssertsUsers: given("asserts-users", &asserts),
				MissingActionMeansStart: given("missing-op-type-means-start", &missing),
				UnknownUsers:            given("unknown-users", &unknown)}
			if change == (client.AppChange{}) {
				return usage("nothing to change: give --asserts-users, --unknown-users or --missing-op-type-means-start, " +
					"with =true or =false")
			}
			return env.withClient(func(c *client.Client) error { return c.ChangeApp(cmd.Context(), args[0], change) })
		},
	}

	cmd.Flags().BoolVar(&asserts, "asserts-users", false, "the app may name users without their login")
	cmd.Flags().BoolVar(&unknown, "unknown-users", false,
		"people that the server does not know have the rights of the app")
	cmd.Flags().BoolVar(&missing, "missing-op-type-means-start", false,
		"for an old client that omits the action when it means start")
	return cmd
}

// newAppRotateCommand is `gozzard app rotate`.
func newAppRotateCommand(env *cliEnv) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "rotate CODE",
		Short: "Create a new secret for an app",
		Long: `Create a new secret for an app. The previous secret stays valid, so you can change the callers one
by one; then revoke it with "gozzard app retire". A third secret revokes the oldest.`,
		Example: `  gozzard app rotate shop
  gozzard app rotate shop --out shop.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withClient(func(c *client.Client) error {
				s, err := c.AddAppSecret(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return env.printSecret(c, s, file)
			})
		},
	}

	cmd.Flags().StringVar(&file, "out", "", "write credentials to this `FILE` instead of printing the secret")
	return cmd
}
