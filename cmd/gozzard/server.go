package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/signing"
)

// newServerCommand is `gozzard server`.
func newServerCommand() *cobra.Command {
	var cfg nodeConfig
	var logs logFlags
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
			cfg.Log = log
			return failed(runServer(cmd, cfg))
		},
	}

	f := cmd.Flags()
	f.StringVar(&cfg.Data, "data", "./data", "folder of the record and the server's secrets")
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:8080", "address of the API")
	f.StringVar(&cfg.AgentListen, "agent-listen", "127.0.0.1:4230", "address that agents connect to")
	f.DurationVar(&cfg.Interval, "report-interval", 30*time.Second, "how often each agent reports everything")
	f.DurationVar(&cfg.Keep, "keep-results", 24*time.Hour, "how long results of tasks are kept at least")
	f.DurationVar(&cfg.Checkpoint, "audit-checkpoint", time.Hour,
		"how often the newest row of the audit is signed into audit.checkpoints and the log; 0 is never")
	cfg.Login.register(f)
	cfg.Trust.register(f)
	cfg.Guard.register(f)
	cfg.CMDB.register(f)
	cfg.Backup.register(f)
	cfg.Release.register(f)
	logs.register(f, "info")
	return cmd
}

func runServer(cmd *cobra.Command, cfg nodeConfig) error {
	ctx := cmd.Context()

	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return fmt.Errorf("cannot make the data folder: %w", err)
	}

	var err error
	if cfg.Signer, err = signing.OpenSigner(cfg.Data, nil); err != nil {
		return err
	}
	if !cfg.enrols() {
		if cfg.JoinSecret, err = keptJoin(filepath.Join(cfg.Data, "join.secret"), cfg.Signer.Key()); err != nil {
			return err
		}
	}

	n, err := newNode(ctx, cfg)
	if err != nil {
		return err
	}
	if err := n.firstAccounts(ctx); err != nil {
		n.close()
		return err
	}

	cfg.Log.Info("serving", "url", n.URL(), "agents", n.broker.Addr(), "data", cfg.Data, "version", version)
	return n.run(ctx)
}
