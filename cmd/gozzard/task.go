package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/taskname"
)

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
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.showTask(cmd.Context(), &o, args[0])
		},
	}

	o.taskFlags.register(cmd)
	cmd.Flags().Lookup("detach").Usage = "show the present state and do not wait"
	return cmd
}

// showTask takes the id with the prefix that answers have, or without it. Servers of earlier versions know only the
// first form, so that is what it sends.
func (env *cliEnv) showTask(ctx context.Context, o *taskOptions, given string) error {
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
	t, err := c.Task(ctx, id, 0, client.ShowAll)
	if err != nil {
		return served(err)
	}
	if !t.Final && !o.detach {
		if t, err = env.follow(ctx, c, &o.taskFlags, taskWord(&t), id); err != nil {
			return err
		}
	}

	if o.output.structured() {
		return env.tellEnd(&o.taskFlags, "", &t)
	}
	if err := env.attemptTable(&t).write(env.out); err != nil {
		return err
	}
	if err := written(fmt.Fprintln(env.out, summary(taskWord(&t), &t))); err != nil {
		return err
	}

	return verdictCode(&t.Counts)
}

// attemptTable lists all that came of a task.
func (env *cliEnv) attemptTable(t *client.Task) *sheet {
	table := newTable("HOST", "NAMESPACE", "NAME", "ACTION", "VERDICT", "CODE", "MESSAGE")
	for i := range t.Attempts {
		a := &t.Attempts[i]
		table.add(hostName(a.Host.Cloud, a.Host.IP, string(a.Host.Agent)), a.Namespace, a.Name, a.Action,
			string(a.Verdict), codeWord(a), a.Message)
	}
	return table
}

// taskWord names a task by its action where it has one only.
func taskWord(t *client.Task) string {
	word := "task"
	for i := range t.Attempts {
		if i > 0 && t.Attempts[i].Action != word {
			return "task"
		}
		word = t.Attempts[i].Action
	}
	return printable(word)
}
