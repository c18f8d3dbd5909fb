package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// drainLook is between two looks at a server that is being drained.
const drainLook = time.Second

// newServersDrainCommand is `gozzard servers drain`.
func newServersDrainCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	var wait bool
	cmd := &cobra.Command{
		Use:   "drain ID",
		Short: "Empty a server for maintenance",
		Long: `Empty a server for maintenance. Its agents go to other servers, most within 20 seconds, and it gives
up the work that only one server does. It still answers callers, and operations go on. An agent that
reaches no other server stays. "gozzard servers" shows how many are left; --wait waits until there
are none. Then stop the server.

A drained server stays drained when it is restarted, until "gozzard servers undrain". The last
server that takes agents cannot be drained. This needs the role admin on everything.`,
		Example: `  gozzard servers drain 4k2vqhzl3a7n6m5xw2bt4y6cde --wait`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				s, err := c.DrainServer(cmd.Context(), args[0], true)
				if err == nil && wait {
					s, err = env.awaitEmpty(cmd.Context(), c, s)
				}
				if err != nil {
					return err
				}
				return env.printDrained(&s, &output)
			})
		},
	}

	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the server has no agents and no leases, and show how many are left")
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// newServersUndrainCommand is `gozzard servers undrain`.
func newServersUndrainCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "undrain ID",
		Short: "Let a drained server take agents again",
		Long: `Let a drained server take agents and leases again. Servers with more agents than the others move some
to it: it has its share after a few minutes. This needs the role admin on everything.`,
		Example: `  gozzard servers undrain 4k2vqhzl3a7n6m5xw2bt4y6cde`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				s, err := c.DrainServer(cmd.Context(), args[0], false)
				if err != nil {
					return err
				}
				if output.structured() {
					return output.write(env.out, s)
				}
				return env.say("server %s (%s) takes agents again; other servers move some of theirs to it within minutes\n",
					printable(s.Name), printable(s.ID))
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// awaitEmpty waits until a drained server is empty, and shows how much is left. The numbers that it waits for were counted
// after the drain.
func (env *cliEnv) awaitEmpty(ctx context.Context, c *client.Client, first client.Server) (client.Server, error) {
	shown := ""
	for {
		list, err := c.Servers(ctx)
		if err != nil {
			return first, err
		}
		s := first
		for i := range list.Servers {
			if list.Servers[i].ID == first.ID {
				s = list.Servers[i]
			}
		}

		switch {
		case !s.Drained:
			return s, fmt.Errorf("server %s was undrained meanwhile", printable(s.ID))
		case s.Silent >= silentServer, s.Seen.After(first.Seen.Time) && !s.Draining():
			return s, nil
		}
		if text := env.text("%d agents and %d leases are left", s.Agents, len(s.Leases)); text != shown {
			shown = text
			env.remark("%d agents and %d leases are left", s.Agents, len(s.Leases))
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(drainLook):
		}
	}
}

// printDrained says how far the drain of a server is.
func (env *cliEnv) printDrained(s *client.Server, output *outputFlag) error {
	name, id := printable(s.Name), printable(s.ID)
	switch {
	case output.structured():
		return output.write(env.out, s)
	case s.Silent >= silentServer:
		return env.say("server %s (%s) is drained; it was last seen %s ago, so it has no agents\n", name, id,
			shortDuration(time.Duration(s.Silent)*time.Second))
	case s.Draining():
		return env.say("server %s (%s) is being drained: %d agents and %d leases are left\n", name, id, s.Agents, len(s.Leases))
	}
	return env.say("server %s (%s) is drained: it has no agents and no leases, and can be stopped\n", name, id)
}
