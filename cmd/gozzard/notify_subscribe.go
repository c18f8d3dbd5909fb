package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/client"
)

// newSubscribeCommand is `gozzard notify subscriptions create`.
func newSubscribeCommand(env *cliEnv) *cobra.Command {
	var choice subscriptionFlags
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Subscribe to alerts",
		Long: `Subscribe to alerts about what you may see. Without --alert these are crash_loop, host_lost,
limit_exceeded, task_failed, health_failing, start_failed, run_failed and process_ended; others are
restart_failed, gave_up, orphaned, policy_changed, foreign_address and topology_left_out. A subscription
with namespaces or businesses gets no alerts about hosts.

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
			if err := choice.read(); err != nil {
				return err
			}
			req := choice.request(args[0])
			return env.withClient(func(c *client.Client) error {
				id, err := c.Subscribe(cmd.Context(), req)
				if err != nil {
					return withFlags(err, settingFlags())
				}
				env.warnUnknown(cmd.Context(), c, &choice.SubscriptionChange)
				return env.sayCreated(&output, id, "subscription %s created, id %s\n", req.Name)
			})
		},
	}

	choice.register(cmd.Flags())
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// subscriptionFlags are what a subscription chooses, as flags. The lists are texts, so that an empty one can be given.
type subscriptionFlags struct {
	client.SubscriptionChange
	wait, interval, repeat string
	businesses, labels     []string
}

func (s *subscriptionFlags) register(f *pflag.FlagSet) {
	f.StringSliceVar(&s.Receivers, "receiver", nil, "`RECEIVERS` by id or name")
	f.StringSliceVar(&s.Kinds, "alert", nil, "`KINDS` of alerts")
	f.StringSliceVar(&s.businesses, "business", nil, "only namespaces of these `BUSINESSES`")
	f.StringSliceVar(&s.Namespaces, "namespace", nil, "only these `NAMESPACES`, with * and ?")
	f.StringSliceVar(&s.Names, "process", nil, "only processes with these `NAMES`, with * and ?")
	f.StringSliceVar(&s.Hosts, "host", nil, "only these `HOSTS`: networks, or agent ids, addresses and host names with * and ?")
	f.StringSliceVar(&s.labels, "label", nil, "only processes with these `LABELS`, as KEY=VALUE")
	f.StringSliceVar(&s.GroupBy, "group-by", nil, "group by these `WORDS`: kind, namespace, name, host (default kind,namespace)")
	f.StringVar(&s.wait, "wait", "", "`TIME` before the first message of a group (default 5s)")
	f.StringVar(&s.interval, "interval", "", "`TIME` between messages of a group with news (default 1m)")
	f.StringVar(&s.repeat, "repeat", "", "`TIME` before an alert that still fires is sent again (default 4h)")
}

// settingFlags are the flags of the settings of a subscription.
func settingFlags() map[string]string {
	return map[string]string{"receivers": "--receiver", "kinds": "--alert", "businesses": "--business", "namespaces": "--namespace",
		"names": "--process", "hosts": "--host", "labels": "--label", "group_by": "--group-by", "wait": "--wait",
		"interval": "--interval", "repeat": "--repeat"}
}

// read reads the businesses and the labels.
func (s *subscriptionFlags) read() error {
	if s.businesses != nil {
		s.Businesses = []int{}
	}
	for _, text := range s.businesses {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return usage("--business %q: use the number of a business; gozzard topology list has them", printable(text))
		}
		s.Businesses = append(s.Businesses, int(n))
	}
	if s.labels != nil {
		s.Labels = map[string]string{}
	}
	for _, text := range s.labels {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return usage("--label %q: use KEY=VALUE", printable(text))
		}
		s.Labels[key] = value
	}
	return nil
}

// request describes a new subscription.
func (s *subscriptionFlags) request(name string) client.SubscriptionRequest {
	return client.SubscriptionRequest{Name: name, Receivers: s.Receivers, Kinds: s.Kinds, Businesses: s.Businesses,
		Namespaces: s.Namespaces, Names: s.Names, Hosts: s.Hosts, Labels: s.Labels, GroupBy: s.GroupBy, Wait: s.wait,
		Interval: s.interval, Repeat: s.repeat}
}

// newSubscriptionChangeCommand is `gozzard notify subscriptions change`.
func newSubscriptionChangeCommand(env *cliEnv) *cobra.Command {
	var choice subscriptionFlags
	var name string
	cmd := &cobra.Command{
		Use:   "change SUBSCRIPTION",
		Short: "Change what a subscription to alerts chooses",
		Long: `Change what a subscription chooses, by its id or name. Settings that you do not give stay as they are. A
list that you give replaces the former one, and an empty value removes a limit: --namespace ''.

What the subscription does not choose any more is not sent, neither are the ends of such alerts. What it
chooses from now on is sent when it begins. Only the owner and admins of everything can change a
subscription. It still gets only what its owner may see, also after a change by an admin.`,
		Example: `  gozzard notify subscriptions change night --receiver pager,group
  gozzard notify subscriptions change night --namespace '' --repeat 1h`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := choice.read(); err != nil {
				return err
			}
			change, given := choice.change(cmd.Flags(), &name)
			if !given {
				return usage("nothing to change: give at least one setting")
			}
			return env.withClient(func(c *client.Client) error {
				n, err := c.ChangeSubscription(cmd.Context(), args[0], change)
				if err != nil {
					return withFlags(err, settingFlags())
				}
				env.warnUnknown(cmd.Context(), c, &change)
				return env.sayDone("subscription %s changed, id %s\n", n)
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "new `NAME` of the subscription")
	choice.register(cmd.Flags())
	return cmd
}

// change has the settings that were given as flags.
func (s *subscriptionFlags) change(f *pflag.FlagSet, name *string) (c client.SubscriptionChange, given bool) {
	c = s.SubscriptionChange
	for _, v := range []struct {
		flag string
		from *string
		to   **string
	}{{"name", name, &c.Name}, {"wait", &s.wait, &c.Wait}, {"interval", &s.interval, &c.Interval}, {"repeat", &s.repeat, &c.Repeat}} {
		if f.Changed(v.flag) {
			*v.to = v.from
		}
	}
	f.Visit(func(*pflag.Flag) { given = true })
	return c, given
}
