package main

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/agentd"
)

// newAgentCommand is `gozzard agent`.
func newAgentCommand() *cobra.Command {
	var o agentd.ServeOptions
	var logs logFlags
	var socket, group string
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Keep this host's processes",
		Long: `Keep the processes of this host as the server asks: start them, bring them back, report them. What must run is known on this host's disk, so it is
kept also while the server cannot be reached. Ending the agent never touches a process.

To upgrade, replace the program's file and send SIGUSR2: the new program takes the agent's process over, and no supervised process notices. Stopping the
agent and starting the new program does the same with a gap in which nothing is watched. The agent updates itself to a release ("gozzard release roll" on the
server, "gozzard agent update" here) if it is signed by the key in release.pub of the state folder; see "gozzard agent update --help".

What the server may have done here is said by a policy file of this host that the server cannot change: accounts, folders, operations. The first start writes
one in the state folder that refuses the account root unless --allow-root is given. Edit it to allow more or less; "gozzard agent doctor" says what it means.

Whoever is on this host as root or as the agent's account can ask the agent itself, also while no server answers: "gozzard agent status", "gozzard agent ps"
and "gozzard agent reconnect", over a unix socket in the state folder. With --socket and --socket-group the members of a group may look, too. Processes are
started and stopped by signed commands of the server only, never over this socket.

The agent works in one of three modes, by whom it is started as: root, for processes of every account; cap, an ordinary account with CAP_SETUID, CAP_SETGID and
CAP_KILL, which does the same with less power over files and needs a --policy that only root can write; user, an ordinary account without, for processes of
that account alone. Log, "gozzard hosts -o wide" and "gozzard agent doctor" say which one it is.

Every flag can also be set by the environment (--secret-file is GOZZARD_SECRET_FILE) or in the YAML file named by --config; a flag wins over the
environment, the environment over the file.

A host that has joined a server ("gozzard agent join") needs nothing but --data. With --secret-file an agent serves a server on its own machine.`,
		Example: `  gozzard agent --data /var/lib/gozzard-agent
  gozzard agent --data /var/lib/gozzard-agent --ip 127.0.0.1 --secret-file /var/lib/gozzard/join.secret`,
		Args: cobra.NoArgs,
		// For each verb of agents, too: on a system without agents none of them has anything to work on.
		PersistentPreRunE: func(*cobra.Command, []string) error { return failed(agentd.Supported()) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			wrong := layer(cmd)
			log, err := logs.logger(os.Stderr)
			if err != nil { // looked at below: a program on trial gives way also for this
				wrong, log = errors.Join(wrong, err), slog.New(slog.NewJSONHandler(os.Stderr, nil))
			}

			o.Socket, err = agentd.FindSocket(o.Data, socket, group, cmd.Flags().Changed("socket"))
			if err != nil {
				wrong = errors.Join(wrong, usage("%w", err))
			}

			o.Version, o.Args, o.Log, o.Fatal = version, os.Args[1:], log, fatal(log)
			o.OwnIPs, o.Invalid = cmd.Flags().Changed("ip"), wrong
			err = agentd.Serve(cmd.Context(), o)
			if wrong != nil && errors.Is(err, wrong) {
				return wrong
			}
			return failed(err)
		},
	}

	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "./agent", "folder of this agent's state")
	f.StringVar(&o.Server, "server", "127.0.0.1:4230", "address of the server for agents")
	f.StringVar(&o.JoinFile, "secret-file", "", "file with the server's join secret")
	f.StringSliceVar(&o.IPs, "ip", []string{"127.0.0.1"},
		"addresses by which callers name this host; the first is shown")
	f.IntVar(&o.Cloud, "cloud", 0, "cloud area of this host")
	f.BoolVar(&o.AllowSetuid, "allow-setuid", false,
		"let commands of accounts other than root gain privileges, for example by sudo")
	f.StringVar(&o.Policy.File, "policy", "",
		"policy of this host (default policy.yaml in the state folder, which is written at the first start)")
	f.BoolVar(&o.Policy.AllowRoot, "allow-root", false,
		"allow the account root in the policy that is written at the first start")
	f.StringVar(&socket, "socket", agentd.SocketName,
		"`PATH` of the unix socket for people on this host, a mere name being in the state folder; none for no socket")
	f.StringVar(&group, "socket-group", "",
		"`GROUP` whose members may look (needs --socket in a folder that they can enter and not write, such as /run/gozzard/agent.sock)")
	f.DurationVar(&o.Sample, "sample-interval", 10*time.Second, "how often usage is measured")
	f.DurationVar(&o.Trial, "update-trial", agentd.DefaultTrial,
		"how long a release that this agent was updated to may take to be welcomed by the server")
	logs.register(f, "info")
	cmd.AddCommand(newJoinCommand(), newDoctorCommand(), newUpdateCommand())
	addLocalCommands(cmd)
	return cmd
}
