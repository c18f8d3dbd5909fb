package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// statusOptions are the flags of `gozzard status`.
type statusOptions struct {
	processFlags
	output outputFlag
	colour colourFlag
	all    bool
}

// newStatusCommand is `gozzard status`.
func newStatusCommand(env *cliEnv) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Show the status of a process on all its hosts",
		Long: `Show whether a process is well. NAME may be a pattern.

One process on one host is shown in full: its state and the reason, its last exit, its next start or
run, health, limits and command, its last events and the last lines of its output. A part that the
server does not answer is named, and the rest is shown.

Of several processes a summary is shown first: how many are in which state, on how many hosts and in
which versions. A table follows, the worst first: all of them up to 20, otherwise the first 20 that
are not well. --all lists all.

Exit code: 0 all of them are well: running, scheduled or completed; 3 one is not; 5 there is no
process with this name.`,
		Example: `  gozzard status web -n shop
  gozzard status web --host 10.0.0.1
  gozzard status 'web-*' --all
  gozzard status web -n shop >/dev/null || echo "web is not well everywhere"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("give one NAME: gozzard status NAME; for several processes give a pattern, such as 'web-*'")
			}
			return nil
		},
		ValidArgsFunction: env.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.status(cmd.Context(), &o, args[0])
		},
	}

	o.processFlags.register(env, cmd)
	o.registerStatus(env, cmd)
	cmd.Flags().BoolVar(&o.all, "all", false, "list all processes, not only those that are not well")
	o.colour.register(cmd, cmd.Flags())
	o.output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// status prints the status of a process on all its hosts. Its error is the exit code.
func (env *cliEnv) status(ctx context.Context, o *statusOptions, name string) error {
	// Check the flags.
	q, err := o.query([]string{name})
	if err != nil {
		return err
	}
	if err := o.output.check(); err != nil {
		return err
	}
	if err := o.colour.check(); err != nil {
		return err
	}

	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	// Ask the server.
	found, err := fetchProcesses(ctx, c, q, 0)
	if err != nil {
		return withExitCode(err)
	}

	if len(found.Processes) == 0 && !isPattern(name) && len(q.Namespaces)+len(q.Hosts) <= 1 {
		if found, err = env.statusOfShown(ctx, c, &q, name); err != nil {
			return withExitCode(err)
		}
	}

	// Print the answer.
	rows := found.Processes
	switch {
	case o.output.structured():
		err = o.output.write(env.out, found)
	case len(rows) == 1:
		err = env.printProcess(ctx, c, &rows[0], o.colour.painter(env))
	case len(rows) > 1:
		err = env.printProcesses(rows, o.all, o.colour.painter(env))
	}
	if err != nil {
		return err
	}

	// Find the exit code.
	if len(rows) == 0 {
		if len(q.States)+len(q.Labels) > 0 { // the name may be right
			return notFound("no registered process matches %s; see gozzard ps", words(q.Names))
		}
		return sought{namespaces: q.Namespaces, names: q.Names, hosts: q.Hosts}.noMatch(ctx, c)
	}

	for i := range rows {
		if !isWell(&rows[i]) {
			return &exitError{exitNotRunning, nil}
		}
	}

	return nil
}

// statusOfShown finds the processes of a business that people know by a name, such as shop/web for GSEKIT_BIZ_2:web_1.
func (env *cliEnv) statusOfShown(ctx context.Context, c *client.Client, q *client.ProcessQuery, name string) (
	client.ProcessPage, error) {
	one := oneProcess{namespace: strings.Join(q.Namespaces, ""), host: strings.Join(q.Hosts, "")}
	page := client.ProcessPage{Processes: []client.Process{}}
	rows, err := one.findShown(ctx, c, name)
	for i := range rows {
		if len(q.States)+len(q.Labels) == 0 {
			page.Processes = append(page.Processes, rows[i])
		}
	}
	page.Count = len(page.Processes)
	return page, err
}

// moment is a Unix time as text. 0 is unknown and gives "".
func moment(unix int64) string { return momentOf(client.UnixTime(unix)) }

// momentOf is a time as text, in the time zone of the caller. A time that is not known gives "".
func momentOf(t client.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.RFC3339)
}

// momentAgo is a time as text and how long ago it was.
func (env *cliEnv) momentAgo(t client.Time) string {
	if t.IsZero() {
		return ""
	}
	return momentOf(t) + env.text(" (%s ago)", since(env.now(), t.Time))
}
