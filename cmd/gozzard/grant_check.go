package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newGrantCheckCommand is `gozzard grant check`.
func newGrantCheckCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	var q client.GrantQuestion
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Ask whether an app or a user may do something",
		Long: `Ask whether an app or a user may do something on a host, and because of which grant. The server
decides with the same code as for an operation. With --app and --user the question is about that user
behind that app. The exit code is 0 for yes and 1 for no.

Without --namespace, each grant is asked about a namespace that it covers. Without --account, each
grant is asked about an account that it names.`,
		Example: `  gozzard grant check --user alice --action stop --host 10.1.0.5 --account root
  gozzard grant check --app shop --action start --host 10.1.0.5 --namespace shop1 --account shop`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			if q.App == "" && q.User == "" {
				return usage("--app CODE or --user NAME is required")
			}
			if q.Action == "" || q.Host == "" {
				return usage("--action and --host are required")
			}
			return env.withClient(func(c *client.Client) error {
				answer, err := c.CheckGrants(cmd.Context(), q)
				if err != nil {
					return err
				}
				return env.printCheck(&output, &answer)
			})
		},
	}

	f := cmd.Flags()
	f.StringVar(&q.App, "app", "", "`CODE` of the app")
	f.StringVar(&q.User, "user", "", "`NAME` of the user")
	f.StringVar(&q.Action, "action", "", "`ACTION` such as stop")
	f.StringVar(&q.Host, "host", "", "`HOST`: an address, cloud:address, or an agent id")
	f.StringVar(&q.Namespace, "namespace", "", "`NAMESPACE` of the process")
	f.StringVar(&q.Account, "account", "", "`ACCOUNT` of the process")
	output.register(cmd, f, "table", "json", "yaml")
	return cmd
}

// printCheck prints an answer. An answer that is no ends the program with an error.
func (env *cliEnv) printCheck(output *outputFlag, answer *client.GrantCheck) error {
	if output.structured() {
		if err := output.write(env.out, answer); err != nil {
			return err
		}
	} else if err := env.printCheckTable(answer); err != nil {
		return err
	}

	if !answer.HostKnown {
		env.remark("no agent of this host is known: only the address in the question counts")
	}
	if !answer.Allowed {
		return failed(errors.New("no: no grant allows this"))
	}
	return nil
}

func (env *cliEnv) printCheckTable(answer *client.GrantCheck) error {
	t := newTable("GRANT", "ALLOWS", "REASON")
	for i := range answer.Grants {
		g := &answer.Grants[i]
		t.add(grantsText([]client.Grant{g.Grant}), yesNo(g.Allows), env.chinese.Message(g.Reason))
	}
	if err := t.write(env.out); err != nil || !answer.Allowed {
		return err
	}
	return checkWrite(fmt.Fprintln(env.out, "yes"))
}
