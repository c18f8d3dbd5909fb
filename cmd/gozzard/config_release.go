package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// configWriteHelp is the end of the help of verbs that write files.
const configWriteHelp = `

It is about every process instance that the template is bound to, or about some of them by --set,
--module, --env or -e; "gozzard start --help" explains expressions.

The command waits for every host, shows progress on stderr, and prints a line for each process
instance (of more than 100, only failures) and the number of the job. Ctrl-C ends the wait; the job
continues: "gozzard config history JOB" shows it.

Exit code: 0 done everywhere, 1 failed, 2 wrong or not confirmed, 4 not allowed, 5 nothing matched, 6
failed for some instances, 7 not done within --timeout, 130 ended by Ctrl-C.`

// configActions are what can follow a release.
var configActions = []string{"reload", "restart"}

// configJobOptions are the flags of verbs that work on the files of process instances.
type configJobOptions struct {
	scopeFlags
	output  outputFlag
	force   bool
	then    string
	rollout client.Rollout
	watch   time.Duration
	confirm int
	detach  bool
	timeout time.Duration
}

func (o *configJobOptions) registerScope(cmd *cobra.Command) {
	o.scopeFlags.register(cmd.Flags())
}

// registerWrite adds the flags of verbs that write files.
func (o *configJobOptions) registerWrite(cmd *cobra.Command) {
	o.registerScope(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.force, "force", false, "also replace files that were changed by hand on their hosts")
	f.StringVar(&o.then, "then", "", "`ACTION` for process instances that get another file: reload or restart")
	completeFixed(cmd, "then", configActions...)
	f.IntVar(&o.rollout.Batch, "batch", 0, "write to this `NUMBER` of hosts at a time; 0, the default, writes to all at once")
	f.DurationVar(&o.watch, "watch", 0, "with --batch: watch the processes of each batch this long, such as 30s, before the next")
	f.IntVar(&o.rollout.MaxFailed, "max-failed", 0, "with --batch: stop when more than this `NUMBER` of process instances has failed")
	f.IntVar(&o.confirm, "confirm", 0, "the `NUMBER` of process instances that you expect; the server asks for it when there are "+
		"many, and says how many there are")
	f.BoolVar(&o.detach, "detach", false, "print the number of the job and do not wait")
	f.DurationVar(&o.timeout, "timeout", 0, "wait at most this long, such as 30s; the job continues (default: until it is done)")
	o.output.register(cmd, f, "table", "json", "yaml")
}

// with runs f with templates that are found by name or id, and the processes of the flags.
func (o *configJobOptions) with(ctx context.Context, env *cliEnv, named []string,
	f func(*client.Client, client.ConfigJobRequest, []client.ConfigTemplate) error) error {
	if err := o.output.check(); err != nil {
		return err
	}
	if o.then != "" && !slices.Contains(configActions, o.then) {
		return usage("--then %q: use %s", printable(o.then), words(configActions))
	}
	if err := o.checkRollout(); err != nil {
		return err
	}
	return env.withClient(func(c *client.Client) error {
		s := o.scopeFlags
		if !s.narrows() {
			s.expression = "*.*.*.*.*"
		}
		scope, err := s.scope(ctx, c)
		if err != nil {
			return err
		}

		r := client.ConfigJobRequest{BusinessSelection: scope, Force: o.force}
		var list []client.ConfigTemplate
		for _, name := range named {
			t, err := findConfig(ctx, c, scope.Biz, name)
			if err != nil {
				return err
			}
			list, r.Templates = append(list, t), append(r.Templates, t.ID)
		}
		return f(c, r, list)
	})
}

// checkRollout checks the flags of a rollout.
func (o *configJobOptions) checkRollout() error {
	r := &o.rollout
	switch {
	case r.Batch < 0 || r.MaxFailed < 0:
		return usage("--batch and --max-failed cannot be negative")
	case r.Batch == 0 && (o.watch != 0 || r.MaxFailed != 0):
		return usage("--watch and --max-failed need --batch: how many hosts at a time")
	case o.watch < 0 || o.watch > time.Hour || o.watch%time.Second != 0:
		return usage("--watch %s: use whole seconds, at most 1h", o.watch)
	}
	r.Watch = int(o.watch / time.Second)
	return nil
}

// write completes a request that writes files.
func (o *configJobOptions) write(r *client.ConfigJobRequest) {
	r.Confirm, r.Then = o.confirm, o.then
	if o.rollout.Batch > 0 {
		r.Rollout = &o.rollout
	}
}

// newConfigReleaseCommand is `gozzard config release`.
func newConfigReleaseCommand(env *cliEnv) *cobra.Command {
	var o configJobOptions
	cmd := &cobra.Command{
		Use:   "release TEMPLATE...",
		Short: "Render the files of templates and write them to hosts",
		Long: `Render the files of templates for process instances, and write them to their hosts. If one cannot be
rendered, none is written. Each file is replaced in one step, and the host keeps its former content.
A file that was changed by hand since the last release is not replaced: that instance fails, and
"gozzard config diff" shows the change. --force replaces it.

With --then, process instances whose file has really changed are reloaded or restarted afterwards, if
all their files were written. You need the right to do that. If it fails, the instance has failed; its
file stays released.

With --batch, the release is a rollout: files are written to that many hosts, with what should follow,
then to the next ones. With --watch, processes that got another file are looked at twice, this long
apart: one that does not run any more, was started again or is not healthy has failed. When more than
--max-failed instances have failed, the rest of the hosts is left as it is. "gozzard config stop" does
the same by hand.` + configWriteHelp,
		Example: `  gozzard config release nginx
  gozzard config release nginx --module web
  gozzard config release nginx limits --env formal --confirm 1200
  gozzard config release nginx -e 'front.*.*.nginx.*' --force
  gozzard config release nginx --then reload
  gozzard config release nginx --then restart --batch 10 --watch 30s --max-failed 2`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.with(cmd.Context(), env, args, func(c *client.Client, r client.ConfigJobRequest, _ []client.ConfigTemplate) error {
				return env.releaseConfigs(cmd.Context(), c, &o, r)
			})
		},
	}
	o.registerWrite(cmd)
	return cmd
}

// releaseConfigs renders files and writes them. Its error has the exit code.
func (env *cliEnv) releaseConfigs(ctx context.Context, c *client.Client, o *configJobOptions, r client.ConfigJobRequest) error {
	// What cannot be rendered must not be released as it was rendered before.
	generate := r
	generate.Work, generate.Force = "generate", false
	made, err := env.configJob(ctx, c, o, generate)
	if err != nil {
		return err
	}
	if made.State != "succeeded" {
		if err := env.printConfigJob(o, &made); err == nil {
			return &exitError{exitFailed, errors.New(made.Message)}
		}
		env.remark("not every file could be rendered: nothing was written to a host")
		return &exitError{exitFailed, nil}
	}

	r.Work = "release"
	o.write(&r)
	return env.writeConfigs(ctx, c, o, r)
}

// writeConfigs starts a job that writes files, waits for it and prints it. Its error has the exit code.
func (env *cliEnv) writeConfigs(ctx context.Context, c *client.Client, o *configJobOptions, r client.ConfigJobRequest) error {
	if o.detach {
		job, err := c.CreateConfigJob(ctx, r)
		if err != nil {
			return env.printFaults(err)
		}
		if o.output.structured() {
			return o.output.write(env.out, job)
		}
		env.remark("accepted; follow it with: gozzard config history %d", job.ID)
		return checkWrite(fmt.Fprintln(env.out, job.ID))
	}

	job, err := env.configJob(ctx, c, o, r)
	if err != nil {
		return err
	}
	err = env.printConfigJob(o, &job)
	if !o.output.structured() {
		env.remarkReleased(&job)
	}
	return err
}

// remarkActive says which version the next release writes, if a rollback has written another one.
func (env *cliEnv) remarkActive(ctx context.Context, c *client.Client, biz int, chosen []client.ConfigTemplate, written int64) {
	for i := range chosen {
		t, err := c.ConfigTemplate(ctx, biz, chosen[i].ID)
		if err != nil {
			continue // the rollback itself is done
		}
		for _, v := range t.Versions {
			if v.State == "active" && v.ID != written {
				env.remark("warning: the active version of %s is still %d, and the next release writes it again. To keep version %d, change the "+
					"content back and run: gozzard config apply -f FILE", printable(t.Name), v.ID, written)
			}
		}
	}
}

// newConfigRollbackCommand is `gozzard config rollback`.
func newConfigRollbackCommand(env *cliEnv) *cobra.Command {
	var o configJobOptions
	var version int64
	cmd := &cobra.Command{
		Use:   "rollback TEMPLATE --version VERSION",
		Short: "Write the files again that were released with an earlier version",
		Long: `Write the files again that were released with an earlier version of the template, byte by byte.
Instances that never had a file of that version fail. The active version stays as it is: apply the
earlier content, or the next release writes the new one again. "gozzard config show" lists the
versions. A file that was changed by hand is not replaced, unless you give --force.` + configWriteHelp,
		Example: `  gozzard config rollback nginx --version 3
  gozzard config rollback nginx --version 3 --module web`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if version < 1 {
				return usage("--version is required: a version of the template, see gozzard config show")
			}
			return o.with(cmd.Context(), env, args, func(c *client.Client, r client.ConfigJobRequest, chosen []client.ConfigTemplate) error {
				r.Work, r.Version = "rollback", version
				o.write(&r)
				err := env.writeConfigs(cmd.Context(), c, &o, r)
				var ended *exitError
				if err != nil && (!errors.As(err, &ended) || ended.err != nil) { // nothing was written
					return err
				}
				env.remarkActive(cmd.Context(), c, r.Biz, chosen, version)
				return err
			})
		},
	}
	o.registerWrite(cmd)
	cmd.Flags().Int64Var(&version, "version", 0, "`VERSION` of the template, as \"gozzard config show\" lists it (required)")
	return cmd
}
