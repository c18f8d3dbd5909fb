package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// statusOptions are the flags of `gozzard status`.
type statusOptions struct {
	processFlags
	output outputFlag
}

// newStatusCommand is `gozzard status`.
func newStatusCommand(env *cliEnv) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Show the status of a process on all its hosts",
		Long: `Show the status of a process. One process on one host is shown in full, several as a table.

Exit code: 0 all of them are running, 3 one is not running or its host is offline, 5 there is no
process with this name.`,
		Example: `  gozzard status web -n shop
  gozzard status web --host 10.0.0.1
  gozzard status web -n shop >/dev/null || echo "web is not running everywhere"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("give the name of a process: gozzard status NAME; NAME may be a pattern")
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

	// Print the answer.
	rows := found.Processes
	switch {
	case o.output.structured():
		err = o.output.write(env.out, found)
	case len(rows) == 1:
		err = env.printProcess(&rows[0])
	case len(rows) > 1:
		err = env.processTable(rows, true, false).write(env.out)
	}
	if err != nil {
		return err
	}

	// Find the exit code.
	if len(rows) == 0 {
		return &exitError{exitNoMatch, fmt.Errorf("there is no process %q there", printable(name))}
	}

	for i := range rows {
		if rows[i].State != "running" || rows[i].Stale {
			return &exitError{exitNotRunning, nil}
		}
	}

	return nil
}

// printProcess prints everything about one process.
func (env *cliEnv) printProcess(p *client.Process) error {
	// The state.
	state := stateText(p)
	if p.Stale {
		state += "; its host is offline"
	}

	lines := [][2]string{
		{"process", p.Namespace + ":" + p.Name},
		{"host", refName(p.Host) + " (" + string(p.Host.Agent) + ")"},
		{"state", state},
		{"wanted", p.Wanted},
		{"hosted", yesNo(p.Managed)},
	}

	// What only a running process has.
	if p.State == "running" {
		lines = append(lines, [][2]string{
			{"pid", strconv.Itoa(int(p.PID))},
			{"up", age(env.now(), p.StartedAt.Unix())},
			{"cpu", percent(p.CPU) + " % of the machine"},
			{"memory", percent(p.Mem) + " % of the machine"},
			{"open files", strconv.Itoa(int(p.FD))},
		}...)
	}

	// The rest. Lines with an empty value are not printed.
	lines = append(lines, [][2]string{
		{"version", p.Version},
		{"labels", labelText(p.Labels)},
		{"registered", moment(p.RegisteredAt.Unix())},
		{"reported", moment(p.ReportedAt.Unix())},
		{"message", p.Message},
	}...)

	var b strings.Builder
	for _, l := range lines {
		if v := printable(l[1]); v != "" {
			fmt.Fprintf(&b, "%-11s %s\n", l[0], v)
		}
	}

	return checkWrite(fmt.Fprint(env.out, b.String()))
}

// moment is a Unix time as text. 0 is unknown and gives "".
func moment(unix int64) string {
	if unix <= 0 {
		return ""
	}
	return time.Unix(unix, 0).Format(time.RFC3339)
}
