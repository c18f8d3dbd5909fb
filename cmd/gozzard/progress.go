package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// maxFailures bounds the table of failures; the whole list is had with -o json.
const maxFailures = 200

// task has something accepted, waits for it and tells how it ended.
func (env *cliEnv) task(ctx context.Context, o *taskFlags, what string,
	accept func(*client.Client) (client.Accepted, error)) error {
	if err := o.output.check(); err != nil {
		return err
	}

	c, err := env.connect()
	if err != nil {
		return err
	}

	defer c.Close()
	a, err := accept(c)
	if err != nil {
		return served(err)
	}
	if o.detach {
		return env.tellAccepted(o, a)
	}

	t, err := env.follow(ctx, c, o, what, a.TaskID)
	if err != nil {
		return err
	}

	return env.tellEnd(o, what, &t)
}

func (env *cliEnv) tellAccepted(o *taskFlags, a client.Accepted) error {
	if o.output.structured() {
		return o.output.write(env.out, a)
	}
	env.remark("accepted for %d; follow it with: gozzard task %s", a.Targets, printable(a.TaskID))
	return written(fmt.Fprintln(env.out, printable(a.TaskID)))
}

// follow waits for a task with progress on stderr. An error of it is an exit code.
func (env *cliEnv) follow(ctx context.Context, c *client.Client, o *taskFlags, what string,
	id string) (client.Task, error) {
	wait, cancel := ctx, context.CancelFunc(func() {})

	if o.timeout > 0 {
		wait, cancel = context.WithTimeout(ctx, o.timeout)
	}

	defer cancel()
	p := &progress{env: env, what: what}
	t, err := c.Wait(wait, id, p.show)
	p.clear()
	again := "gozzard task " + printable(id)
	switch {
	case err == nil:
		return t, nil
	case ctx.Err() != nil:
		env.remark("the task continues; follow it with: %s", again)
		return t, &exitError{exitDetached, nil}
	case errors.Is(err, context.DeadlineExceeded):
		env.remark("not done within %s; the task continues; follow it with: %s", o.timeout, again)
		return t, &exitError{exitTimedOut, nil}
	}

	if gozzard.KindOf(err) == gozzard.ErrUnavailable {
		env.remark("the task continues; follow it with: %s", again)
	}

	return t, served(err)
}

// progress is one line that says how far a task is: rewritten on a terminal, a new line for each change elsewhere.
type progress struct {
	env   *cliEnv
	what  string
	last  string
	drawn bool
}

func (p *progress) show(t client.Task) {
	line := fmt.Sprintf("%s: %d done, %d failed, %d running of %d", p.what, t.Counts.Done, t.Counts.Failed,
		t.Counts.Running, t.Counts.Targets)
	if line == p.last {
		return
	}

	p.last = line
	if !p.env.terminal {
		if !t.Final { // the end is told anyway
			p.env.remark("%s", line)
		}
		return
	}

	p.drawn = true
	_, _ = fmt.Fprintf(p.env.errs, "\r\x1b[K%s", line) // who has closed stderr does not want to know
}

func (p *progress) clear() {
	if p.drawn {
		_, _ = fmt.Fprint(p.env.errs, "\r\x1b[K")
	}
}

// tellEnd prints what failed and a line of counts, and gives the exit code.
func (env *cliEnv) tellEnd(o *taskFlags, what string, t *client.Task) error {
	if o.output.structured() {
		if err := o.output.write(env.out, t); err != nil {
			return err
		}
		return verdictCode(&t.Counts)
	}

	table, n := newTable("HOST", "NAMESPACE", "NAME", "CODE", "MESSAGE"), 0
	for i := range t.Attempts {
		a := &t.Attempts[i]
		if a.Verdict != client.Failed {
			continue
		}
		if n++; n <= maxFailures {
			table.add(hostName(a.Host.Cloud, a.Host.IP, string(a.Host.Agent)), a.Namespace, a.Name, codeWord(a),
				a.Message)
		}
	}

	if n > 0 {
		if err := table.write(env.out); err != nil {
			return err
		}
	}

	if n > maxFailures {
		env.remark("%d of %d failures; \"gozzard task %s -o json\" lists all", maxFailures, n, printable(t.ID))
	}
	if err := written(fmt.Fprintln(env.out, summary(what, t))); err != nil {
		return err
	}

	return verdictCode(&t.Counts)
}

// codeWord is the code of an attempt, or the state of one that never ran.
func codeWord(a *client.Attempt) string {
	if a.Code == "" {
		return a.State
	}
	return string(a.Code)
}

// summary is the one line that most people read: "start: 19 done (2 already running), 1 failed of 20".
func summary(what string, t *client.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d done", what, t.Counts.Done)
	notes := map[gozzard.Code]int{}
	for i := range t.Attempts {
		if a := &t.Attempts[i]; a.Verdict == client.Noted {
			notes[a.Code]++
		}
	}

	var parts []string
	for _, n := range []struct {
		code gozzard.Code
		text string
	}{{gozzard.CodeAlreadyRunning, "already running"}, {gozzard.CodeNotRunning, "not running before"},
		{gozzard.CodeAlreadyRegistered, "registered before"}} {
		if notes[n.code] > 0 {
			parts = append(parts, strconv.Itoa(notes[n.code])+" "+n.text)
		}
	}

	if len(parts) > 0 {
		b.WriteString(" (" + strings.Join(parts, ", ") + ")")
	}
	if t.Counts.Failed > 0 {
		fmt.Fprintf(&b, ", %d failed", t.Counts.Failed)
	}
	if t.Counts.Running > 0 {
		fmt.Fprintf(&b, ", %d running", t.Counts.Running)
	}

	fmt.Fprintf(&b, " of %d", t.Counts.Targets)
	return b.String()
}

func verdictCode(c *client.Counts) error {
	switch {
	case c.Failed == 0:
		return nil
	case c.Done > 0:
		return &exitError{exitPartly, nil}
	}
	return &exitError{exitFailed, nil}
}
