package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/server"
)

// serverHelp is the help of `gozzard server`.
const serverHelp = `Run the server. It accepts requests, records them, sends operations to agents and answers callers.

Settings. Every flag can also be set by an environment variable (--agent-listen is
GOZZARD_AGENT_LISTEN) or in the YAML file that --config names (agent-listen: 127.0.0.1:4230). A flag
wins over the environment, and the environment wins over the file.

The first start writes these files into the data folder, readable by their owner only:
  credentials.json   URL and secret of the app "admin", for callers and for "gozzard --credentials"
  join.secret        the secret of agents on this machine: gozzard agent --secret-file DIR/join.secret
  signing.key        the key that signs every command; agents obey no other key ("gozzard key rotate")

Network. On loopback, callers and agents connect without TLS. On any other address everything is
TLS: the server makes its own certificate authority in the data folder (ca.key), gives every agent a
certificate, and hosts join with tokens ("gozzard token create", then "gozzard agent join" on the
host).

CMDB. With --cmdb-url the server reads businesses from BlueKing CMDB: those of --cmdb-biz at an
interval, others when a caller asks for it (flush_process). A business from a topology document is
not changed. If a process is gone from CMDB but still supervised, it is named in the log and the
business stays as it was, until you stop the process or stop supervising it. --cmdb-prune removes
such processes.

Audit. With --audit-syslog, --audit-webhook and --audit-file the server sends every row of its audit
to other systems, in order and at least once. The first time it begins with the oldest row.

Backups. With --backup-to and --backup-recipient the server makes encrypted backups by itself
("gozzard backup --help"). It has only the public key.`

// newServerCommand is `gozzard server`.
func newServerCommand() *cobra.Command {
	var o server.Options
	var logs logFlags
	var printRoutes bool
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run the server",
		Long:  serverHelp,
		Example: `  gozzard server --data /var/lib/gozzard
  gozzard agent  --data /var/lib/gozzard-agent --ip 127.0.0.1 --secret-file /var/lib/gozzard/join.secret
  gozzard server --data /var/lib/gozzard --listen 0.0.0.0:8443 --agent-listen 0.0.0.0:4230`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := applySettings(cmd); err != nil {
				return err
			}
			log, err := logs.logger(os.Stderr)
			if err != nil {
				return err
			}
			if printRoutes {
				return failed(writeRoutes(cmd.OutOrStdout()))
			}

			if server.PasswordShown(o.Record, os.Args) {
				log.Warn("the command line has the password of the database, and other accounts of this machine can read it: " +
					"use PGPASSFILE, ~/.pgpass, PGPASSWORD or GOZZARD_RECORD instead")
			}

			o.Version, o.Log, o.Fatal, o.Check = version, log, fatal(log), selfCheck(&o)
			s, err := server.New(cmd.Context(), o)
			if err != nil {
				return failed(unlessSignalled(cmd.Context(), log, err))
			}
			if err := sayReady(); err != nil { // it serves all the same
				log.Warn("systemd does not know that the server has started, and may end it", "err", err)
			}
			err = s.Run(cmd.Context())
			if err == nil {
				part(cmd.Context(), os.Stderr, "The agents keep supervising the processes of their hosts; nothing is stopped.")
			}
			return failed(err)
		},
	}

	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "./data", "folder of the record and of the secrets")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8080", "address of the API")
	f.StringVar(&o.AgentListen, "agent-listen", "127.0.0.1:4230", "address that agents connect to")
	f.DurationVar(&o.Interval, "report-interval", 30*time.Second, "how often each agent sends a full report")
	f.DurationVar(&o.Keep, "keep-results", 24*time.Hour, "how long the results of tasks are kept")
	f.DurationVar(&o.KeepEvents, "keep-events", 30*24*time.Hour, "how long events are kept")
	f.IntVar(&o.MaxEvents, "max-events", 1_000_000, "`NUMBER` of events that are kept")
	f.DurationVar(&o.Checkpoint, "audit-checkpoint", time.Hour,
		"how often the newest row of the audit is signed and written to audit.checkpoints and the log; 0: never")
	f.StringVar(&o.Record, "record", "",
		"`ADDRESS` of a PostgreSQL database for the record, as postgres://USER@HOST/DATABASE (default: an SQLite file in the data folder)")
	registerCluster(f, &o.Cluster)
	f.StringVar(&o.Relay.Listen, "relay-listen", "",
		"`ADDRESS` that relays of closed networks connect to, as HOST:PORT (default: no relay connects to this server)")
	f.StringVar(&o.Relay.Address, "relay-address", "",
		"`ADDRESS` at which relays reach this server (default: that of --relay-listen)")
	f.BoolVar(&o.NewRecord, "new-record", false, newRecordHelp)
	f.BoolVar(&printRoutes, "print-routes", false,
		"print every route as METHOD PATH DOOR NAME and exit, for tests and audits")
	_ = f.MarkHidden("print-routes") // fails only for a flag that does not exist
	registerLogin(f, &o.Login)
	registerTrust(f, &o.Trust)
	registerKeys(f, &o.Keys)
	registerSecondPerson(f, &o.SecondPerson)
	registerLimits(f, &o.Limits)
	registerCMDB(f, &o.CMDB)
	registerBackup(f, &o.Backup)
	registerRelease(f, &o.Release)
	registerExport(f, &o.Export)
	registerOTLP(f, &o.OTLP)
	registerNotify(f, &o.Notify)
	logs.register(cmd, "info")
	cmd.AddCommand(newServerJoinCommand())
	return cmd
}

// writeRoutes prints the table of routes.
func writeRoutes(w io.Writer) error {
	routes, err := server.Routes()
	if err != nil {
		return err
	}
	for _, r := range routes {
		if err := checkWrite(fmt.Fprintf(w, "%s %s %s %s\n", r.Method, r.Path, r.Door, r.Name)); err != nil {
			return err
		}
	}
	return nil
}
