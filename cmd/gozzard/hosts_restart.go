package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// hostRestartOptions are the flags of `gozzard hosts restart`.
type hostRestartOptions struct {
	taskFlags
	restart client.HostRestart
}

// newHostRestartCommand is `gozzard hosts restart`.
func newHostRestartCommand(env *cliEnv) *cobra.Command {
	var o hostRestartOptions
	cmd := &cobra.Command{
		Use:   "restart HOST...",
		Short: "Restart the agents of hosts; processes keep running",
		Long: `Restart the agents of hosts. The program of the agent on the disk of the host takes over the process
of the agent. The processes of the host keep running, and the new agent supervises them.

The agent first waits for operations that are in progress on the host, at most --wait. If they are
not done then, it does not restart. With --force it restarts at once: such operations are
interrupted, and their tasks say so.

A host that is offline fails at once. The agents of "gozzard dev" run inside the server and cannot
restart. The owner of a host can forbid restarts with agent_restart: false in policy.yaml.

This needs the role admin for all namespaces, or a grant for them that lists restart-agent.

HOST is an agent id, a host name, an IP address, or cloud:ip.` + exitHelp,
		Example: `  gozzard hosts restart 0:10.0.0.2
  gozzard hosts restart 10.0.0.2 10.0.0.3 --wait 5m --remark "new limits of files"`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), env, args) },
	}

	f := cmd.Flags()
	f.DurationVar(&o.restart.Wait, "wait", gozzard.DefaultRestartWait, "how long operations in progress may take, such as 5m; at most 1h")
	f.BoolVar(&o.restart.Force, "force", false, "do not wait for operations in progress: they are interrupted")
	f.StringVar(&o.restart.Version, "version", "", "restart only agents that have this `VERSION`")
	f.StringVar(&o.restart.Remark, "remark", "", "`TEXT` for the logs of the hosts, such as the reason")
	f.IntVar(&o.restart.Confirm, "confirm", 0, "the `NUMBER` of hosts that you expect; the server asks for it when there are many, "+
		"and says how many there are")
	o.taskFlags.register(cmd)
	return cmd
}

// run restarts the agents and waits for the task.
func (o *hostRestartOptions) run(ctx context.Context, env *cliEnv, hosts []string) (err error) {
	if o.restart.Wait < 0 || o.restart.Wait > gozzard.MaxRestartWait || o.restart.Wait%time.Second != 0 {
		return usage("--wait must be whole seconds, from 0s to 1h")
	}
	if o.restart.Hosts, err = parseHostFlags(hosts); err != nil {
		return err
	}
	return env.runTask(ctx, &o.taskFlags, "restart-agent", func(c *client.Client) (client.Accepted, error) {
		return c.RestartHosts(ctx, o.restart)
	})
}
