package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/auth"
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
  apps.json          which apps may call (hashes of their secrets only)
  join.secret        what agents need to join: gozzard agent --secret-file DIR/join.secret

With --cmdb-url businesses are read from BlueKing CMDB: those of --cmdb-biz again and again, others when a caller asks (flush_process). A
business that was applied from a document is left alone. A process that is gone from CMDB and still hosted is not removed: it is named in the
log, and the business stays as it was, until the process is stopped or unhosted, or --cmdb-prune says otherwise.

Callers and agents are served on loopback only until enrolment and TLS are set up.`,
		Example: `  gozzard server --data /var/lib/gozzard
  gozzard agent  --data /var/lib/gozzard-agent --ip 127.0.0.1 --secret-file /var/lib/gozzard/join.secret`,
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
	cfg.CMDB.register(f)
	logs.register(f, "info")
	return cmd
}

func runServer(cmd *cobra.Command, cfg nodeConfig) error {
	ctx := cmd.Context()
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return fmt.Errorf("cannot make the data folder: %w", err)
	}
	var err error
	if cfg.JoinSecret, err = keptSecret(filepath.Join(cfg.Data, "join.secret")); err != nil {
		return err
	}
	secret, err := firstApp(&cfg.Auth, cfg.Data)
	if err != nil {
		return err
	}
	n, err := newNode(ctx, cfg)
	if err != nil {
		return err
	}
	if secret != "" {
		path := filepath.Join(cfg.Data, "credentials.json")
		if err := writePrivateJSON(path, credentials{URL: n.URL(), AppCode: firstAppCode, Secret: secret, Username: "admin"}); err != nil {
			n.close()
			return err
		}
		cfg.Log.Info("made the first app", "credentials", path)
	}
	cfg.Log.Info("serving", "url", n.URL(), "agents", n.broker.Addr(), "data", cfg.Data, "version", version)
	return n.run(ctx)
}

const firstAppCode = "admin"

// firstApp reads the apps that may call, or makes the first one; its secret is returned only then.
func firstApp(cfg *auth.Config, dir string) (secret string, err error) {
	path := filepath.Join(dir, "apps.json")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret = auth.NewSecret()
		*cfg = appConfig(firstAppCode, secret)
		return secret, writePrivateJSON(path, cfg)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the apps: %w", err)
	}
	if err := json.Unmarshal(b, cfg); err != nil {
		return "", fmt.Errorf("cannot read the apps in %s: %w", path, err)
	}
	return "", nil
}

// appConfig is one app that may name its users.
func appConfig(code, secret string) auth.Config {
	return auth.Config{Apps: []auth.App{{Code: code, Secrets: []auth.Digest{auth.Hash(secret)}, AssertsUsers: true}}}
}
