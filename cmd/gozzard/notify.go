package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// newNotifyCommand is `gozzard notify`.
func newNotifyCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notify",
		Short: "Send alerts to webhooks, mail, chats and commands",
		Long: `Alerts are about processes, hosts and tasks: a crash loop, a host that is lost, a limit that is
exceeded, a task that failed, a health check that fails. A receiver is where alerts go, and a
subscription says which alerts go to which receivers. A subscription gets only what its owner may
see.`,
		Example: `  gozzard notify receivers
  gozzard notify subscriptions
  gozzard notify dead-letters`,
	}
	cmd.AddCommand(newReceiversCommand(env), newSubscriptionsCommand(env), newDeadLettersCommand(env))
	return cmd
}

// firstError is err, or else what f returns.
func firstError(err error, f func() error) error {
	if err != nil {
		return err
	}
	return f()
}

// printID prints the id of what was made.
func (env *cliEnv) printID(output *outputFlag, id client.CreatedID) error {
	if output.structured() {
		return output.write(env.out, id)
	}
	return checkWrite(fmt.Fprintln(env.out, id.ID))
}

// newSubscriptionsCommand is `gozzard notify subscriptions`.
func newSubscriptionsCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "subscriptions",
		Short: "List your subscriptions to alerts",
		Long: `List your subscriptions. An admin of everything sees those of all. A dash means that nothing is left
out.`,
		Example: `  gozzard notify subscriptions
  gozzard notify subscriptions -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				list, err := c.Subscriptions(cmd.Context())
				if err != nil || output.structured() {
					return firstError(err, func() error { return output.write(env.out, list) })
				}
				t := newTable("NAME", "ID", "OWNER", "KINDS", "NAMESPACES", "HOSTS", "RECEIVERS")
				for i := range list.Subscriptions {
					s := &list.Subscriptions[i]
					t.add(printable(s.Name), s.ID, printable(s.Owner), orDash(s.Kinds), orDash(s.Namespaces), orDash(s.Hosts),
						orDash(s.Receivers))
				}
				return t.write(env.out)
			})
		},
	}
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	cmd.AddCommand(newSubscribeCommand(env),
		env.accountCommand("remove SUBSCRIPTION", "Remove a subscription to alerts",
			`Remove a subscription by its id, and its messages that wait.`,
			"  gozzard notify subscriptions remove k3v7qcm2x5ta",
			func(ctx context.Context, c *client.Client, id string) error { return c.Unsubscribe(ctx, id) }))
	return cmd
}

func orDash(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return printable(strings.Join(list, ","))
}

// newSubscribeCommand is `gozzard notify subscriptions create`.
func newSubscribeCommand(env *cliEnv) *cobra.Command {
	var req client.SubscriptionRequest
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Subscribe to alerts, and print the id of the subscription",
		Long: `Subscribe to alerts about what you may see. Without --alert these are crash_loop, host_lost,
limit_exceeded, task_failed, health_failing, start_failed and process_ended; others are restart_failed,
gave_up, orphaned, policy_changed, foreign_address and topology_left_out. A subscription with
namespaces or businesses gets no alerts about hosts.

Alerts of one group arrive together: the first message after --wait, more when there is news after
--interval, and as long as an alert fires again after --repeat. If your rights change, the next message
has only what you may see then.`,
		Example: `  gozzard notify subscriptions create night --receiver pager
  gozzard notify subscriptions create web --receiver group --namespace 'web*' --alert crash_loop,health_failing`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}
			req.Name = args[0]
			return env.withClient(func(c *client.Client) error {
				id, err := c.Subscribe(cmd.Context(), req)
				return firstError(err, func() error { return env.printID(&output, id) })
			})
		},
	}

	f := cmd.Flags()
	f.StringSliceVar(&req.Receivers, "receiver", nil, "`RECEIVERS` by id or name")
	f.StringSliceVar(&req.Kinds, "alert", nil, "`KINDS` of alerts")
	f.IntSliceVar(&req.Businesses, "business", nil, "only namespaces of these `BUSINESSES`")
	f.StringSliceVar(&req.Namespaces, "namespace", nil, "only these `NAMESPACES`, with * and ?")
	f.StringSliceVar(&req.Names, "process", nil, "only processes with these `NAMES`, with * and ?")
	f.StringSliceVar(&req.Hosts, "host", nil, "only these `HOSTS`: networks, or agent ids, addresses and host names with * and ?")
	f.StringToStringVar(&req.Labels, "label", nil, "only processes with these `LABELS`, as KEY=VALUE")
	f.StringSliceVar(&req.GroupBy, "group-by", nil, "group by these `WORDS`: kind, namespace, name, host (default kind,namespace)")
	f.StringVar(&req.Wait, "wait", "", "`TIME` before the first message of a group (default 5s)")
	f.StringVar(&req.Interval, "interval", "", "`TIME` between messages of a group with news (default 1m)")
	f.StringVar(&req.Repeat, "repeat", "", "`TIME` before an alert that still fires is sent again (default 4h)")
	output.register(cmd, f, "table", "json", "yaml")
	return cmd
}

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
				t := newTable("ID", "RECEIVER", "TRIES", "TITLE", "ERROR")
				for i := range list.DeadLetters {
					d := &list.DeadLetters[i]
					t.add(strconv.FormatInt(d.ID, 10), printable(d.ReceiverName), strconv.Itoa(d.Tries), printable(d.Title),
						printable(d.Error))
				}
				return t.write(env.out)
			})
		},
	}
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	cmd.AddCommand(
		env.accountCommand("retry LETTER", "Try to deliver a dead letter again",
			`Try to deliver a message again that could not be delivered, by its number.`, "  gozzard notify dead-letters retry 17",
			letterCommand((*client.Client).RetryDeadLetter)),
		env.accountCommand("remove LETTER", "Remove a dead letter",
			`Remove a message that could not be delivered, by its number.`, "  gozzard notify dead-letters remove 17",
			letterCommand((*client.Client).RemoveDeadLetter)))
	return cmd
}

func letterCommand(f func(*client.Client, context.Context, int64) error) func(context.Context, *client.Client, string) error {
	return func(ctx context.Context, c *client.Client, text string) error {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return gozzard.Errorf(gozzard.ErrInvalid, "%q is not the number of a dead letter", text)
		}
		return f(c, ctx, id)
	}
}
