package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// What the status of one process shows of its history.
const (
	statusEvents   = 5
	statusLogLines = 8
	maxLogShown    = 400 // characters of a line
)

// partTimeout is how long one part of the status is waited for. The log comes from the host.
const partTimeout = 5 * time.Second

// processParts is what the status of a process shows besides the process. A part that cannot be read has an error.
type processParts struct {
	definition    definitionKeys
	definitionErr error
	events        []client.Event
	eventsErr     error
	log           string
	logErr        error
}

// readParts asks for all parts, one after the other.
func readParts(ctx context.Context, c *client.Client, p *client.Process) *processParts {
	var parts processParts
	key, host := gozzard.Key{Namespace: p.Namespace, Name: p.Name}, string(p.Host.Agent)
	namespaces, names, hosts := []string{key.Namespace}, []string{key.Name}, []string{host}
	within := func(read func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, partTimeout)
		defer cancel()
		return read(ctx)
	}

	parts.definitionErr = within(func(ctx context.Context) error {
		page, err := c.Definitions(ctx, client.ProcessQuery{Namespaces: namespaces, Names: names, Hosts: hosts}, 0, 1)
		switch {
		case err != nil:
			return err
		case len(page.Definitions) == 0:
			return errors.New("the server has no definition of it")
		}
		return json.Unmarshal(page.Definitions[0].Document, &parts.definition)
	})

	parts.eventsErr = within(func(ctx context.Context) error {
		page, err := c.Events(ctx, client.EventQuery{Namespaces: namespaces, Names: names, Hosts: hosts}, statusEvents)
		byTime(page.Events)
		parts.events = page.Events
		return err
	})

	parts.logErr = within(func(ctx context.Context) error {
		chunk, err := c.Log(ctx, key, host, statusLogLines, -1)
		parts.log = chunk.Text
		return err
	})

	return &parts
}

// printProcess prints everything about one process.
func (env *cliEnv) printProcess(ctx context.Context, c *client.Client, p *client.Process, paint painter) error {
	parts := readParts(ctx, c, p)
	var b strings.Builder
	for _, l := range append(env.stateLines(p, parts), env.definitionLines(p, parts)...) {
		if v := printable(l[1]); v != "" {
			if l[0] == "state" {
				v = paint.paint(viewState(p.State).colour, v)
			}
			fmt.Fprintf(&b, "%-11s %s\n", l[0], v)
		}
	}

	env.writeEvents(&b, parts)
	env.writeLog(&b, parts)
	return checkWrite(fmt.Fprint(env.out, b.String()))
}

// unhealthySince is when the health check of a process began to fail; zero if the events that were read do not say it.
func (parts *processParts) unhealthySince(p *client.Process) client.Time {
	for _, e := range slices.Backward(parts.events) {
		if e.Kind == gozzard.EventHealth && e.PID == int(p.PID) {
			if strings.HasPrefix(e.Message, "unhealthy") {
				return e.At
			}
			break // its newest event is not about this failure
		}
	}
	return client.Time{}
}

// stateLines are the lines about the state of a process. Lines with an empty value are not printed.
func (env *cliEnv) stateLines(p *client.Process, parts *processParts) [][2]string {
	state := stateText(p)
	from := p.StartedAt
	if p.State == client.StateUnhealthy {
		from = parts.unhealthySince(p)
	}
	switch {
	case isUp(p) && !from.IsZero():
		state += env.text(" for %s", since(env.now(), from.Time))
	case p.State == client.StateUnknown && p.ReportedAt.IsZero():
		state += env.text(": its host has not reported it yet")
	case p.State == client.StateUnknown:
		state += env.text(": its host does not report, for %s", since(env.now(), p.ReportedAt.Time))
	}
	reason := "reason"
	if isWell(p) {
		reason = "message"
	}
	lines := [][2]string{
		{"process", p.Namespace + ":" + p.Name},
		{"host", processHost(p) + env.inParentheses(string(p.Host.Agent))},
		{"state", state},
		{reason, env.said(p.Message)},
		{"wanted", env.wantedText(p)},
		{"managed", yesNo(p.Managed)},
		{"restarts", strconv.Itoa(p.Restarts)},
	}

	// What comes next, and what was last.
	if !p.NextAt.IsZero() {
		what := "next start"
		if p.State == client.StateScheduled || p.Kind == client.KindPeriodic {
			what = "next run"
		}
		lines = append(lines, [2]string{what, momentOf(p.NextAt) + env.untilIn(p.NextAt.Time)})
	}
	if p.LastRun != nil && !(p.Kind == client.KindOneShot && isUp(p)) { // its pid and its start are below
		lines = append(lines, [2]string{"last run", env.runText(p.LastRun)})
	}
	if p.Exit != nil {
		lines = append(lines, [2]string{"last exit", env.joinText(env.exitText(p.Exit), env.momentAgo(p.Exit.At))})
	}
	if p.Health != "" || p.HealthMessage != "" {
		lines = append(lines, [2]string{"health", env.joinText(p.Health, env.said(p.HealthMessage))})
	}

	// What only a process that is up has.
	if isUp(p) {
		lines = append(lines, [][2]string{
			{"pid", strconv.Itoa(int(p.PID))},
			{"started", momentOf(p.StartedAt)},
		}...)
		lines = append(lines, env.usageLines(p)...)
	}

	return lines
}

// untilIn is how long it takes until a time, behind that time.
func (env *cliEnv) untilIn(t time.Time) string {
	left := t.Sub(env.now())
	if left < time.Second {
		return env.text(" (now)")
	}
	return env.text(" (in %s)", shortDuration(left))
}

// wantedText is what the last operation asked for. An unmanaged process that has ended does not come back by itself, so
// it says why, and how to change that.
func (env *cliEnv) wantedText(p *client.Process) string {
	ended := p.State == client.StateStopped || p.State == client.StateFailed
	if p.Managed || p.Wanted != client.StateRunning || !ended {
		return p.Wanted
	}
	return env.text("running, but it stays down because it is not managed; to start and supervise it: gozzard manage %s -n %s",
		p.Name, p.Namespace)
}

// usageLines are the lines about what a process uses. The agent measures it some time after the start.
func (env *cliEnv) usageLines(p *client.Process) [][2]string {
	if !isMeasured(p) {
		not := env.text("not measured yet")
		return [][2]string{{"cpu", not}, {"memory", not}, {"open files", not}}
	}

	memory := env.text("%s%% of the machine", percent(p.Mem))
	if p.MemBytes > 0 {
		memory = env.joinText(mebibytes(p.MemBytes), memory)
	}
	return [][2]string{{"cpu", env.text("%s%% of the machine", percent(p.CPU))}, {"memory", memory}, {"open files", fdText(p)}}
}

// runText is the last run of a periodic or one-shot process.
func (env *cliEnv) runText(r *client.LastRun) string {
	began := env.momentAgo(r.StartedAt)
	if r.EndedAt.IsZero() {
		return env.joinText(env.text("not ended yet"), began)
	}
	took := ""
	if !r.StartedAt.IsZero() {
		took = env.text(", took %s", shortDuration(r.EndedAt.Sub(r.StartedAt.Time)))
	}
	return env.joinText(env.endText(r.Code, r.Signal)+took, began)
}

// writeEvents writes the last events.
func (env *cliEnv) writeEvents(b *strings.Builder, parts *processParts) {
	switch {
	case parts.eventsErr != nil:
		b.WriteString(env.text("\nevents cannot be shown: %s\n", printable(errorText(env.chinese, parts.eventsErr))))
	case len(parts.events) > 0:
		b.WriteString(env.text("\nlast events:\n"))
		for i := range parts.events {
			e := &parts.events[i]
			fmt.Fprintf(b, "  %s\n", env.eventText(e, e.At.Local().Format(eventTime), string(e.Kind)))
		}
	}
}

// writeLog writes the last lines of the output.
func (env *cliEnv) writeLog(b *strings.Builder, parts *processParts) {
	text := strings.TrimRight(parts.log, "\n")
	switch {
	case errors.Is(parts.logErr, context.DeadlineExceeded):
		b.WriteString(env.text("\noutput cannot be shown: the host did not answer in time\n"))
	case parts.logErr != nil:
		b.WriteString(env.text("\noutput cannot be shown: %s\n", printable(errorText(env.chinese, parts.logErr))))
	case text != "":
		b.WriteString(env.text("\nlast output:\n"))
		lines := strings.Split(text, "\n")
		for _, line := range lines[max(0, len(lines)-statusLogLines):] {
			fmt.Fprintf(b, "  %s\n", shorten(line, maxLogShown))
		}
	}
}

// joinText joins two texts with a comma, if both are there.
func (env *cliEnv) joinText(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return env.clauses([]string{a, b})
}
