package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// taskFlags are the flags of commands that wait for a task.
type taskFlags struct {
	detach  bool
	timeout time.Duration
	output  outputFlag
	note    string // is added to the summary, in brackets
	noGroup bool
}

func (t *taskFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&t.detach, "detach", false, "print the task id and do not wait")
	f.DurationVar(&t.timeout, "timeout", 0,
		"wait at most this long, such as 30s; the task continues (default: until it is done, or waits only for hosts that "+
			"went offline)")
	f.BoolVar(&t.noGroup, "no-group", false, "list every failure, also many with the same reason")
	t.output.register(cmd, f, "table", "json", "yaml")
}

// operateOptions are the flags of `gozzard start`, `stop` and so on.
type operateOptions struct {
	targetFlags
	taskFlags
	waitOffline time.Duration
	confirm     int
	preview     bool
}

// registerPreview adds the flag --dry-run.
func (o *operateOptions) registerPreview(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.preview, "dry-run", false, "list the processes that would be touched, and do nothing")
}

// registerConfirm adds the flag of actions that end, interrupt or leave processes.
func (o *operateOptions) registerConfirm(cmd *cobra.Command) {
	cmd.Flags().IntVar(&o.confirm, "confirm", 0, "the `NUMBER` of processes that you expect; the server asks for it when "+
		"there are many, and says how many there are")
}

// verb is an action with its help, and the word that earlier versions had for it.
type verb struct {
	action, short, long, former string
}

// operateVerbs are the actions that operate processes.
func operateVerbs() []verb {
	return []verb{
		{"start", "Start processes and supervise them",
			`Run the start command of processes and check that they stay up. From then on the agents restart them
when they exit. Processes that are already running are not touched; they are supervised from then on
too.`, ""},
		{"stop", "Stop processes and stop supervising them",
			`Run the stop command of processes and check that they are gone. The agents do not restart them.
Processes that are not running are not touched.`, ""},
		{"restart", "Restart processes",
			"Run the restart command of processes, or stop and start if there is none, and check that they stay up.", ""},
		{"reload", "Reload the configuration of processes", "Run the reload command of processes.", ""},
		{"kill", "Kill processes",
			"Run the kill command of processes, or send SIGKILL if there is none, and check that they are gone.\n" +
				"The agents do not restart them.", ""},
		{"manage", "Supervise processes",
			"Supervise processes: the agents start them if they are not running, and restart them when they exit.", "host"},
		{"unmanage", "Stop supervising processes (they keep running)",
			"Stop supervising processes. Running processes keep running. Processes that exit are not restarted.", "unhost"},
	}
}

// exitHelp is the end of the help of commands that wait for a task.
const exitHelp = `

The command waits for every host, shows progress on stderr, and ends with a table of failures and the
task id. More than 10 failures are grouped by their reason. Hosts that go offline during the operation
are waited for at most 10 seconds, unless --timeout is given: their verdict is unknown until they are
back. Ctrl-C ends the wait. In both cases the task continues: "gozzard task ID" follows it, and
"gozzard task ID --retry-failed" repeats what failed.

Exit code: 0 done everywhere, 1 failed, 4 not allowed, 5 nothing matched, 6 failed on some hosts, 7
not done within --timeout or before a host went offline, 130 ended by Ctrl-C.`

// newOperateCommands are `gozzard start`, `stop` and so on. The words of earlier versions are commands that the help
// does not list.
func newOperateCommands(env *cliEnv) []*cobra.Command {
	var cmds []*cobra.Command
	for _, v := range operateVerbs() {
		cmds = append(cmds, newOperateCommand(env, v, v.action))
		if v.former != "" {
			cmd := newOperateCommand(env, v, v.former)
			cmd.Hidden = true
			cmds = append(cmds, cmd)
		}
	}
	return cmds
}

// newOperateCommand is the command of an action, under one of its words.
func newOperateCommand(env *cliEnv, v verb, word string) *cobra.Command {
	var o operateOptions
	cmd := &cobra.Command{
		Use:   word + " [NAME...]",
		Short: v.short,
		Long:  v.long + scopeHelp + exitHelp,
		Example: "  gozzard " + v.action + " web\n" +
			"  gozzard " + v.action + " web -n shop --all-hosts\n" +
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
		"wait this long for hosts that are offline, such as 1h (default: they fail at once)")
	o.registerPreview(cmd)
	if v.action != "start" && v.action != "manage" {
		o.registerConfirm(cmd)
	}

	return cmd
}

// operate sends an operation and waits for its task.
func (env *cliEnv) operate(ctx context.Context, action string, o *operateOptions, names []string) error {
	if o.preview {
		return o.dryRun(ctx, env, &o.output, action, names,
			func(c *client.Client, s client.Selection) (client.Preview, error) {
				return c.Preview(ctx, client.Operation{Action: action, Selection: s,
					Offline: client.Offline{Wait: o.waitOffline}})
			})
	}
	return o.run(ctx, env, &o.taskFlags, action, names,
		func(c *client.Client, s client.Selection) (client.Accepted, error) {
			return c.Operate(ctx, client.Operation{Action: action, Selection: s,
				Offline: client.Offline{Wait: o.waitOffline}, Confirm: o.confirm})
		})
}
