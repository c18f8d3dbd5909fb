package agentd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/agentmetrics"
	"github.com/gozzard/gozzard/internal/agentsock"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/history"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/otlp"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/selfupdate"
	"github.com/gozzard/gozzard/internal/signing"
)

// Options are the settings of an agent. Data, Version, IPs, Log and one way to the server are required.
type Options struct {
	Data    string // the state folder
	Version string // of this program
	IPs     []string
	Cloud   int

	// The way to the server: an enrolled host has a Member; an agent on the server's own machine has Server and Secret;
	// an agent in the server's own process has Broker and Secret. Server may be several, with commas between them.
	Member *enrol.Membership
	Server string
	Broker *nats.Broker
	Secret string
	// ServerKey is the server's key as the operator of this host named it. Zero: the one that is kept in Data.
	ServerKey signing.Key

	Policy PolicyOptions
	Socket SocketOptions
	// Metrics say where the metrics are served, Push who gets them without asking.
	Metrics MetricsOptions
	Push    PushOptions
	// AllowSetuid allows commands of accounts other than root to gain privileges, for example by sudo.
	AllowSetuid bool
	Sample      time.Duration // how often usage is measured

	// Ready is called when the agent has started: its settings and its policy are valid, it supervises, and commands on this
	// host reach it. It does not wait for the server. May be nil.
	Ready func()
	Fatal func(error) // ends the process after a disk failure
	// Left gets the number of processes that run when the agent ends. May be nil.
	Left func(running int)
	Log  *slog.Logger

	updates  *selfupdate.Updater // nil: this program does not replace itself
	restarts chan struct{}       // capacity 1: the agent must restart; nil: it cannot
}

// Agent is the agent of one host with all its parts.
type Agent struct {
	options    Options
	id         gozzard.AgentID
	addrs      []gozzard.HostAddr
	keys       *signing.KeyRing
	own        host.Privileges
	rules      *policy.Reach
	policyFile *policy.File           // nil: the rules are not in a file
	reported   atomic.Pointer[string] // the digest of the policy that the server was sent last
	host       *host.Host
	acts       *actLog
	rejected   atomic.Pointer[string] // why the last command was not of the agent's server; "": it was
	agent      *agent.Agent
	metrics    *agentmetrics.Metrics
	listener   *agentmetrics.Listener // nil: nothing serves them
	collector  *otlp.Client           // nil: nobody gets them without asking
	push       *otlp.Metrics          // nil: nothing pushes them
	renewer    *enrol.Renewer         // nil: the host is not enrolled
	link       *nats.Link
	servers    []gozzard.ServerAddress // as the server named them; only the goroutine of agent uses it
	local      *agentsock.Server       // nil: there is no local socket
}

// New opens the parts of an agent. When a part cannot be opened, the parts before it are closed.
func New(o Options) (_ *Agent, err error) {
	a := &Agent{options: o}
	defer func() {
		if err != nil {
			a.Close()
		}
	}()

	for _, open := range []func() error{
		a.openListener,
		a.openCollector,
		a.openState,  // the folder, the identity, the keys of the server
		a.openPolicy, // what this account can do and what the owner of the host allows
		a.openHost,   // the machine
		a.openAgent,  // the journal and the processes in it
		a.openMetrics,
		a.openPush,
		a.openLink,   // the way to the server
		a.openSocket, // the way for people on this host
	} {
		if err := open(); err != nil {
			return nil, err
		}
	}

	return a, nil
}

// Run supervises processes until ctx ends or a part fails. It stops all parts before it returns.
func (a *Agent) Run(ctx context.Context) error {
	defer a.Close()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	a.options.Log.Info("agent started", "agent", a.id, "cloud", a.options.Cloud,
		"ip", strings.Join(a.options.IPs, ","), "version", a.options.Version, "mode", a.own.Mode.String(),
		"account", a.own.Account)

	// List the parts of this agent.
	parts := []func(context.Context) error{
		func(ctx context.Context) error { return a.agent.Run(ctx, a.link) },
		a.link.Run,
		returnMemory,
	}
	if a.policyFile != nil {
		parts = append(parts, a.watchPolicy)
	}
	if a.renewer != nil {
		parts = append(parts, a.renewer.Run)
	}
	if a.listener != nil {
		parts = append(parts, a.listener.Run)
	}
	if a.push != nil {
		parts = append(parts, a.push.Run)
	}
	switch {
	case a.local != nil:
		parts = append(parts, a.local.Run) // and Ready
	case a.options.Ready != nil:
		a.options.Ready()
	}
	if a.options.updates != nil {
		parts = append(parts, func(ctx context.Context) error { return a.options.updates.Run(ctx, a.releaseSource) })
	}

	// Run them together: the end of one is the end of all.
	var wg sync.WaitGroup
	errs := make([]error, len(parts))
	for i, run := range parts {
		wg.Go(func() { defer cancel(); errs[i] = run(ctx) })
	}

	wg.Wait()
	if a.options.Left != nil {
		a.options.Left(a.running())
	}
	return errors.Join(errs...)
}

// running counts the processes that run.
func (a *Agent) running() (n int) {
	lives, _ := a.agent.Lives(math.MaxInt)
	for _, l := range lives {
		if l.State == gozzard.StateRunning {
			n++
		}
	}
	return n
}

// Close closes an agent that does not run. Processes are not touched. A second call does nothing.
func (a *Agent) Close() {
	if a.collector != nil {
		_ = a.collector.Close() // it has idle connections only
	}
	if a.acts != nil {
		a.acts.close()
		a.acts = nil
	}
	if a.host != nil {
		if err := a.host.Close(); err != nil {
			a.options.Log.Error("cannot close the host", "err", err)
		}
		a.host = nil
	}
}

func (a *Agent) openState() (err error) {
	if a.addrs, err = hostAddrs(a.options); err != nil {
		return err
	}
	if err := os.MkdirAll(a.options.Data, 0o700); err != nil {
		return fmt.Errorf("cannot make the state folder: %w", err)
	}
	if a.options.Data, err = filepath.Abs(a.options.Data); err != nil {
		return fmt.Errorf("cannot find the state folder: %w", err)
	}
	if err := journal.CheckVersion(a.options.Data); err != nil { // before any file of the folder is read
		return err
	}
	if a.id, err = a.identity(); err != nil {
		return err
	}

	a.keys, err = openKeyRing(a.options.Data, a.options.ServerKey)
	return err
}

// identity is the id of the agent: the enrolled one, else the one of the state folder.
func (a *Agent) identity() (gozzard.AgentID, error) {
	if a.options.Member != nil {
		return a.options.Member.Agent, nil
	}
	return agent.Identity(a.options.Data)
}

func (a *Agent) openPolicy() (err error) {
	if a.own, err = host.OwnPrivileges(); err != nil {
		return err
	}
	if err := a.options.Policy.checkOwn(a.options.Data, a.own.Mode); err != nil {
		return err
	}

	if a.rules, err = a.options.Policy.open(a.options.Data, a.own, a.options.Log); err != nil {
		return err
	}
	a.policyFile, _ = a.rules.Rules.(*policy.File)
	return nil
}

func (a *Agent) openHost() (err error) {
	a.host, err = host.New(host.Options{Instance: string(a.id), StateDir: a.options.Data, Log: a.options.Log,
		AllowSetuid: a.options.AllowSetuid, Permit: a.rules.Folder, Programs: a.rules,
		Unnamed: a.rules.DefaultAccount, Own: a.ownFiles()})
	if err != nil {
		return err
	}

	prepareProcess(a.host, a.options.Log)
	return nil
}

func (a *Agent) openAgent() (err error) {
	if a.acts, err = openActLog(a.options.Data, a.options.Log); err != nil {
		return err
	}

	info := a.host.Facts()
	info.Agent, info.Addrs = a.id, a.addrs
	info.Version, info.StartedAt = a.options.Version, time.Now().Unix()
	info.Metrics = a.metricsURL()

	o := agent.Options{
		Dir: a.options.Data, Info: info, Host: a.host, Policy: a.rules, Log: a.options.Log, Fatal: a.options.Fatal,
		SampleEvery: a.options.Sample, Failpoint: failpoint(), Acted: a.acts.acted, IsRoot: isRoot,
		PolicyDigest: a.digest, Described: func(digest string) { a.reported.Store(&digest) }, PolicyFault: a.policyFault, History: a.openHistory(), Usage: a.host.Usage,
		Servers: a.learnServers, Files: a.openFiles(), Restart: restarter{&a.options, a.options.restarts},
	}
	if a.options.updates != nil {
		o.Update, o.Welcomed = a.options.updates.Order, a.options.updates.Welcomed
		o.Trial, _ = a.options.updates.OnTrial()
	}

	a.agent, err = agent.New(o)
	if err != nil && o.History != nil {
		err = errors.Join(err, o.History.Close())
	}
	return err
}

// openHistory opens the histories of processes. An agent that cannot keep them supervises all the same.
func (a *Agent) openHistory() *history.Store {
	s, err := history.Open(history.Options{Dir: a.options.Data, Every: a.options.Sample, Log: a.options.Log})
	if err != nil {
		a.options.Log.Error("cannot keep a history of processes", "err", err)
		return nil
	}
	return s
}

func (a *Agent) openLink() (err error) {
	o := nats.LinkOptions{
		URL: a.options.Server, Broker: a.options.Broker, Agent: a.id, Cloud: a.options.Cloud,
		Secret: a.options.Secret, Log: a.options.Log,
		Open: a.openEnvelope, Command: a.receive, Up: a.agent.Connected, Down: a.agent.Disconnected,
	}
	if a.options.Member != nil {
		a.renewer = enrol.NewRenewer(a.options.Member, enrol.Machine(), a.options.Log)
		o.TLS, o.Machine = a.renewer.TLS(), enrol.Machine()
	}

	if a.link, err = nats.NewLink(o); err != nil {
		return err
	}
	a.useServers(a.loadServers())
	return nil
}

// maxRejected is how many bytes of the reason for a rejection are kept.
const maxRejected = 1000

// openEnvelope checks the signature of a command. The act log remembers the envelope for the call of receive.
func (a *Agent) openEnvelope(envelope []byte) ([]byte, error) {
	cmd, err := a.keys.Open(a.id, envelope)
	a.acts.opened(envelope, a.keys.Key().ID())
	why := ""
	if err != nil {
		why = gozzard.Clip(err.Error(), maxRejected)
	}
	a.rejected.Store(&why)
	return cmd, err
}

// receive notes a command before the agent carries it out.
func (a *Agent) receive(cmd *gozzard.Command) {
	a.acts.received(cmd)
	a.agent.Receive(cmd)
}

func hostAddrs(o Options) (addrs []gozzard.HostAddr, err error) {
	for _, s := range o.IPs {
		ip, err := gozzard.ParseIP(s)
		if err != nil {
			return nil, fmt.Errorf("--ip: %w", err)
		}
		addrs = append(addrs, gozzard.HostAddr{Cloud: o.Cloud, IP: ip})
	}
	return addrs, nil
}
