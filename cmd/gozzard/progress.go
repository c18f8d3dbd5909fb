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

// maxFailures limits the table of failures. -o json has all of them.
const maxFailures = 200

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
	env.remark("accepted for %d; follow it with: gozzard task %s", a.Targets, printable(a.TaskID))
	return checkWrite(fmt.Fprintln(env.out, printable(a.TaskID)))
}

// waitForTask waits for the end of a task and shows its progress on stderr. Its error has the exit code.
func (env *cliEnv) waitForTask(ctx context.Context, c *client.Client, o *taskFlags, what string,
	id string) (client.Task, error) {
	// Wait, at most --timeout.
	wait, cancel := ctx, context.CancelFunc(func() {})
	if o.timeout > 0 {
		wait, cancel = context.WithTimeout(ctx, o.timeout)
	}
	defer cancel()

	p := &progress{env: env, what: what}
	t, err := c.Wait(wait, id, p.show)
	p.clear()

	// If the wait ended early, say how to continue it.
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

	return t, withExitCode(err)
}

// progress is one line with the progress of a task. A terminal rewrites the line; elsewhere each change is a new
// line.
type progress struct {
	env   *cliEnv
	what  string
	last  string
	drawn bool // the line is on the terminal
}

// show shows the progress of a task if it changed.
func (p *progress) show(t client.Task) {
	line := fmt.Sprintf("%s: %d done, %d failed, %d running of %d", p.what, t.Counts.Done, t.Counts.Failed,
		t.Counts.Running, t.Counts.Targets)
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

// printTask prints the failures and the summary of a task. Its error is the exit code.
func (env *cliEnv) printTask(o *taskFlags, what string, t *client.Task) error {
	if o.output.structured() {
		if err := o.output.write(env.out, t); err != nil {
			return err
		}
		return taskExitCode(&t.Counts)
	}

	// Collect the failures.
	table, n := newTable("HOST", "NAMESPACE", "NAME", "CODE", "MESSAGE"), 0
	for i := range t.Attempts {
		a := &t.Attempts[i]
		if a.Verdict != client.Failed {
			continue
		}
		if n++; n <= maxFailures {
			table.add(refName(a.Host), a.Namespace, a.Name, codeText(a),
				a.Message)
		}
	}

	// Print them, and the summary.
	if n > 0 {
		if err := table.write(env.out); err != nil {
			return err
		}
	}

	if n > maxFailures {
		env.remark("%d of %d failures; \"gozzard task %s -o json\" lists all", maxFailures, n, printable(t.ID))
	}
	line := summary(what, t)
	if o.note != "" {
		line += " (" + o.note + ")"
	}
	if err := checkWrite(fmt.Fprintln(env.out, line)); err != nil {
		return err
	}

	return taskExitCode(&t.Counts)
}

// codeText is the code of an attempt, or its state if it never ran.
func codeText(a *client.Attempt) string {
	if a.Code == "" {
		return a.State
	}
	return string(a.Code)
}

// summary is the last line of the output, such as "start: 19 done (2 already running), 1 failed of 20".
func summary(what string, t *client.Task) string {
	// Count the attempts that had nothing to do.
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d done", what, t.Counts.Done)
	notes, adopted := map[gozzard.Code]int{}, 0
	for i := range t.Attempts {
		if a := &t.Attempts[i]; a.Verdict == client.Noted {
			notes[a.Code]++
			if _, _, detail, _ := gozzard.SplitStateMessage(a.Message); detail == gozzard.SupervisedNow {
				adopted++
			}
		}
	}

	// Name what they found.
	var parts []string
	for _, n := range []struct {
		code gozzard.Code
		text string
	}{{gozzard.CodeAlreadyRunning, "already running"}, {gozzard.CodeNotRunning, "not running before"},
		{gozzard.CodeAlreadyRegistered, "registered before"}} {
		if notes[n.code] > 0 {
			parts = append(parts, strconv.Itoa(notes[n.code])+" "+n.text)
		}
		if n.code == gozzard.CodeAlreadyRunning && adopted > 0 {
			parts = append(parts, strconv.Itoa(adopted)+" of them supervised from now on")
		}
	}

	if len(parts) > 0 {
		b.WriteString(" (" + strings.Join(parts, ", ") + ")")
	}

	// Add the other counts.
	if t.Counts.Failed > 0 {
		fmt.Fprintf(&b, ", %d failed", t.Counts.Failed)
	}
	if t.Counts.Running > 0 {
		fmt.Fprintf(&b, ", %d running", t.Counts.Running)
	}

	fmt.Fprintf(&b, " of %d", t.Counts.Targets)
	return b.String()
}

// taskExitCode is the exit code of a task that is done.
func taskExitCode(c *client.Counts) error {
	switch {
	case c.Failed == 0:
		return nil
	case c.Done > 0:
		return &exitError{exitPartly, nil}
	}
	return &exitError{exitFailed, nil}
}
