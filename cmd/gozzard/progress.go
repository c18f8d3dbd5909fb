package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// offlineFor is how long a host may be offline before a command does not wait for it any more. An agent that is
// restarted or upgraded is back sooner.
const offlineFor = 10 * time.Second

// runTask sends a request with accept, waits for the task of it and prints the result.
func (env *cliEnv) runTask(ctx context.Context, o *taskFlags, what string,
	accept func(*client.Client) (client.Accepted, error)) error {
	if err := o.output.check(); err != nil {
		return err
	}

	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	// Send the request.
	a, err := accept(c)
	if err != nil {
		return withExitCode(err)
	}
	if o.detach {
		return env.printAccepted(o, a)
	}

	// Wait for the task.
	t, err := env.waitForTask(ctx, c, o, what, a.TaskID)
	if err != nil {
		return err
	}

	return env.printTask(o, what, &t)
}

// printAccepted prints the id of a task that is not waited for.
func (env *cliEnv) printAccepted(o *taskFlags, a client.Accepted) error {
	if o.output.structured() {
		return o.output.write(env.out, a)
	}
	id := printable(shortTask(a.TaskID))
	env.remark("accepted for %d; follow it with: gozzard task %s", a.Targets, id)
	return checkWrite(fmt.Fprintln(env.out, id))
}

// waitForTask waits for the end of a task and shows its progress on stderr. Its error has the exit code.
func (env *cliEnv) waitForTask(ctx context.Context, c *client.Client, o *taskFlags, what string,
	id string) (client.Task, error) {
	// Wait, at most --timeout. Without it, do not wait for hosts that have gone away.
	wait, cancel := context.WithCancel(ctx)
	if o.timeout > 0 {
		wait, cancel = context.WithTimeout(ctx, o.timeout)
	}
	defer cancel()

	p := &progress{env: env, what: what}
	t, err := c.Wait(wait, id, func(t client.Task) {
		p.show(t)
		if o.timeout == 0 && gone(&t) {
			p.gone = t.Waiting
			cancel()
		}
	})
	p.clear()

	// If the wait ended early, say how to continue it.
	again := "gozzard task " + printable(shortTask(id))
	switch {
	case err == nil:
		return t, nil
	case ctx.Err() != nil:
		env.remark("the task continues; follow it with: %s", again)
		return t, &exitError{exitDetached, nil}
	case p.gone != nil:
		if t, err = c.WholeTask(ctx, id); err != nil || t.Final { // the last verdict came meanwhile
			return t, withExitCode(err)
		}
		return t, env.printGone(o, what, &t, p.gone)
	case errors.Is(err, context.DeadlineExceeded):
		env.remark("not done within %s; the task continues; follow it with: %s", o.timeout, again)
		return t, &exitError{exitTimedOut, nil}
	}
	if gozzard.KindOf(err) == gozzard.ErrUnavailable {
		env.remark("the task continues; follow it with: %s", again)
	}

	return t, withExitCode(err)
}

// gone reports whether a task waits only for hosts that have been offline for a while.
func gone(t *client.Task) bool {
	w := t.Waiting
	return w != nil && w.Attempts == t.Counts.Running && time.Duration(w.Seconds)*time.Second >= offlineFor
}

// printGone prints what is known of a task that waits for hosts which have gone away. Its error is the exit code.
func (env *cliEnv) printGone(o *taskFlags, what string, t *client.Task, w *client.Waiting) error {
	var ex *exitError
	if err := env.printTask(o, what, t); errors.As(err, &ex) && ex.err != nil {
		return err
	}

	env.remark("stopped waiting for %s", env.offlineText(w))
	env.remark("the verdict is unknown so far: it was carried out once or not at all. The task continues, and gets its verdict "+
		"when the host is back; follow it with: gozzard task %s", printable(shortTask(t.ID)))
	return &exitError{exitTimedOut, nil}
}

// offlineText names the hosts that a task waits for, such as "1 host that is offline: 0:10.0.0.5 since 15:04:05Z".
func (env *cliEnv) offlineText(w *client.Waiting) string {
	var names []string
	for _, h := range w.Named {
		names = append(names, env.text("%s since %s", refName(h.Host), h.Since.UTC().Format(time.RFC3339)))
	}
	text := env.text("1 host that is offline: ")
	if w.Hosts > 1 {
		text = env.text("%d hosts that are offline: ", w.Hosts)
	}
	text += env.names(names)
	if w.Hosts > len(names) {
		text += env.text(" and %d more", w.Hosts-len(names))
	}
	return printable(text)
}

// progress is one line with the progress of a task. A terminal rewrites the line; elsewhere each change is a new
// line.
type progress struct {
	env   *cliEnv
	what  string
	last  string
	drawn bool            // the line is on the terminal
	gone  *client.Waiting // the hosts for which the command does not wait any more
}

// show shows the progress of a task if it changed.
func (p *progress) show(t client.Task) {
	line := p.env.text("%s: %d done, %d failed, %d running of %d", p.what, t.Counts.Done, t.Counts.Failed,
		t.Counts.Running, t.Counts.Targets)
	if t.Waiting != nil {
		line += p.env.text("; waiting for %s", p.env.offlineText(t.Waiting))
	}
	if line == p.last {
		return
	}

	p.last = line
	if !p.env.terminal {
		if !t.Final { // the summary comes next
			p.env.remark("%s", line)
		}
		return
	}

	p.drawn = true
	_, _ = fmt.Fprintf(p.env.errs, "\r\x1b[K%s", line) // stderr may be closed
}

// clear removes the line from the terminal.
func (p *progress) clear() {
	if p.drawn {
		_, _ = fmt.Fprint(p.env.errs, "\r\x1b[K")
	}
}
