package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/taskname"
)

// taskOptions are the flags of `gozzard task`.
type taskOptions struct {
	taskFlags
	retry       bool
	cancel      bool
	confirm     int
	preview     bool
	waitOffline time.Duration
}

// newTaskCommand is `gozzard task`.
func newTaskCommand(env *cliEnv) *cobra.Command {
	var o taskOptions
	cmd := &cobra.Command{
		Use:   "task ID",
		Short: "Follow a task until it is done, repeat what failed, or cancel what waits",
		Long: `Follow a task that the same app started before, and list the verdict of each target. Of a task with
more than 100 targets only failures are listed. "gozzard tasks" lists the newest tasks.

With --retry-failed the failed attempts are repeated as a new task: the same actions on the same
processes and hosts. Attempts that are running, or that a newer operation replaced, are not repeated. A
registration brings its definition again; other actions use the definition that is registered now. The
server checks rights and confirmations as for a new operation.

"interrupted" counts as failed: the agent ended in the middle, and the operation was carried out once or
not at all. Nothing repeats such an operation on its own; whether a second time does harm is your
decision.

With --cancel the operations that were not sent to their hosts, such as those that wait for hosts that
are offline, are cancelled: they get the code "cancelled" and are never carried out. What was sent is
carried out as a whole. You need the right for the operation itself.` + exitHelp,
		Example: `  gozzard task 20240102030405:17
  gozzard task 20240102030405:17 --detach             # show it as it is now, without waiting
  gozzard task 20240102030405:17 -o json
  gozzard task 20240102030405:17 --retry-failed --dry-run
  gozzard task 20240102030405:17 --retry-failed
  gozzard task 20240102030405:17 --cancel`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.completeTasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.cancel && (o.retry || o.detach) {
				return usage("--cancel goes with neither --retry-failed nor --detach")
			}
			if o.retry {
				return env.retryTask(cmd.Context(), &o, args[0])
			}
			if o.preview || o.confirm != 0 || o.waitOffline != 0 {
				return usage("--dry-run, --confirm and --wait-offline are for --retry-failed")
			}
			if o.cancel {
				return env.cancelTask(cmd.Context(), &o, args[0])
			}
			return env.showTask(cmd.Context(), &o, args[0])
		},
	}

	f := cmd.Flags()
	f.BoolVar(&o.retry, "retry-failed", false, "repeat the failed attempts as a new task")
	f.BoolVar(&o.cancel, "cancel", false, "cancel what was not sent to its host")
	f.BoolVar(&o.preview, "dry-run", false, "with --retry-failed: list what would be repeated, and do nothing")
	f.IntVar(&o.confirm, "confirm", 0, "with --retry-failed: the `NUMBER` of processes that you expect; the server asks for "+
		"it when there are many")
	f.DurationVar(&o.waitOffline, "wait-offline", 0,
		"with --retry-failed: wait this long for hosts that are offline, such as 1h (default: they fail at once)")
	o.taskFlags.register(cmd)
	cmd.Flags().Lookup("detach").Usage = "show the present state and do not wait; with --retry-failed, print the new task id"
	return cmd
}

// showTask follows a task and prints the verdict of each target. The id may be given with the prefix that answers
// have, or without it. Servers of earlier versions know the form with the prefix only, so that is what it sends.
func (env *cliEnv) showTask(ctx context.Context, o *taskOptions, given string) error {
	// Check the arguments.
	id, err := taskArgument(given)
	if err != nil {
		return err
	}
	if err := o.output.check(); err != nil {
		return err
	}

	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	// Read the task, and wait for its end.
	t, err := c.WholeTask(ctx, id)
	if err != nil {
		return withExitCode(err)
	}
	if !t.Final && !o.detach {
		if t, err = env.waitForTask(ctx, c, &o.taskFlags, taskText(&t), id); err != nil {
			return err
		}
	}

	// Print it.
	if o.output.structured() {
		return env.printTask(&o.taskFlags, "", &t)
	}
	showNames(ctx, c, &t)
	if len(t.Attempts) > maxAttempts && !o.noGroup {
		if len(t.Attempts) > t.Counts.Failed {
			env.remark("%d targets: only failures are listed; --no-group or -o json lists all", len(t.Attempts))
		}
		return env.printTask(&o.taskFlags, taskText(&t), &t)
	}
	if err := env.attemptTable(&t).write(env.out); err != nil {
		return err
	}

	return env.printSummary(&o.taskFlags, taskText(&t), &t)
}

// maxAttempts is how many attempts of a task are listed one by one.
const maxAttempts = 100

// taskArgument reads a task id with its prefix or without it. The result has the prefix.
func taskArgument(given string) (string, error) {
	id := taskname.Parse(given)
	if _, ok := id.Seq(); !ok {
		return "", usage("%q is not a task id, such as 20240102030405:17; see gozzard tasks", printable(given))
	}
	return taskname.Of(id), nil
}

// attemptTable is the table of all attempts of a task.
func (env *cliEnv) attemptTable(t *client.Task) *textTable {
	table := newTable("HOST", "NAMESPACE", "NAME", "ACTION", "VERDICT", "CODE", "MESSAGE")
	for i := range t.Attempts {
		a := &t.Attempts[i]
		table.add(refName(a.Host), a.Namespace, a.Name, a.Action,
			string(a.Verdict), codeText(a), env.said(a.Message))
	}
	return table
}

// taskText is the action of a task, or "task" if it has several.
func taskText(t *client.Task) string {
	word := "task"
	for i := range t.Attempts {
		if i > 0 && t.Attempts[i].Action != word {
			return "task"
		}
		word = t.Attempts[i].Action
	}
	return printable(word)
}
