package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// silentRelay is how many seconds a relay may be silent before it is worth a note. Servers note it every 10 s.
const silentRelay = 45

// newRelaysCommand is `gozzard relays`.
func newRelaysCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "relays",
		Short: "List the relays of closed networks",
		Long: `List the relays that connect closed networks to the servers. AREAS are the cloud areas of the hosts
behind a relay, SEEN is how long ago it was connected to a server, and HOSTS are the agents that
were connected through it then. An invited relay has a token and did not join yet. This needs the
role admin on everything.`,
		Example: `  gozzard relays
  gozzard relays -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				list, err := c.Relays(cmd.Context())
				if err != nil {
					return err
				}
				if output.structured() {
					return output.write(env.out, list)
				}
				return env.printRelays(list.Relays)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	cmd.AddCommand(newRelaysTokenCommand(env),
		env.accountCommand("remove RELAY", "Remove a relay",
			`Remove a relay by its id. The servers close its connection at once and accept it no more. The hosts
behind it go through the other relays of their cloud area; without one they cannot be reached, and
their processes keep running. This also ends the token of a relay that did not join.`,
			"  gozzard relays remove k3v7qcm2x5ta", func(ctx context.Context, c *client.Client, id string) error {
				return c.RemoveRelay(ctx, id)
			}))
	return cmd
}

// printRelays prints relays as a table, and what is not in order with them.
func (env *cliEnv) printRelays(list []client.Relay) error {
	t := newTable("NAME", "ID", "AREAS", "STATE", "SEEN", "HOSTS", "AGENTS", "API", "SERVER")
	for i := range list {
		r := &list[i]
		seen, hosts := "-", "-"
		if !r.Seen.IsZero() {
			seen, hosts = shortDuration(time.Duration(r.Silent)*time.Second), strconv.Itoa(r.Hosts)
			if r.Silent >= silentRelay {
				env.remark("relay %s (%s) was last connected %s ago: it does not run, or does not reach a server",
					printable(r.Name), printable(r.ID), seen)
			}
		}
		t.add(printable(r.Name), r.ID, areasText(r.Areas), r.State, seen, hosts, printable(r.Agents), printable(r.API), r.Server)
	}
	return t.write(env.out)
}

// newRelaysTokenCommand is `gozzard relays token`.
func newRelaysTokenCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	var ttl time.Duration
	var req client.RelayTokenRequest
	cmd := &cobra.Command{
		Use:   "token NAME",
		Short: "Create a token with which one relay joins, and print it",
		Long: `Create a token for one relay and print it alone on one line. On the machine of the relay "gozzard
relay join" uses it. A token is valid once, and only as long as its creator is an admin of
everything.

The relay serves hosts of the cloud areas that --areas names, and no others. Hosts of an area that
has a relay learn its relays in place of the servers. Cloud area 0 reaches the servers directly and
has no relay: enrol the hosts of a closed network with "gozzard token create --cloud 3".`,
		Example: `  gozzard relays token plant-7 --areas 3,4 > token
  gozzard relays token plant-7 --areas 3 --ttl 10m -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}
			if len(req.Areas) == 0 {
				return usage("--areas is required: the cloud areas of the hosts behind the relay")
			}
			req.Name, req.TTL = args[0], ttl.String()
			return env.withClient(func(c *client.Client) error {
				t, err := c.CreateRelayToken(cmd.Context(), req)
				if err != nil {
					return err
				}
				if output.structured() {
					return output.write(env.out, t)
				}
				env.remark("valid until %s, for one relay of the cloud areas %s", t.Expires.Format(time.RFC3339), areasText(req.Areas))
				return checkWrite(fmt.Fprintln(env.out, t.Token))
			})
		},
	}

	cmd.Flags().IntSliceVar(&req.Areas, "areas", nil, "cloud `AREAS` of the hosts behind the relay, above 0")
	cmd.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long the token is valid, at most 168h")
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}
