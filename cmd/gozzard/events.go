package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// eventOptions are the flags of `gozzard events`.
type eventOptions struct {
	namespaces []string
	hosts      []string
	kinds      []string
	since      string
	limit      int
	follow     bool
	output     outputFlag
}

// newEventsCommand is `gozzard events`.
func newEventsCommand(env *cliEnv) *cobra.Command {
	var o eventOptions
	cmd := &cobra.Command{
		Use:   "events [NAME...]",
		Short: "List events of processes",
		Long: `List events of processes: what started, ended, was restarted by the agent or exceeded a limit. The server
keeps events for a month, or as its flags --keep-events and --max-events say. NAME may be a pattern: * is any text, ? is
one character.

An event that an operation caused ends with its task and the person that asked for it, if you may read that task. The
code of an end is left out if it is not known, and null in JSON.

The oldest event is first, by the clocks of the hosts. With --follow, later ones are appended as they arrive.

The kinds of events:
` + env.eventKindsHelp(),
		Example: `  gozzard events
  gozzard events -n shop 'web-*' -f
  gozzard events --kind exited --since 10m
  gozzard events --host 0:10.0.0.1 -o json`,
		ValidArgsFunction: env.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			return env.events(cmd.Context(), &o, names)
		},
	}

	f := cmd.Flags()
	f.StringArrayVarP(&o.namespaces, "namespace", "n", nil,
		"`NAMESPACE`, or a pattern such as 'shop-*'; may be repeated")
	f.StringArrayVar(&o.hosts, "host", nil, "`HOST` as cloud:ip, an IP address, a host name or an agent id; may be repeated")
	f.StringArrayVar(&o.kinds, "kind", nil, "`KIND` of event, such as exited (all kinds are above); may be repeated")
	f.StringVar(&o.since, "since", "",
		"only events since this time, such as 2026-01-02T15:04:05Z, or since this long ago, such as 10m")
	f.IntVar(&o.limit, "limit", 100, "list at most this many, the newest")
	f.BoolVarP(&o.follow, "follow", "f", false, "continue with new events until Ctrl-C")
	o.output.register(cmd, f, "table", "json")
	return cmd
}

// eventKindsHelp lists the kinds of events with their meanings.
func (env *cliEnv) eventKindsHelp() string {
	var b strings.Builder
	for _, k := range gozzard.EventKinds() {
		fmt.Fprintf(&b, "  %-36s %s\n", k.Kind, env.chinese.Text(k.Meaning))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// events prints the newest events, and with --follow the ones that come.
func (env *cliEnv) events(ctx context.Context, o *eventOptions, names []string) error {
	// Check the flags.
	q := client.EventQuery{Namespaces: o.namespaces, Names: names, Hosts: o.hosts, Kinds: o.kinds}
	if _, err := parseHostFlags(o.hosts); err != nil {
		return err
	}
	if err := o.output.check(); err != nil {
		return err
	}
	if o.limit < 1 || o.limit > client.MaxPage {
		return usage("--limit must be 1 to %d", client.MaxPage)
	}

	var err error
	if q.Since, err = env.sinceFlag(o.since); err != nil {
		return err
	}

	// Ask the server.
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	page, err := c.Events(ctx, q, o.limit)
	if err != nil {
		return withExitCode(err)
	}
	byTime(page.Events)
	if o.output.structured() && !o.follow {
		return o.output.write(env.out, page)
	}

	// Print.
	for i := range page.Events {
		if err := env.printEvent(&page.Events[i], &o.output); err != nil {
			return err
		}
	}

	if !o.follow {
		if len(page.Events) == 0 {
			env.remark("no events found")
		}
		return nil
	}

	return env.followEvents(ctx, c, q, page.Next, &o.output)
}

// byTime sorts events by their time, the oldest first. The server has them in the order in which hosts reported them, and
// a host that was offline reports late.
func byTime(events []client.Event) {
	slices.SortStableFunc(events, func(a, b client.Event) int { return a.At.Compare(b.At.Time) })
}

// sinceFlag reads --since: a time, or how long ago.
func (env *cliEnv) sinceFlag(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return env.now().Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, usage("--since %q: use a time such as 2026-01-02T15:04:05Z, or how long ago, such as 10m", s)
	}
	return t, nil
}

// followEvents prints events as they come until Ctrl-C. While the server is away it waits.
func (env *cliEnv) followEvents(ctx context.Context, c *client.Client, q client.EventQuery, after uint64,
	output *outputFlag) error {
	var last error
	for e, err := range c.FollowEvents(ctx, q, after) {
		switch {
		case errors.Is(err, client.ErrEventsLost):
			env.remark("gozzard: %v", err)
		case gozzard.KindOf(err) == gozzard.ErrUnavailable && err != nil:
			if last == nil { // say it once
				env.remark("gozzard: %s; waiting for it", printable(errorText(env.chinese, err)))
			}
			last = err
			continue
		case err != nil:
			return withExitCode(err)
		default:
			if err := env.printEvent(&e, output); err != nil {
				return err
			}
		}
		last = nil
	}

	return nil
}

// printEvent prints an event as one line. Events come one by one, so there is no table to align.
func (env *cliEnv) printEvent(e *client.Event, output *outputFlag) error {
	if output.structured() {
		return output.writeLine(env.out, e)
	}

	return checkWrite(fmt.Fprintln(env.out, env.eventText(e, e.At.Local().Format(eventTime), refName(e.Host),
		eventAbout(e), string(e.Kind))))
}

// eventAbout is the process of an event, the namespace of several processes, or - where it is about a host.
func eventAbout(e *client.Event) string {
	switch {
	case e.Name != "":
		return e.Namespace + "/" + e.Name
	case e.Namespace != "":
		return e.Namespace
	}
	return "-"
}

// eventTime is the form of a time in a list of events.
const eventTime = "2006-01-02 15:04:05.000"

// eventText is the line of an event: the parts that every event has, and those that only some have.
func (env *cliEnv) eventText(e *client.Event, parts ...string) string {
	// The parts that only some have.
	if e.PID > 0 {
		parts = append(parts, "pid "+strconv.Itoa(e.PID))
	}

	switch {
	case e.Signal != "" && e.Core:
		parts = append(parts, e.Signal+env.text(" (core dumped)"))
	case e.Signal != "":
		parts = append(parts, e.Signal)
	case e.Code != nil:
		parts = append(parts, env.text("code %d", *e.Code))
	}

	if e.Message != "" && e.Message != string(e.Kind) { // the kind says it already
		parts = append(parts, env.said(e.Message))
	}
	if e.Task != "" {
		parts = append(parts, env.text("by %s (%s)", cmp.Or(e.User, e.App), shortTask(e.Task)))
	}

	// Remove what a terminal would obey.
	for i, p := range parts {
		parts[i] = printable(p)
	}

	return strings.Join(parts, "  ")
}
