package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/agentsock"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/selfupdate"
	"github.com/gozzard/gozzard/internal/signing"
)

// agentConfig is what an agent needs to know.
type agentConfig struct {
	Data   string
	Server string       // "" with Broker
	Broker *nats.Broker // of this process
	Secret string
	Member *enrol.Membership // of a host that was enrolled: it says server, cloud and identity
	// ServerKey is named by whoever operates this host; zero: the one kept in Data.
	ServerKey signing.Key
	IPs       []string
	Cloud     int
	Sample    time.Duration
	// AllowSetuid lets commands of accounts other than root gain privileges.
	AllowSetuid bool
	Policy      policyConfig
	Socket      socketConfig
	Updates     *selfupdate.Updater // nil: this program is not replaced by itself
	Log         *slog.Logger
}

// newAgentCommand is `gozzard agent`.
func newAgentCommand() *cobra.Command {
	var cfg agentConfig
	var logs logFlags
	var secretFile string
	var trial time.Duration
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
		PersistentPreRunE: func(*cobra.Command, []string) error { return failed(host.Supported()) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			wrong := layer(cmd)
			log, err := logs.logger(os.Stderr)
			if err != nil { // looked at below: a program on trial gives way also for this
				wrong, log = errors.Join(wrong, err), slog.New(slog.NewJSONHandler(os.Stderr, nil))
			}

			cfg.Log = log
			wrong = errors.Join(wrong, cfg.Socket.settle(cfg.Data, cmd.Flags().Changed("socket")))

			if err := cfg.beginUpdates(trial, os.Args[1:]); err != nil {
				return failed(err)
			}

			nats.Quiet()

			err = runUpgradable(cmd.Context(), log, cfg.Updates, func(ctx context.Context) error {
				if wrong != nil {
					return wrong
				}

				var err error

				if secretFile == "" {
					err = cfg.membership(cmd.Flags().Changed("ip"))
				} else {
					cfg.Secret, cfg.ServerKey, err = readJoin(secretFile)
				}

				if err != nil {
					return err
				}

				return runAgent(ctx, cfg)
			})

			if wrong != nil && errors.Is(err, wrong) {
				return wrong
			}

			return failed(err)
		},
	}

	f := cmd.Flags()
	f.StringVar(&cfg.Data, "data", "./agent", "folder of this agent's state")
	f.StringVar(&cfg.Server, "server", "127.0.0.1:4230", "address of the server for agents")
	f.StringVar(&secretFile, "secret-file", "", "file with the server's join secret")
	f.StringSliceVar(&cfg.IPs, "ip", []string{"127.0.0.1"},
		"addresses by which callers name this host; the first is shown")
	f.IntVar(&cfg.Cloud, "cloud", 0, "cloud area of this host")
	f.BoolVar(&cfg.AllowSetuid, "allow-setuid", false,
		"let commands of accounts other than root gain privileges, for example by sudo")
	f.StringVar(&cfg.Policy.File, "policy", "",
		"policy of this host (default policy.yaml in the state folder, which is written at the first start)")
	f.BoolVar(&cfg.Policy.AllowRoot, "allow-root", false,
		"allow the account root in the policy that is written at the first start")
	cfg.Socket.register(f)
	f.DurationVar(&cfg.Sample, "sample-interval", 10*time.Second, "how often usage is measured")
	f.DurationVar(&trial, "update-trial", selfupdate.DefaultLimit,
		"how long a release that this agent was updated to may take to be welcomed by the server")
	logs.register(f, "info")
	cmd.AddCommand(newJoinCommand(), newDoctorCommand(), newUpdateCommand())
	addLocalCommands(cmd)
	return cmd
}

// runAgent keeps processes until ctx ends.
func runAgent(ctx context.Context, cfg agentConfig) error {
	a, err := newAgentNode(cfg)
	if err != nil {
		return err
	}
	cfg.Log.Info("keeping", "agent", a.agent.ID(), "cloud", cfg.Cloud, "ip", strings.Join(cfg.IPs, ","), "version",
		version,
		"mode", a.own.Mode.String(), "account", a.own.Account)
	return a.run(ctx)
}

// agentNode is a running agent: the machine, the brain and the link.
type agentNode struct {
	host  *host.Host
	agent *agent.Agent
	link  *nats.Link
	keep  *enrol.Renewer    // nil: not enrolled
	local *agentsock.Server // nil: nobody on this host is answered
	acts  *actLog
	own   host.Privileges
	log   *slog.Logger

	updates *selfupdate.Updater // nil: it is not updated
}

func newAgentNode(cfg agentConfig) (_ *agentNode, err error) {
	addrs, err := hostAddrs(cfg)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the state folder: %w", err)
	}
	if cfg.Data, err = filepath.Abs(cfg.Data); err != nil {
		return nil, fmt.Errorf("cannot find the state folder: %w", err)
	}

	id, err := cfg.identity()
	if err != nil {
		return nil, err
	}

	ring, err := openRing(cfg.Data, cfg.ServerKey)
	if err != nil {
		return nil, err
	}

	own, err := host.OwnStanding()
	if err != nil {
		return nil, err
	}

	n := &agentNode{log: cfg.Log, own: own, updates: cfg.Updates}

	if err := cfg.Policy.checkOwn(cfg.Data, own.Mode); err != nil {
		return nil, err
	}

	rules, err := cfg.Policy.open(cfg.Data, own, cfg.Log)
	if err != nil {
		return nil, err
	}

	n.host, err = host.New(host.Options{Instance: string(id), StateDir: cfg.Data, Log: cfg.Log,
		AllowSetuid: cfg.AllowSetuid, Permit: rules.Folder})
	if err != nil {
		return nil, err
	}

	defer func() {
		if err != nil {
			n.close()
		}
	}()

	if n.acts, err = openActs(cfg.Data, cfg.Log); err != nil {
		return nil, err
	}

	prepareProcess(n.host, cfg.Log)
	info := n.host.Facts()
	info.Agent, info.Addrs, info.Version, info.StartedAt = id, addrs, version, time.Now().Unix()
	n.agent, err = agent.New(agent.Options{
		Dir: cfg.Data, Info: info, Host: n.host, Policy: rules, Log: cfg.Log, Fatal: fatal(cfg.Log),
		SampleEvery: cfg.Sample, Failpoint: failpoint(),
		Acted: n.acts.acted, Update: cfg.update(), Welcomed: cfg.welcomed(),
	})
	if err != nil {
		return nil, err
	}

	lo := nats.LinkOptions{
		URL: cfg.Server, Broker: cfg.Broker, Agent: id, Cloud: cfg.Cloud, Secret: cfg.Secret, Log: cfg.Log,
		Open: func(b []byte) ([]byte, error) {
			cmd, err := ring.Open(id, b)
			n.acts.opened(b, ring.Key().ID())
			return cmd, err
		},
		Command: func(cmd *gozzard.Command) {
			n.acts.told(cmd)
			n.agent.Receive(cmd)
		},
		Up: n.agent.Connected, Down: n.agent.Disconnected,
	}

	if cfg.Member != nil {
		n.keep = enrol.NewRenewer(cfg.Member, enrol.Machine(), cfg.Log)
		lo.TLS, lo.Machine = n.keep.TLS(), enrol.Machine()
	}

	if n.link, err = nats.NewLink(lo); err != nil {
		return nil, err
	}

	n.openLocal(cfg, ring, rules)
	return n, nil
}

func hostAddrs(cfg agentConfig) (addrs []gozzard.HostAddr, err error) {
	for _, s := range cfg.IPs {
		ip, err := gozzard.ParseIP(s)
		if err != nil {
			return nil, fmt.Errorf("--ip: %w", err)
		}
		addrs = append(addrs, gozzard.HostAddr{Cloud: cfg.Cloud, IP: ip})
	}
	return addrs, nil
}

func (n *agentNode) run(ctx context.Context) error {
	defer n.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, 5)
	wg.Go(func() { defer cancel(); errs[0] = n.agent.Run(ctx, n.link) })
	wg.Go(func() { defer cancel(); errs[1] = n.link.Run(ctx) })

	if n.keep != nil {
		wg.Go(func() { defer cancel(); errs[2] = n.keep.Run(ctx) })
	}
	if n.local != nil {
		wg.Go(func() { defer cancel(); errs[3] = n.local.Run(ctx) })
	}
	if n.updates != nil {
		wg.Go(func() { defer cancel(); errs[4] = n.updates.Run(ctx, n.releaseSource) })
	}

	wg.Wait()
	return errors.Join(errs...)
}

func (n *agentNode) close() {
	if n.acts != nil {
		n.acts.close()
	}
	if n.host != nil {
		if err := n.host.Close(); err != nil {
			n.log.Error("cannot close the host", "err", err)
		}
	}
}
