package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// silentServer is how many seconds a server may be silent before it is worth a note. It writes its row every 3 s.
const silentServer = 15

// newServersCommand is `gozzard servers`.
func newServersCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "List the servers of the installation",
		Long: `List the servers that share one record. SEEN is how long ago a server recorded that it runs. LAG is
how old the knowledge of the answering server about it is: servers send each other what their hosts
report, at least every 2 seconds. AGENTS are connected to it, and LEASES is the work that only one
server may do and that this server does now. STATE is active; draining while a drained server still
has agents or leases; then drained. The server that answers has a star. A server that does not run
any more is listed for a week. This needs the role admin on everything.`,
		Example: `  gozzard servers
  gozzard servers -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				list, err := c.Servers(cmd.Context())
				if err != nil {
					return err
				}
				if output.structured() {
					return output.write(env.out, list)
				}
				return env.printServers(list.Servers)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	cmd.AddCommand(newServersTokenCommand(env), newServersDrainCommand(env), newServersUndrainCommand(env))
	return cmd
}

// printServers prints servers as a table, and what is not in order with them.
func (env *cliEnv) printServers(list []client.Server) error {
	t := newTable("NAME", "ID", "VERSION", "URL", "SEEN", "LAG", "AGENTS", "LEASES", "STATE")
	for i := range list {
		s := &list[i]
		name, lag := s.Name, shortDuration(time.Duration(s.Lag)*time.Second)
		if s.Here {
			name, lag = name+"*", "-"
		}
		silent := shortDuration(time.Duration(s.Silent) * time.Second)
		t.add(name, s.ID, s.Version, s.URL, silent, lag, strconv.Itoa(s.Agents), strings.Join(s.Leases, " "), serverState(s))
		if s.Silent >= silentServer {
			env.remark("server %s (%s) was last seen %s ago: it does not run, or does not reach the database",
				printable(s.Name), printable(s.ID), silent)
		} else if s.Lag >= silentServer {
			env.remark("server %s (%s) runs, but the server that answers has not heard everything from it for %s: its hosts may be "+
				"shown as offline here. Check that the servers reach each other at their cluster addresses",
				printable(s.Name), printable(s.ID), lag)
		}
		env.remarkClock(s)
	}
	return t.write(env.out)
}

// remarkClock names a server with a wrong clock.
func (env *cliEnv) remarkClock(s *client.Server) {
	ahead := time.Duration(s.Ahead) * time.Second
	switch {
	case ahead > 0:
		env.remark("the clock of server %s (%s) is %s ahead of that of the database: set the clocks of all machines by a time service (NTP)",
			printable(s.Name), printable(s.ID), shortDuration(ahead))
	case ahead < 0:
		env.remark("the clock of server %s (%s) is %s behind that of the database: set the clocks of all machines by a time service (NTP)",
			printable(s.Name), printable(s.ID), shortDuration(-ahead))
	}
}

// serverState is a server's word in the list. One that is silent has no agents, whatever it recorded last.
func serverState(s *client.Server) string {
	switch {
	case s.Draining() && s.Silent < silentServer:
		return "draining"
	case s.Drained:
		return "drained"
	}
	return "active"
}
