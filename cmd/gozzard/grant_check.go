package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// newGrantCheckCommand is `gozzard grant check`.
func newGrantCheckCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	var q client.GrantQuestion
	var biz int
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Ask whether an app or a user may do something",
		Long: `Ask whether an app or a user may do something on a host, and because of which grant. The server
decides with the same code as for an operation. With --app and --user the question is about that user
behind that app. The exit code is 0 for yes and 1 for no.

--biz asks about the processes of a business. Without --biz and --namespace, each grant is asked about a
namespace that it covers. Without --account, each grant is asked about an account that it names. What
was asked is printed with the answer.`,
		Example: `  gozzard grant check --user alice --action stop --host 10.1.0.5 --account root
  gozzard grant check --user bob --action restart --host 10.1.0.5 --biz 2
  gozzard grant check --app shop --action start --host 10.1.0.5 --namespace shop1 --account shop`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			if q.App == "" && q.User == "" {
				return usage("--app CODE or --user NAME is required")
			}
			if err := bothRequired("--action", q.Action != "", "--host", q.Host != ""); err != nil {
				return err
			}
			if cmd.Flags().Changed("biz") {
				if q.Namespace != "" || biz < 1 {
					return usage("give --biz with the number of a business, or --namespace, not both")
				}
				q.Namespace = gozzard.BusinessNamespace(biz)
			}
			return env.withClient(func(c *client.Client) error {
				answer, err := c.CheckGrants(cmd.Context(), q)
				if err != nil {
					return err
				}
				return env.printCheck(&output, &q, &answer)
			})
		},
	}

	f := cmd.Flags()
	f.StringVar(&q.App, "app", "", "`CODE` of the app")
	f.StringVar(&q.User, "user", "", "`NAME` of the user")
	f.StringVar(&q.Action, "action", "", "`ACTION` such as stop")
	f.StringVar(&q.Host, "host", "", "`HOST`: an address, cloud:address, a host name or an agent id")
	f.IntVar(&biz, "biz", 0, "`BUSINESS` of the process, instead of --namespace")
	f.StringVar(&q.Namespace, "namespace", "", "`NAMESPACE` of the process")
	f.StringVar(&q.Account, "account", "", "`ACCOUNT` of the process")
	output.register(cmd, f, "table", "json", "yaml")
	return cmd
}

// printCheck prints an answer. An answer that is no ends the program with an error.
func (env *cliEnv) printCheck(output *outputFlag, q *client.GrantQuestion, answer *client.GrantCheck) error {
	if output.structured() {
		if err := output.write(env.out, answer); err != nil {
			return err
		}
	} else if err := env.printCheckTable(answer); err != nil {
		return err
	}

	env.remarkQuestion(q)
	if !answer.HostKnown {
		env.remark("no agent of this host is known: only the address in the question counts")
	}
	if !answer.Allowed {
		return failed(errors.New("no: no grant allows this"))
	}
	return nil
}

// remarkQuestion prints what was asked. An answer for one namespace that a grant covers is no answer for another one.
func (env *cliEnv) remarkQuestion(q *client.GrantQuestion) {
	namespace, account := q.Namespace, q.Account
	if namespace == "" {
		namespace = env.text("any that a grant covers (ask about one with --namespace or --biz)")
	}
	if account == "" {
		account = env.text("any that a grant names (ask about one with --account)")
	}
	env.remark("asked: action %s, host %s, namespace %s, account %s", q.Action, q.Host, namespace, account)
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
