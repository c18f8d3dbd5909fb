package main

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newSubscriptionsCommand is `gozzard notify subscriptions`.
func newSubscriptionsCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "subscriptions",
		Short: "List your subscriptions to alerts",
		Long: `List your subscriptions: the alerts that each of them chooses, and its receivers. An admin of everything
sees those of all. A column for businesses, namespaces, processes, hosts or labels is there if a
subscription is limited to some; a dash means that it is not. -o wide adds all columns, by what alerts
are grouped, and how long the first message of a group waits.`,
		Example: `  gozzard notify subscriptions
  gozzard notify subscriptions -o wide`,
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
				receivers, err := c.Receivers(cmd.Context())
				if err != nil {
					return err
				}
				return subscriptionTable(list.Subscriptions, receivers.Receivers, output.format == "wide").write(env.out)
			})
		},
	}
	output.register(cmd, cmd.Flags(), "table", "wide", "json", "yaml")
	cmd.AddCommand(newSubscribeCommand(env), newSubscriptionChangeCommand(env),
		env.accountCommand("remove SUBSCRIPTION", "Remove a subscription to alerts",
			`Remove a subscription by its id or name, and its messages that wait.`,
			"  gozzard notify subscriptions remove night",
			func(ctx context.Context, c *client.Client, id string) error {
				n, err := c.Unsubscribe(ctx, id)
				return firstError(err, func() error { return env.sayDone("subscription %s removed, id %s\n", n) })
			}))
	return cmd
}

// When a column of the table of subscriptions is there.
const (
	columnAlways = iota
	columnUsed   // if a subscription has something in it, or with -o wide
	columnWide   // with -o wide
)

// subscriptionColumn is a column of the table of subscriptions.
type subscriptionColumn struct {
	title string
	when  int
	cell  func(s *client.Subscription) string
}

// subscriptionColumns are the columns of the table of subscriptions. names are those of the receivers, by their ids.
func subscriptionColumns(names map[string]string) []subscriptionColumn {
	return []subscriptionColumn{
		{"NAME", columnAlways, func(s *client.Subscription) string { return s.Name }},
		{"ID", columnAlways, func(s *client.Subscription) string { return s.ID }},
		{"OWNER", columnAlways, func(s *client.Subscription) string { return s.Owner }},
		{"RECEIVERS", columnAlways, func(s *client.Subscription) string { return receiverNames(s.Receivers, names) }},
		{"BUSINESSES", columnUsed, func(s *client.Subscription) string { return businessesText(s.Businesses) }},
		{"NAMESPACES", columnUsed, func(s *client.Subscription) string { return strings.Join(s.Namespaces, ",") }},
		{"PROCESSES", columnUsed, func(s *client.Subscription) string { return strings.Join(s.Names, ",") }},
		{"HOSTS", columnUsed, func(s *client.Subscription) string { return strings.Join(s.Hosts, ",") }},
		{"LABELS", columnUsed, func(s *client.Subscription) string { return labelText(s.Labels) }},
		{"GROUP BY", columnWide, func(s *client.Subscription) string { return strings.Join(s.GroupBy, ",") }},
		{"WAIT", columnWide, func(s *client.Subscription) string { return shortTime(s.Wait) }},
		{"INTERVAL", columnAlways, func(s *client.Subscription) string { return shortTime(s.Interval) }},
		{"REPEAT", columnAlways, func(s *client.Subscription) string { return shortTime(s.Repeat) }},
		{"ALERTS", columnAlways, func(s *client.Subscription) string { return strings.Join(s.Kinds, ",") }},
	}
}

// subscriptionTable is what subscriptions choose. Most choose by few things, so a column that all leave empty is left out.
func subscriptionTable(list []client.Subscription, receivers []client.Receiver, wide bool) *textTable {
	names := map[string]string{}
	for i := range receivers {
		names[receivers[i].ID] = receivers[i].Name
	}

	// Choose the columns.
	var titles []string
	rows := make([][]string, len(list))
	for _, c := range subscriptionColumns(names) {
		used := c.when == columnAlways || wide
		cells := make([]string, len(list))
		for i := range list {
			cells[i] = c.cell(&list[i])
			used = used || c.when == columnUsed && cells[i] != ""
		}
		if !used {
			continue
		}
		titles = append(titles, c.title)
		for i := range rows {
			rows[i] = append(rows[i], cells[i])
		}
	}

	t := newTable(titles...)
	for _, row := range rows {
		t.add(row...)
	}
	return t
}

// receiverNames are the names of receivers. One that the caller may not use has only its id.
func receiverNames(ids []string, names map[string]string) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = cmp.Or(names[id], id)
	}
	return strings.Join(list, ",")
}

func businessesText(list []int) string {
	words := make([]string, len(list))
	for i, b := range list {
		words[i] = strconv.Itoa(b)
	}
	return strings.Join(words, ",")
}

// shortTime is a duration as people write it: 4h, not 4h0m0s.
func shortTime(d string) string {
	if strings.HasSuffix(d, "m0s") {
		d = strings.TrimSuffix(d, "0s")
	}
	if strings.HasSuffix(d, "h0m") {
		d = strings.TrimSuffix(d, "0m")
	}
	return d
}
