package main

import (
	"context"

	"github.com/gozzard/gozzard/client"
)

// cancelTask cancels the attempts of a task that were not sent to their hosts, and says what became of all of them.
func (env *cliEnv) cancelTask(ctx context.Context, o *taskOptions, given string) error {
	// Check the arguments.
	id, err := taskArgument(given)
	if err != nil {
		return err
	}
	if err := o.output.check(); err != nil {
		return err
	}

	// Cancel.
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	done, err := c.Cancel(ctx, id)
	if err != nil {
		return withExitCode(err)
	}

	return env.printCancelled(o, &done)
}

// printCancelled prints what became of the attempts of a task. Attempts that go on are named with the command that follows them.
func (env *cliEnv) printCancelled(o *taskOptions, done *client.Cancelled) error {
	if o.output.structured() {
		return o.output.write(env.out, done)
	}
	err := env.say("task %s: %d cancelled, %d sent before and not ended, %d ended before\n",
		printable(shortTask(done.TaskID)), done.Cancelled, done.Running, done.Ended)
	if err == nil && done.Running > 0 {
		env.remark("what was sent is carried out as a whole: follow it with gozzard task %s", printable(shortTask(done.TaskID)))
	}
	return err
}
