package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newConfigHistoryCommand is `gozzard config history`.
func newConfigHistoryCommand(env *cliEnv) *cobra.Command {
	var o configOptions
	limit, template, all := 20, "", false
	cmd := &cobra.Command{
		Use:   "history [JOB]",
		Short: "List what was released, compared and rolled back, or show one job",
		Long: `List the releases and rollbacks of a business, the newest first, also those of other people and of
GSEKit's pages. With --all, comparisons and renders are listed, too. With the number of a job, show the
state of each process instance. With --template only jobs on that template are listed, and those on all.

Exit code of one job: 0 done everywhere, 1 failed, 5 there is none, 6 failed for some instances, 7 not
done yet.`,
		Example: `  gozzard config history
  gozzard config history --template nginx
  gozzard config history 17`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > client.MaxPage {
				return usage("--limit %d: use 1 to %d", limit, client.MaxPage)
			}
			if len(args) > 0 && template != "" {
				return usage("--template is for the list of jobs, not for one job")
			}
			return o.with(cmd.Context(), env, func(c *client.Client, biz int) error {
				if len(args) == 0 {
					return env.listConfigJobs(cmd.Context(), c, &o, biz, template, limit, all)
				}
				return env.showConfigJob(cmd.Context(), c, &o, biz, args[0])
			})
		},
	}
	o.register(cmd, "table", "json", "yaml")
	cmd.Flags().IntVar(&limit, "limit", limit, "list at most this many jobs")
	cmd.Flags().BoolVar(&all, "all", false, "also list comparisons and renders, which change no host")
	cmd.Flags().StringVar(&template, "template", "", "list only jobs on this `TEMPLATE`, by its name or id")
	return cmd
}

// listConfigJobs prints the newest jobs of a business.
func (env *cliEnv) listConfigJobs(ctx context.Context, c *client.Client, o *configOptions, biz int, template string, limit int, all bool) error {
	var only client.ConfigTemplate
	if template != "" {
		var err error
		if only, err = findConfig(ctx, c, biz, template); err != nil {
			return err
		}
	}
	page, err := newestConfigJobs(ctx, c, biz, only.ID, limit, all)
	if err != nil {
		return err
	}
	if o.output.structured() {
		return o.output.write(env.out, page)
	}
	list, err := c.ConfigTemplates(ctx, biz)
	if err != nil {
		return err
	}
	names := map[int64]string{}
	for _, t := range list.Templates {
		names[t.ID] = t.Name
	}

	t := newTable("JOB", "STARTED", "WORK", "TEMPLATES", "VERSION", "STATE", "USER", "APP")
	for _, j := range page.Jobs {
		var of []string
		for _, id := range j.Templates {
			name := names[id]
			if name == "" {
				name = fmt.Sprint(id)
			}
			of = append(of, name)
		}
		version := ""
		if j.Version != 0 {
			version = fmt.Sprint(j.Version)
		}
		t.add(strconv.FormatInt(j.ID, 10), j.Started.Local().Format(time.DateTime), j.Work, strings.Join(of, " "), version, j.State, j.User, j.App)
	}
	return t.write(env.out)
}

// newestConfigJobs reads the newest jobs: all, or those that write files.
func newestConfigJobs(ctx context.Context, c *client.Client, biz int, template int64, limit int, all bool) (client.ConfigJobs, error) {
	page, err := c.ConfigJobs(ctx, biz, template, 0, limit)
	if err != nil || all {
		return page, err
	}
	reads := func(j client.ConfigJob) bool { return j.Work == "generate" || j.Work == "diff" }
	list := slices.DeleteFunc(slices.Clone(page.Jobs), reads)
	for start := len(page.Jobs); len(list) < limit && start < page.Count; {
		next, err := c.ConfigJobs(ctx, biz, template, start, limit)
		if err != nil || len(next.Jobs) == 0 {
			page.Jobs = list
			return page, err
		}
		start += len(next.Jobs)
		list = append(list, slices.DeleteFunc(next.Jobs, reads)...)
	}
	page.Jobs = list[:min(limit, len(list))]
	return page, nil
}

// showConfigJob prints one job. Its error is the exit code.
func (env *cliEnv) showConfigJob(ctx context.Context, c *client.Client, o *configOptions, biz int, given string) error {
	id, err := configJobID(given)
	if err != nil {
		return err
	}
	job, err := c.ConfigJob(ctx, biz, id)
	if err != nil {
		return err
	}
	err = env.printConfigJob(&configJobOptions{output: o.output}, &job)
	var ex *exitError
	if !job.Done() && (err == nil || errors.As(err, &ex) && ex.err == nil) {
		return &exitError{exitTimedOut, nil}
	}
	return err
}

// configJobID reads the number of a job.
func configJobID(given string) (int64, error) {
	id, err := strconv.ParseInt(given, 10, 64)
	if err != nil || id < 1 {
		return 0, usage("%q is not the number of a job, such as 17; see gozzard config history", printable(given))
	}
	return id, nil
}

// newConfigStopCommand is `gozzard config stop`.
func newConfigStopCommand(env *cliEnv) *cobra.Command {
	var o configOptions
	cmd := &cobra.Command{
		Use:   "stop JOB",
		Short: "Stop a release or another job before it has reached all hosts",
		Long: `Stop a job on configuration files, such as a rollout. Hosts that it has begun with are completed, and
the time for which they are watched ends; no other file is written. The instances of the other hosts
fail with that reason. "gozzard config rollback" takes back what was written.

Exit code: 0 it stops, 1 it had ended, 4 not allowed, 5 there is none.`,
		Example: `  gozzard config stop 17`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := configJobID(args[0])
			if err != nil {
				return err
			}
			return o.with(cmd.Context(), env, func(c *client.Client, biz int) error {
				job, err := c.StopConfigJob(cmd.Context(), biz, id)
				if err != nil {
					return err
				}
				env.remark("job %d stops; look at it with: gozzard config history %[1]d", job.ID)
				return nil
			})
		},
	}
	o.register(cmd)
	return cmd
}
