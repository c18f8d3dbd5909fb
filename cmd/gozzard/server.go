package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/server"
)

// newServerCommand is `gozzard server`.
func newServerCommand() *cobra.Command {
	var o server.Options
	var logs logFlags
	var printRoutes bool
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run the control plane and its API",
		Long: `Run the control plane: it records operations, sends them to agents and answers callers.

Every flag can also be set by the environment (--agent-listen is GOZZARD_AGENT_LISTEN) or in the YAML file named by --config
(agent-listen: 127.0.0.1:4230); a flag wins over the environment, the environment over the file.

At the first start the server makes in its data folder, readable by its owner only:
  credentials.json   URL and secret of the app "admin", for callers and for "gozzard --credentials"
  join.secret        what agents need to join: gozzard agent --secret-file DIR/join.secret
  signing.key        what the server signs every command with; agents obey nobody else ("gozzard key rotate" makes the next one)

With --cmdb-url businesses are read from BlueKing CMDB: those of --cmdb-biz again and again, others when a caller asks (flush_process). A
business that was applied from a document is left alone. A process that is gone from CMDB and still hosted is not removed: it is named in the
log, and the business stays as it was, until the process is stopped or unhosted, or --cmdb-prune says otherwise.

On loopback callers and agents are served in the clear. Elsewhere everything is TLS: the server makes an authority of its own in its data folder (ca.pem),
agents come with certificates that it gave them, and hosts enter by tokens ("gozzard token create", then "gozzard agent join" on the host).

With --backup-to and --backup-recipient the server makes encrypted backups by itself ("gozzard backup --help"). It has the public key only.`,
		Example: `  gozzard server --data /var/lib/gozzard
  gozzard agent  --data /var/lib/gozzard-agent --ip 127.0.0.1 --secret-file /var/lib/gozzard/join.secret
  gozzard server --data /var/lib/gozzard --listen 0.0.0.0:8443 --agent-listen 0.0.0.0:4230`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := layer(cmd); err != nil {
				return err
			}
			log, err := logs.logger(os.Stderr)
			if err != nil {
				return err
			}
			if printRoutes {
				return failed(writeRoutes(cmd.OutOrStdout()))
			}

			o.Version, o.Log, o.Fatal = version, log, fatal(log)
			s, err := server.New(cmd.Context(), o)
			if err != nil {
				return failed(err)
			}
			return failed(s.Run(cmd.Context()))
		},
	}

	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "./data", "folder of the record and the server's secrets")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8080", "address of the API")
	f.StringVar(&o.AgentListen, "agent-listen", "127.0.0.1:4230", "address that agents connect to")
	f.DurationVar(&o.Interval, "report-interval", 30*time.Second, "how often each agent reports everything")
	f.DurationVar(&o.Keep, "keep-results", 24*time.Hour, "how long results of tasks are kept at least")
	f.DurationVar(&o.Checkpoint, "audit-checkpoint", time.Hour,
		"how often the newest row of the audit is signed into audit.checkpoints and the log; 0 is never")
	f.BoolVar(&printRoutes, "print-routes", false, "print every route as METHOD PATH DOOR NAME and exit, for tests and audits")
	_ = f.MarkHidden("print-routes") // it exists
	registerLogin(f, &o.Login)
	registerTrust(f, &o.Trust)
	registerLimits(f, &o.Limits)
	registerCMDB(f, &o.CMDB)
	registerBackup(f, &o.Backup)
	registerRelease(f, &o.Release)
	logs.register(f, "info")
	return cmd
}

// writeRoutes prints the table of routes.
func writeRoutes(w io.Writer) error {
	routes, err := server.Routes()
	if err != nil {
		return err
	}
	for _, r := range routes {
		if err := written(fmt.Fprintf(w, "%s %s %s %s\n", r.Method, r.Path, r.Door, r.Name)); err != nil {
			return err
		}
	}
	return nil
}
