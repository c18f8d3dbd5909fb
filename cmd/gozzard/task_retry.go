package main

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// retryTask repeats the failed attempts of a task as a new task, and waits for it.
func (env *cliEnv) retryTask(ctx context.Context, o *taskOptions, given string) error {
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

	// Say what is not repeated.
	t, err := c.WholeTask(ctx, id)
	if err != nil {
		return withExitCode(err)
	}
	env.remarkNotRepeated(&t)

	// Repeat the rest.
	r := client.Retry{TaskID: id, Confirm: o.confirm, Offline: client.Offline{Wait: o.waitOffline}}
	if o.preview {
		p, err := c.PreviewRetry(ctx, r)
		if err != nil {
			return withExitCode(err)
		}
		return env.printPreview(&o.output, "retry of "+shortTask(id), &p)
	}
	a, err := c.Retry(ctx, r)
	if err != nil {
		return withExitCode(err)
	}

	return env.followRetry(ctx, c, o, id, a)
}

// remarkNotRepeated says which attempts of a task a retry leaves out, apart from those that are done.
func (env *cliEnv) remarkNotRepeated(t *client.Task) {
	superseded := 0
	for i := range t.Attempts {
		if a := &t.Attempts[i]; a.Verdict == client.Failed && a.Code == gozzard.CodeSuperseded {
			superseded++
		}
	}
	if superseded > 0 {
		env.remark("not repeated: %d that a newer operation replaced", superseded)
	}
	if t.Counts.Running > 0 {
		env.remark("not repeated: %d that are still running", t.Counts.Running)
	}
}

// followRetry waits for the new task of a retry and prints it.
func (env *cliEnv) followRetry(ctx context.Context, c *client.Client, o *taskOptions, of string, a client.Accepted) error {
	if a.TaskID == "" {
		if o.output.structured() {
			return o.output.write(env.out, a)
		}
		return env.say("nothing to repeat: no attempt of task %s failed\n", printable(shortTask(of)))
	}

	if o.detach {
		return env.printAccepted(&o.taskFlags, a)
	}
	env.remark("repeating %d of task %s as task %s", a.Targets, printable(shortTask(of)), printable(shortTask(a.TaskID)))
	t, err := env.waitForTask(ctx, c, &o.taskFlags, "retry", a.TaskID)
	if err != nil {
		return err
	}
	return env.printTask(&o.taskFlags, taskText(&t), &t)
}
