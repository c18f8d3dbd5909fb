package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/signing"
)

// devConfig is what `gozzard dev` takes.
type devConfig struct {
	nodeConfig
	Hosts int
	Cloud int
}

// newDevCommand is `gozzard dev`.
func newDevCommand() *cobra.Command {
	var cfg devConfig
	var logs logFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run server and agents in one process, for a first look and for tests",
		Long: `Run a whole fleet in one process: a server and agents that answer as 127.0.0.1, 127.0.0.2 and so on, each with a state folder of its own.
The processes they start are real.

When ready, DIR/dev.json has the URL and the credentials (readable by its owner only), and "gozzard ps" in the same folder finds it by itself.
Ctrl-C ends gozzard and leaves the processes running; starting again finds them.`,
		Example: `  gozzard dev
  gozzard dev --data /tmp/fleet --listen 127.0.0.1:9090 --hosts 3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := host.Supported(); err != nil {
				return failed(err)
			}
			if err := layer(cmd); err != nil {
				return err
			}
			if cfg.Hosts < 1 || cfg.Hosts > 250 {
				return fmt.Errorf("--hosts %d: use 1 to 250", cfg.Hosts)
			}
			if cfg.Cloud < 0 {
				return fmt.Errorf("--cloud %d: use 0 or more", cfg.Cloud)
			}

			log, err := logs.logger(os.Stderr)
			if err != nil {
				return err
			}

			cfg.Log = log
			return failed(runDev(cmd.Context(), cfg))
		},
	}

	f := cmd.Flags()
	f.StringVar(&cfg.Data, "data", "./data", "folder of everything this fleet keeps")
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:8080", "address of the API")
	f.IntVar(&cfg.Hosts, "hosts", 1, "how many hosts to be")
	f.IntVar(&cfg.Cloud, "cloud", 0, "cloud area of the hosts")
	f.DurationVar(&cfg.Interval, "report-interval", 30*time.Second, "how often each agent reports everything")
	cfg.CMDB.register(f)
	logs.register(f, "warn")
	return cmd
}

const devApp, devUser = "gozzard_dev", "admin"

// runDev runs a node and its agents; the agents are wired to the node's fabric inside the process, so no port but
// the API's is opened.
func runDev(ctx context.Context, cfg devConfig) error {
	if err := os.MkdirAll(cfg.Data, 0o755); err != nil {
		return fmt.Errorf("cannot make the data folder: %w", err)
	}

	secret, err := keptSecret(filepath.Join(cfg.Data, "dev.secret"))
	if err != nil {
		return err
	}
	if cfg.Signer, err = signing.OpenSigner(cfg.Data, nil); err != nil {
		return err
	}

	cfg.JoinSecret = secret
	n, err := newNode(ctx, cfg.nodeConfig)
	if err != nil {
		return err
	}
	if err := n.devAccounts(ctx, devApp, secret); err != nil {
		n.close()
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, cfg.Hosts+2)
	run := func(i int, f func(context.Context) error) {
		wg.Go(func() { defer cancel(); errs[i] = f(ctx) })
	}

	agents, err := newDevAgents(cfg, n, secret)
	if err != nil {
		n.close()
		return err
	}

	run(cfg.Hosts, n.run)

	for i, a := range agents {
		run(i, a.run)
	}

	errs[cfg.Hosts+1] = announce(ctx, cfg, n, secret)
	if errs[cfg.Hosts+1] != nil {
		cancel()
	}

	wg.Wait()
	return errors.Join(errs...)
}

func newDevAgents(cfg devConfig, n *node, secret string) ([]*agentNode, error) {
	var agents []*agentNode
	for i := range cfg.Hosts {
		ip := "127.0.0." + strconv.Itoa(i+1)
		a, err := newAgentNode(agentConfig{
			Data: filepath.Join(cfg.Data, "hosts", ip), Broker: n.broker, Secret: secret, ServerKey: cfg.Signer.Key(),
			IPs: []string{ip}, Cloud: cfg.Cloud,
			Sample: 5 * time.Second, Policy: policyConfig{Rules: policy.Everything()}, Log: cfg.Log.With("host", ip),
		})
		if err != nil {
			for _, a := range agents {
				a.close()
			}
			return nil, err
		}
		agents = append(agents, a)
	}

	return agents, nil
}

// announce waits until every host has reported, then writes the credentials and says what to do next.
func announce(ctx context.Context, cfg devConfig, n *node, secret string) error {
	if err := awaitHosts(ctx, n.plane.Plane, cfg.Hosts); err != nil {
		return nil // ended before it was ready: whoever ended it knows why
	}
	path := filepath.Join(cfg.Data, "dev.json")
	err := writePrivateJSON(path, credentials{URL: n.URL(), AppCode: devApp, Secret: secret, Username: devUser})
	if err != nil {
		return err
	}
	fmt.Printf("gozzard serves %d host(s) at %s\ncredentials:  %s\ntry:          %s\n", cfg.Hosts, n.URL(), path,
		tryLine(path))
	return nil
}

// tryLine is a command that works when pasted.
func tryLine(path string) string {
	exe := os.Args[0]
	if filepath.Clean(path) == filepath.Join("data", "dev.json") {
		return exe + " ps"
	}
	return exe + " ps --credentials " + path
}

func awaitHosts(ctx context.Context, p *control.Plane, want int) error {
	for {
		online := 0
		for _, h := range p.Hosts(gozzard.Caller{Rights: gozzard.Everything()}) {
			if h.Online {
				online++
			}
		}
		if online >= want {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
