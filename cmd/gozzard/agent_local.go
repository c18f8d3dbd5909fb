package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/agentsock"
)

// socketOptions are the flags of the commands that ask the agent of this host.
type socketOptions struct {
	data   stateFolder
	socket string
	output outputFlag
}

// stateFolder is the flag --data of commands about an agent of this host.
type stateFolder struct{ folder string }

func (s *stateFolder) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.folder, "data", "./agent",
		"state folder of the agent; without this flag, and without ./agent, /var/lib/gozzard-agent if it exists")
}

// find completes the flag.
func (s *stateFolder) find(cmd *cobra.Command) {
	if !cmd.Flags().Changed("data") {
		s.folder = agentd.LocalState(s.folder)
	}
}

// socketHelp is the end of the help of these commands.
const socketHelp = `

This command talks to the agent over its Unix socket, so it works without a server. Root and the
agent's account have full access. Members of the group that "gozzard agent --socket-group" names may
read. Processes are started and stopped by signed commands from the server only.`

// addSocketCommands adds the commands that ask the agent of this host.
func addSocketCommands(agent *cobra.Command) {
	env := &cliEnv{out: os.Stdout, errs: os.Stderr, lookup: os.LookupEnv, now: time.Now}
	agent.AddCommand(
		env.socketCommand(&cobra.Command{
			Use:   "status",
			Short: "Show the state of the agent of this host",
			Long: `Show the agent's identity, its session with the server, why the connection is down, the key and the
policy in use, and what is missing on this host. The exit code is 3 when no agent is running, and 0
otherwise, with or without a server.` + socketHelp,
			Example: `  gozzard agent status --data /var/lib/gozzard-agent
  gozzard agent status --socket /run/gozzard/agent.sock -o json`,
		}, (*cliEnv).agentStatus, "table", "json", "yaml"),
		env.socketCommand(&cobra.Command{
			Use:   "ps",
			Short: "List the processes of the agent of this host",
			Long: `List the processes of this host as the agent sees them now. SINCE is how long a process has been
running or stopped. The other columns are those of "gozzard ps".` + socketHelp,
			Example: `  gozzard agent ps --data /var/lib/gozzard-agent
  gozzard agent ps --data /var/lib/gozzard-agent -o wide`,
		}, (*cliEnv).agentPs, "table", "wide", "json", "yaml"),
		env.socketCommand(&cobra.Command{
			Use:   "reconnect",
			Short: "Reconnect the agent of this host to its server",
			Long: `Close the agent's connection to the server, if there is one, and connect again at once. Use it after
a change of the network: otherwise the agent waits until it notices the silence, and then for its
next attempt. Processes and operations are not touched. Only root and the agent's account may do
this.` + socketHelp,
			Example: `  gozzard agent reconnect --data /var/lib/gozzard-agent`,
		}, (*cliEnv).agentReconnect),
	)
}

// socketCommand completes a command that asks the agent. The formats in known are those of -o; without any the
// command does not have that flag.
func (env *cliEnv) socketCommand(cmd *cobra.Command,
	run func(*cliEnv, context.Context, *agentsock.Client, *outputFlag) error, known ...string) *cobra.Command {
	var o socketOptions
	cmd.Args = cobra.NoArgs
	o.data.register(cmd)
	cmd.Flags().StringVar(&o.socket, "socket", agentd.SocketName,
		"`PATH` of the agent's socket; a name without a folder is in the state folder")

	if len(known) > 0 {
		o.output.register(cmd, cmd.Flags(), known...)
	}

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		// Check the flags.
		o.data.find(cmd)
		path, err := agentd.SocketPath(o.data.folder, o.socket)
		if err != nil {
			return failed(err)
		}
		if path == "" {
			return usage("--socket %q: give the path of the agent's socket", o.socket)
		}
		if len(known) > 0 {
			if err := o.output.check(); err != nil {
				return err
			}
		}

		// Ask the agent.
		env.chinese = catalogueIn(cmd.Context())
		err = run(env, cmd.Context(), agentsock.NewClient(path), &o.output)
		if errors.Is(err, agentsock.ErrNotRunning) {
			unit := agentd.UnitOf(cmd.Context(), o.data.folder)
			_, missing := os.Lstat(o.data.folder)
			switch {
			case unit != "":
				err = fmt.Errorf("%w on %s: to see why, run: systemctl status %s and journalctl -u %s; its socket may also be "+
					"elsewhere (--socket)", agentsock.ErrNotRunning, path, unit, unit)
			case missing != nil && !cmd.Flags().Changed("data") && !cmd.Flags().Changed("socket"):
				err = fmt.Errorf("%w here: this host has neither ./agent nor /var/lib/gozzard-agent; give the state folder of the agent "+
					"with --data", agentsock.ErrNotRunning)
			}
		}
		return withAgentExitCode(err)
	}

	return cmd
}

// withAgentExitCode adds the exit code to an error of the agent's socket. nil stays nil.
func withAgentExitCode(err error) error {
	var done *exitError
	switch {
	case err == nil, errors.As(err, &done):
		return err
	case errors.Is(err, agentsock.ErrNotRunning):
		return &exitError{exitNotRunning, err}
	case errors.Is(err, agentsock.ErrNotAllowed):
		return &exitError{exitNotAllowed, errors.New(printable(err.Error()))}
	}
	return &exitError{exitFailed, errors.New(printable(err.Error()))}
}

// agentReconnect is `gozzard agent reconnect`.
func (env *cliEnv) agentReconnect(ctx context.Context, c *agentsock.Client, _ *outputFlag) error {
	if err := c.Reconnect(ctx); err != nil {
		return err
	}
	return checkWrite(fmt.Fprintln(env.out,
		"the agent is reconnecting; run \"gozzard agent status\" to see the result"))
}
