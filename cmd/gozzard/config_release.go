package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
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
file stays released.` + configWriteHelp,
		Example: `  gozzard config release nginx
  gozzard config release nginx --module web
  gozzard config release nginx limits --env formal --confirm 1200
  gozzard config release nginx -e 'front.*.*.nginx.*' --force
  gozzard config release nginx --then reload`,
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

	r.Work, r.Confirm, r.Then = "release", o.confirm, o.then
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
	return env.printConfigJob(o, &job)
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
			return o.with(cmd.Context(), env, args, func(c *client.Client, r client.ConfigJobRequest, _ []client.ConfigTemplate) error {
				r.Work, r.Version, r.Confirm, r.Then = "rollback", version, o.confirm, o.then
				return env.writeConfigs(cmd.Context(), c, &o, r)
			})
		},
	}
	o.registerWrite(cmd)
	cmd.Flags().Int64Var(&version, "version", 0, "`VERSION` of the template, as \"gozzard config show\" lists it (required)")
	return cmd
}

// configJob starts a job, waits for its end and shows its progress on stderr. Its error has the exit code.
func (env *cliEnv) configJob(ctx context.Context, c *client.Client, o *configJobOptions, r client.ConfigJobRequest) (
	job client.ConfigJobDetail, err error) {
	made, err := c.CreateConfigJob(ctx, r)
	if err != nil {
		return job, env.printFaults(err)
	}

	wait, cancel := context.WithCancel(ctx)
	if o.timeout > 0 {
		wait, cancel = context.WithTimeout(ctx, o.timeout)
	}
	defer cancel()
	p := &progress{env: env, what: r.Work}
	defer p.clear()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		if job, err = c.ConfigJob(wait, r.Biz, made.ID); err == nil {
			p.show(client.Task{Counts: configCounts(&job), Final: job.Done()})
			if job.Done() {
				break
			}
		}
		select {
		case <-wait.Done():
			err = wait.Err()
		case <-time.After(pause):
		}
		if err != nil {
			return job, env.notWaited(ctx, o, made.ID, err)
		}
	}
	if len(job.List) == 0 {
		return job, &exitError{exitNoMatch, errors.New("no process instance that you may see fits: the template is bound to none of them")}
	}
	return job, nil
}

// notWaited says how to follow a job whose end was not awaited. The result has the exit code.
func (env *cliEnv) notWaited(ctx context.Context, o *configJobOptions, id int64, err error) error {
	again := "gozzard config history " + strconv.FormatInt(id, 10)
	switch {
	case ctx.Err() != nil:
		env.remark("the job continues; follow it with: %s", again)
		return &exitError{exitDetached, nil}
	case errors.Is(err, context.DeadlineExceeded):
		env.remark("not done within %s; the job continues; follow it with: %s", o.timeout, again)
		return &exitError{exitTimedOut, nil}
	}
	env.remark("the job continues; follow it with: %s", again)
	return withExitCode(err)
}

// configCounts counts the instances of a job. Those without a file count as done.
func configCounts(job *client.ConfigJobDetail) client.Counts {
	n := client.Counts{Targets: len(job.List), Done: job.Tasks["succeeded"] + job.Tasks["ignored"], Failed: job.Tasks["failed"]}
	n.Running = n.Targets - n.Done - n.Failed
	return n
}

// printConfigJob prints a line for each instance of a job, and its counts. Its error is the exit code.
func (env *cliEnv) printConfigJob(o *configJobOptions, job *client.ConfigJobDetail) error {
	n := configCounts(job)
	if o.output.structured() {
		if err := o.output.write(env.out, job); err != nil {
			return err
		}
		return configExitCode(n)
	}

	if err := env.configTable(job).write(env.out); err != nil {
		return err
	}
	line := env.text("%s: %d done", job.Work, n.Done)
	if n.Failed > 0 {
		line += env.text(", %d failed", n.Failed)
	}
	if n.Running > 0 {
		line += env.text(", %d running", n.Running)
	}
	line += env.text(" of %d", n.Targets) + env.text("\njob %d", job.ID)
	if err := checkWrite(fmt.Fprintln(env.out, line)); err != nil {
		return err
	}
	return configExitCode(n)
}

// configTable has a line for each instance, or for each that failed of many.
func (env *cliEnv) configTable(job *client.ConfigJobDetail) *textTable {
	t := newTable("HOST", "NAME", "PROCESS", "INSTANCE", "STATE", "MESSAGE")
	for i := range job.List {
		x := &job.List[i]
		if len(job.List) > maxAttempts && x.State == "succeeded" {
			continue
		}
		text := env.said(x.Message)
		if text == "" && x.State == "succeeded" {
			var paths []string
			changed := false
			for _, f := range x.Files {
				paths, changed = append(paths, path.Clean(f.Path)), changed || f.Changed
			}
			if text = strings.Join(paths, " "); changed && job.Then != "" {
				text += ", " + job.Then
			}
		}
		if text == "" || x.Reason != "" && x.Reason != "config_write" {
			text = strings.TrimSpace(x.Reason + " " + text)
		}
		t.add(refName(x.Host), x.Name, strconv.Itoa(x.Process), strconv.Itoa(x.Instance), x.State, text)
	}
	return t
}

func configExitCode(n client.Counts) error {
	switch {
	case n.Failed == 0:
		return nil
	case n.Done > 0:
		return &exitError{exitPartly, nil}
	}
	return &exitError{exitFailed, nil}
}
