package main

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/internal/agentd"
)

// agentHelp is the help of `gozzard agent`.
const agentHelp = `Run the agent. It starts, stops and supervises the processes of this host as the server asks, and
reports their status. The agent stores on disk what must run, so it supervises also while the server
cannot be reached. When the agent ends, no process is touched.

Policy. The file policy.yaml limits what the server can do on this host: accounts, folders, programs,
operations. An agent of root with its state below /var/lib has it in /etc/gozzard, another agent in
its state folder. The first start writes a policy that rejects commands as root, unless you give
--allow-root. Edit the file to allow more or less. "gozzard agent doctor"
explains what it means for this host.

Mode. The account that starts the agent decides its mode. "gozzard agent doctor" and "gozzard hosts -o wide" show it.
  root   processes of every account
  cap    an ordinary account with CAP_SETUID, CAP_SETGID and CAP_KILL: processes of every account, with less power over
         files. This mode needs a --policy file that only root can write.
  user   an ordinary account: processes of this account only

Upgrade. Replace the program file and send SIGUSR2. The new program takes over, and supervised
processes keep running. You can also stop the agent and start the new program; in between nothing is
supervised. Signed releases are installed by "gozzard release roll" on the server or "gozzard agent
update" on the host.

Local commands. "gozzard agent status", "ps" and "reconnect" talk to the agent over a Unix socket in
the state folder, also while the server is down. Root and the agent's account may use them. With
--socket and --socket-group, members of a group may read the status. The socket cannot start or stop
a process; only signed commands from the server can.

Settings. Every flag can also be set by an environment variable (--secret-file is
GOZZARD_SECRET_FILE) or in the YAML file that --config names. A flag wins over the environment, and
the environment wins over the file.

A host that joined a server with "gozzard agent join" needs --data only. With --secret-file the
agent connects to a server on the same machine.`

// newAgentCommand is `gozzard agent`.
func newAgentCommand() *cobra.Command {
	var o agentd.ServeOptions
	var logs logFlags
	var socket, group string
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run the agent of this host",
		Long:  agentHelp,
		Example: `  gozzard agent --data /var/lib/gozzard-agent
  gozzard agent --data /var/lib/gozzard-agent --ip 127.0.0.1 --secret-file /var/lib/gozzard/join.secret`,
		Args: cobra.NoArgs,
		// This applies to all verbs below too: on a system without agents none of them can work.
		PersistentPreRunE: func(*cobra.Command, []string) error { return failed(agentd.Supported()) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Collect wrong settings without an early return: Serve gets them, because a program on trial must go
			// back to the previous one also when its settings are wrong.
			wrong := applySettings(cmd)
			log, err := logs.logger(os.Stderr)
			if err != nil {
				wrong, log = errors.Join(wrong, err), slog.New(slog.NewJSONHandler(os.Stderr, nil))
			}
			o.Socket, err = agentd.FindSocket(o.Data, socket, group, cmd.Flags().Changed("socket"))
			if err != nil {
				wrong = errors.Join(wrong, usage("%w", err))
			}

			// Run until the end. A wrong setting keeps its own exit code.
			o.Version, o.Args, o.Log, o.Fatal = version, os.Args[1:], log, fatal(log)
			o.Ready = func() {
				if err := sayReady(); err != nil { // it supervises all the same
					log.Warn("systemd does not know that the agent has started, and may end it", "err", err)
				}
			}
			o.OwnIPs, o.Invalid = cmd.Flags().Changed("ip"), wrong
			o.Left = func(running int) { part(cmd.Context(), os.Stderr, "%s", processesLeft(running)) }
			err = agentd.Serve(cmd.Context(), o)
			if wrong != nil && errors.Is(err, wrong) {
				return wrong
			}
			return failed(err)
		},
	}

	registerAgent(cmd.Flags(), &o, &socket, &group)
	logs.register(cmd, "info")
	cmd.AddCommand(newAgentJoinCommand(), newAgentLeaveCommand(), newAgentPolicyCommand(), newAgentDoctorCommand(),
		newAgentUpdateCommand())
	addSocketCommands(cmd)
	return cmd
}

// registerAgent adds the flags of `gozzard agent`.
func registerAgent(f *pflag.FlagSet, o *agentd.ServeOptions, socket, group *string) {
	f.StringVar(&o.Data, "data", "./agent", "state folder of this agent")
	f.StringVar(&o.Server, "server", "127.0.0.1:4230", "`ADDRESS` of the server that agents connect to; several servers with commas between them: the agent uses any of them")
	f.StringVar(&o.JoinFile, "secret-file", "", "file with the join secret of the server")
	f.StringSliceVar(&o.IPs, "ip", []string{"127.0.0.1"},
		"IP addresses of this host that callers may use; the first one is shown in lists; an enrolled host has those "+
			"of its enrolment (gozzard hosts address)")
	f.IntVar(&o.Cloud, "cloud", 0, "cloud area of this host")
	f.BoolVar(&o.AllowSetuid, "allow-setuid", false,
		"allow commands of accounts other than root to gain privileges, for example with sudo")
	f.StringVar(&o.Policy.File, "policy", "",
		"policy file of this host (default: policy.yaml in /etc/gozzard or in the state folder, written at the first start)")
	f.BoolVar(&o.Policy.AllowRoot, "allow-root", false,
		"allow commands as root in the policy that the first start writes")
	f.StringVar(socket, "socket", agentd.SocketName,
		"`PATH` of the Unix socket for local commands; a name without a folder is in the state folder; "+
			"\"none\" turns it off")
	f.StringVar(group, "socket-group", "",
		"members of this `GROUP` may read the status; --socket must then be in a folder that they can enter "+
			"but not write")
	registerAgentMetrics(f, &o.Options)
	f.DurationVar(&o.Sample, "sample-interval", 10*time.Second, "how often CPU, memory and other usage is measured")
	f.DurationVar(&o.Trial, "update-trial", agentd.DefaultTrial,
		"after an update: how long the new program may take until the server accepts its connection")
}

// registerAgentMetrics adds the flags about who gets the metrics of an agent.
func registerAgentMetrics(f *pflag.FlagSet, o *agentd.Options) {
	f.StringVar(&o.Metrics.Listen.Address, "metrics-listen", "",
		"`ADDRESS:PORT` on which this agent serves metrics of its processes for Prometheus; beyond this machine only with "+
			"--metrics-token-file (default: nowhere)")
	f.StringVar(&o.Metrics.Listen.TokenFile, "metrics-token-file", "",
		"file with the token that callers of --metrics-listen must send; readable by its owner only, and read at every scrape")
	f.StringVar(&o.Metrics.Listen.CertFile, "metrics-tls-cert", "", "`FILE` with the certificate of --metrics-listen, in PEM")
	f.StringVar(&o.Metrics.Listen.KeyFile, "metrics-tls-key", "", "`FILE` with the private key of --metrics-tls-cert, in PEM")
	f.BoolVar(&o.Metrics.Groups, "metrics-namedprocess", false,
		"serve and push the metrics also under the names of process-exporter (namedprocess_namegroup_*)")

	f.StringVar(&o.Push.Endpoint, "otlp-endpoint", "",
		"push the metrics of this agent and its processes to the OpenTelemetry collector at `URL`, by OTLP over HTTP "+
			"(default: nowhere)")
	f.StringVar(&o.Push.Headers, "otlp-headers-file", "",
		"`FILE` with headers for the collector, such as \"Authorization: Bearer TOKEN\", readable by its owner only")
	f.StringVar(&o.Push.CA, "otlp-ca", "",
		"`FILE` with the authorities (PEM) of the collector (default: those of the system)")
	f.DurationVar(&o.Push.Every, "otlp-metrics", 30*time.Second,
		"how often the metrics are pushed to the collector, from 1s to 24h")
}
