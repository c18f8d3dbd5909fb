package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/taskname"
)

// taskOptions are the flags of `gozzard task`.
type taskOptions struct {
	taskFlags
}

// newTaskCommand is `gozzard task`.
func newTaskCommand(env *cliEnv) *cobra.Command {
	var o taskOptions
	cmd := &cobra.Command{
		Use:   "task ID",
		Short: "Follow a task until it is done",
		Long:  "Follow a task that the same app started before, and list the verdict of each target." + exitHelp,
		Example: `  gozzard task 20240102030405:17
  gozzard task 20240102030405:17 --detach             how it is now, without waiting
  gozzard task 20240102030405:17 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.completeTasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.showTask(cmd.Context(), &o, args[0])
		},
	}

	o.taskFlags.register(cmd)
	cmd.Flags().Lookup("detach").Usage = "show the present state and do not wait"
	return cmd
}

// showTask follows a task and prints the verdict of each target. The id may be given with the prefix that answers
// have, or without it. Servers of earlier versions know the form with the prefix only, so that is what it sends.
func (env *cliEnv) showTask(ctx context.Context, o *taskOptions, given string) error {
	// Check the arguments.
	if _, ok := taskname.Parse(given).Seq(); !ok {
		return usage("%q is not a task id, such as 20240102030405:17", printable(given))
	}

	id := taskname.Of(taskname.Parse(given))
	if err := o.output.check(); err != nil {
		return err
	}

	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	// Read the task, and wait for its end.
	t, err := c.Task(ctx, id, 0, client.ShowAll)
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
	if err := env.attemptTable(&t).write(env.out); err != nil {
		return err
	}
	if err := checkWrite(fmt.Fprintln(env.out, summary(taskText(&t), &t))); err != nil {
		return err
	}

	return taskExitCode(&t.Counts)
}

// attemptTable is the table of all attempts of a task.
func (env *cliEnv) attemptTable(t *client.Task) *textTable {
	table := newTable("HOST", "NAMESPACE", "NAME", "ACTION", "VERDICT", "CODE", "MESSAGE")
	for i := range t.Attempts {
		a := &t.Attempts[i]
		table.add(refName(a.Host), a.Namespace, a.Name, a.Action,
			string(a.Verdict), codeText(a), a.Message)
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
