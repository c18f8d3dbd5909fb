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

	"github.com/gozzard/gozzard/client"
)

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

// notTried is the reason of an instance that a rollout did not reach.
const notTried = "config_stopped"

// notReached counts the instances that a rollout did not reach before it stopped. They count as failed in the job.
func notReached(job *client.ConfigJobDetail) (n int) {
	for i := range job.List {
		if job.List[i].Reason == notTried {
			n++
		}
	}
	return n
}

// writes reports whether a job writes files.
func writes(job *client.ConfigJobDetail) bool { return job.Work == "release" || job.Work == "rollback" }

// unchangedFiles counts the instances whose host had the files of a release or a rollback already, so that nothing followed.
func unchangedFiles(job *client.ConfigJobDetail) (n int) {
	if !writes(job) {
		return 0
	}
	for i := range job.List {
		x := &job.List[i]
		changed := func(f client.ConfigOf) bool { return f.Changed }
		if x.State == "succeeded" && !slices.ContainsFunc(x.Files, changed) {
			n++
		}
	}
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
	left, unchanged := notReached(job), unchangedFiles(job)
	line := env.text("%s: %d done", job.Work, n.Done)
	if unchanged > 0 {
		line += env.text(" (%d unchanged)", unchanged)
	}
	if n.Failed > left {
		line += env.text(", %d failed", n.Failed-left)
	}
	if left > 0 {
		line += env.text(", %d not tried", left)
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
		text := env.configReason(x)
		if text == "" && x.State == "succeeded" {
			var paths []string
			changed := false
			for _, f := range x.Files {
				paths, changed = append(paths, path.Clean(f.Path)), changed || f.Changed
			}
			switch text = strings.Join(paths, " "); {
			case changed && job.Then != "":
				text += ", " + job.Then
			case !changed && writes(job):
				text += env.text(", unchanged")
			}
		}
		state := x.State
		if x.Reason == notTried {
			state = "not tried"
		}
		t.add(refName(x.Host), x.Name, strconv.Itoa(x.Process), strconv.Itoa(x.Instance), state, text)
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
