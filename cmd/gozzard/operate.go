package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/client"
)

// targetFlags say on which processes and hosts something is done.
type targetFlags struct {
	scopeFlags
	namespace string
	hosts     []string
	allHosts  bool
}

func (t *targetFlags) register(f *pflag.FlagSet) {
	f.StringVarP(&t.namespace, "namespace", "n", "",
		"`NAMESPACE`, or a pattern; without it, every namespace that has the name")
	f.StringArrayVar(&t.hosts, "host", nil, "`HOST` as cloud:ip, an IP address or an agent id; may be repeated")
	f.BoolVar(&t.allHosts, "all-hosts", false, "every host that has the process")
	t.scopeFlags.register(f)
}

// check looks at what can be told without a server, and gives everything but the scope.
func (t *targetFlags) check(names []string) (client.Selection, error) {
	s := client.Selection{Namespace: t.namespace, Names: names, All: t.allHosts}
	switch {
	case t.given() && (t.namespace != "" || t.allHosts):
		return s, usage("--namespace and --all-hosts are not for a business: its processes are known by it")
	case t.given() && !t.narrow() && len(names)+len(t.hosts) == 0:
		return s, usage("say which processes of the business: -e, --set, --module, --host or NAME; -e '*.*.*.*.*' is every one (see --help)")
	case !t.given() && len(names) == 0:
		return s, usage("say which processes: NAME..., or -e EXPRESSION; '*' is every one (see --help)")
	case !t.given() && t.allHosts == (len(t.hosts) > 0):
		return s, usage("say where: --host HOST (may be repeated), or --all-hosts")
	}

	var err error
	s.Hosts, err = parseHostFlags(t.hosts)
	return s, err
}

// run has something done to the selection that the flags and names make.
func (t *targetFlags) run(ctx context.Context, env *cliEnv, tf *taskFlags, what string, names []string,
	ask func(*client.Client, client.Selection) (client.Accepted, error)) error {
	s, err := t.check(names)
	if err != nil {
		return err
	}
	return env.task(ctx, tf, what, func(c *client.Client) (client.Accepted, error) {
		if s.BusinessSelection, err = t.scope(ctx, c); err != nil {
			return client.Accepted{}, err
		}
		return ask(c, s)
	})
}

// taskFlags say how a task is waited for.
type taskFlags struct {
	detach  bool
	timeout time.Duration
	output  outputFlag
}

func (t *taskFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&t.detach, "detach", false, "print the task's id and do not wait for it")
	f.DurationVar(&t.timeout, "timeout", 0,
		"wait at most that long, such as 30s; the task goes on (default: until it is done)")
	t.output.register(cmd, f, "table", "json", "yaml")
}

type operateOptions struct {
	targetFlags
	taskFlags
	waitOffline time.Duration
	confirm     int
}

// verb is one action as people read of it.
type verb struct {
	action, short, long string
}

func verbs() []verb {
	return []verb{
		{"start", "Start processes and keep them alive",
			"Run the start command of processes and see that they stay up. From then on their agents bring them back when they die.\nWhat runs already is left alone."},
		{"stop", "Stop processes and let them be stopped",
			"Run the stop command of processes and see that they are gone. Their agents do not bring them back.\nWhat does not run is left alone."},
		{"restart", "Restart processes",
			"Run the restart command of processes, or stop and start where there is none, and see that they stay up."},
		{"reload", "Have processes read their configuration again", "Run the reload command of processes."},
		{"kill", "Kill processes",
			"Run the kill command of processes and see that they are gone. Their agents do not bring them back."},
		{"host", "Have agents keep processes alive",
			"Have agents keep processes alive: they are brought up if they are down, and brought back when they die."},
		{"unhost", "Have agents let processes be",
			"Have agents no longer care for processes. What runs goes on running, what dies stays dead."},
	}
}

const exitHelp = `

Waits for every host, with progress on stderr, and ends with a table of what failed. Ctrl-C leaves the task running.

Exit code: 0 done everywhere, 1 failed, 4 not allowed, 5 nothing fits, 6 failed on some hosts, 7 not done within --timeout, 130 left by Ctrl-C.`

// newOperateCommands are `gozzard start`, `stop` and so on.
func newOperateCommands(env *cliEnv) []*cobra.Command {
	var cmds []*cobra.Command
	for _, v := range verbs() {
		var o operateOptions
		cmd := &cobra.Command{
			Use:   v.action + " [NAME...]",
			Short: v.short,
			Long:  v.long + scopeHelp + exitHelp,
			Example: "  gozzard " + v.action + " web -n shop --all-hosts\n" +
				"  gozzard " + v.action + " web worker -n shop --host 10.0.0.1 --host 0:10.0.0.2\n" +
				"  gozzard " + v.action + " 'game-*' --all-hosts --wait-offline 1h --detach\n" +
				"  gozzard " + v.action + " --biz 2 -e 'front.*.*.nginx.*'",
			ValidArgsFunction: env.completeNames,
			RunE: func(cmd *cobra.Command, names []string) error {
				return env.operate(cmd.Context(), v.action, &o, names)
			},
		}
		o.targetFlags.register(cmd.Flags())
		o.taskFlags.register(cmd)
		cmd.Flags().DurationVar(&o.waitOffline, "wait-offline", 0,
			"wait that long for hosts that are offline, such as 1h (default: they fail at once)")
		if v.action == "stop" || v.action == "kill" || v.action == "restart" {
			cmd.Flags().IntVar(&o.confirm, "confirm", 0,
				"the `NUMBER` of processes that are meant; the server wants it for many of them and says how many there are")
		}
		cmds = append(cmds, cmd)
	}

	return cmds
}

func (env *cliEnv) operate(ctx context.Context, action string, o *operateOptions, names []string) error {
	return o.run(ctx, env, &o.taskFlags, action, names,
		func(c *client.Client, s client.Selection) (client.Accepted, error) {
			return c.Operate(ctx, client.Operation{Action: action, Selection: s,
				Offline: client.Offline{Wait: o.waitOffline}, Confirm: o.confirm})
		})
}

// newUnregisterCommand is `gozzard unregister`.
func newUnregisterCommand(env *cliEnv) *cobra.Command {
	var o operateOptions
	cmd := &cobra.Command{
		Use:   "unregister [NAME...]",
		Short: "Have hosts forget processes",
		Long: "Have hosts forget processes. What runs goes on running, unwatched: stop it first if it should not." +
			scopeHelp + exitHelp,
		Example: `  gozzard unregister web -n shop --all-hosts
  gozzard unregister web -n shop --host 10.0.0.1
  gozzard unregister --biz 2 --module web`,
		ValidArgsFunction: env.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd.Context(), env, &o.taskFlags, "unregister", names,
				func(c *client.Client, s client.Selection) (client.Accepted, error) {
					return c.Unregister(cmd.Context(), s)
				})
		},
	}

	o.targetFlags.register(cmd.Flags())
	o.taskFlags.register(cmd)
	return cmd
}
