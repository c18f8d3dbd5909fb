package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// maxFailures limits the table of failures. --no-group and -o json have all of them.
const maxFailures = 200

// printTask prints the failures and the summary of a task. Its error is the exit code.
func (env *cliEnv) printTask(o *taskFlags, what string, t *client.Task) error {
	if o.output.structured() {
		if err := o.output.write(env.out, t); err != nil {
			return err
		}
		return taskExitCode(t)
	}

	if err := env.printFailures(o, t); err != nil {
		return err
	}
	return env.printSummary(o, what, t)
}

// printFailures prints the failures of a task: each, or many in groups.
func (env *cliEnv) printFailures(o *taskFlags, t *client.Task) error {
	var failed []*client.Attempt
	for i := range t.Attempts {
		if t.Attempts[i].Verdict == client.Failed {
			failed = append(failed, &t.Attempts[i])
		}
	}
	if len(failed) == 0 {
		return nil
	}

	// Print groups of many.
	if len(failed) > groupFrom && !o.noGroup {
		groups := groupFailures(failed)
		shown := min(len(groups), maxFailures)
		if shown < len(groups) {
			env.remark("%d of %d groups of failures; --no-group or -o json lists all", shown, len(groups))
		}
		return env.failureTable(groups[:shown]).write(env.out)
	}

	// Print each of few.
	table := newTable("HOST", "NAMESPACE", "NAME", "CODE", "MESSAGE")
	for _, a := range failed {
		table.add(refName(a.Host), a.Namespace, a.Name, codeText(a), env.said(a.Message))
	}
	return table.write(env.out)
}

// printSummary prints the counts and the id of a task. Its error is the exit code.
func (env *cliEnv) printSummary(o *taskFlags, what string, t *client.Task) error {
	line := env.summary(what, t)
	if o.note != "" && t.Counts.Done > 0 { // nothing is new if nothing was done
		line += env.inParentheses(o.note)
	}
	id := printable(shortTask(t.ID))
	line += env.text("\ntask %s", id)
	if worthRepeating(t) {
		line += env.text("; repeat what failed with: gozzard task %s --retry-failed", id)
	}
	if err := checkWrite(fmt.Fprintln(env.out, line)); err != nil {
		return err
	}
	return taskExitCode(t)
}

// worthRepeating reports whether the same request may succeed later for an attempt that failed. What the server or the
// policy of a host rejects, and what is for a host that is not in the fleet, fails again until a person has changed
// something.
func worthRepeating(t *client.Task) bool {
	return slices.ContainsFunc(t.Attempts, func(a client.Attempt) bool {
		if a.Verdict != client.Failed {
			return false
		}
		switch a.Code {
		case gozzard.CodeRefused, gozzard.CodeNoDefinition, gozzard.CodeUnknownAction:
			return false
		case gozzard.CodeUnreachable:
			return !strings.Contains(a.Message, gozzard.NotInFleet)
		}
		return true
	})
}

// codeText is the code of an attempt, or its state if it never ran.
func codeText(a *client.Attempt) string {
	if a.Code == "" {
		return a.State
	}
	return string(a.Code)
}

// summary is the last line of the output, such as "start: 19 done (2 already running), 1 failed of 20".
func (env *cliEnv) summary(what string, t *client.Task) string {
	// Count the attempts that had nothing to do.
	var b strings.Builder
	b.WriteString(env.text("%s: %d done", what, t.Counts.Done))
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
	}{{gozzard.CodeAlreadyRunning, "%d already running"}, {gozzard.CodeNotRunning, "%d not running before"},
		{gozzard.CodeAlreadyRegistered, "%d registered before"}} {
		if notes[n.code] > 0 {
			parts = append(parts, env.text(n.text, notes[n.code]))
		}
		if n.code == gozzard.CodeAlreadyRunning && adopted > 0 {
			parts = append(parts, env.text("%d of them supervised from now on", adopted))
		}
	}

	if len(parts) > 0 {
		b.WriteString(env.inParentheses(env.clauses(parts)))
	}

	// Add the other counts.
	if t.Counts.Failed > 0 {
		b.WriteString(env.text(", %d failed", t.Counts.Failed))
	}
	if t.Counts.Running > 0 {
		b.WriteString(env.text(", %d running", t.Counts.Running))
	}

	b.WriteString(env.text(" of %d", t.Counts.Targets))
	return b.String()
}

// taskExitCode is the exit code of a task that is done.
func taskExitCode(t *client.Task) error {
	switch {
	case t.Counts.Failed == 0:
		return nil
	case t.Counts.Done > 0:
		return &exitError{exitPartly, nil}
	}

	forbidden := 0
	for i := range t.Attempts {
		if a := &t.Attempts[i]; a.Verdict == client.Failed && notPermitted(a) {
			forbidden++
		}
	}
	if forbidden == t.Counts.Failed {
		return &exitError{exitNotAllowed, nil}
	}
	return &exitError{exitFailed, nil}
}

// notPermitted reports whether the server rejected an attempt because the caller has no right to it. What an agent
// rejects by the policy of its host is another thing.
func notPermitted(a *client.Attempt) bool {
	return a.Code == gozzard.CodeRefused && a.State == gozzard.AttemptNotExecuted.String() &&
		strings.HasPrefix(a.Message, gozzard.NotPermitted)
}
