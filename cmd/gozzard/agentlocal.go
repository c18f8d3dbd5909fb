package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/agentsock"
)

// localOptions are what the commands have in common that ask the agent of this host.
type localOptions struct {
	data   string
	socket string
	output outputFlag
}

// localHelp is what all of them should say.
const localHelp = `

This command talks to the agent over its Unix socket, so it works without a server. Root and the
agent's account have full access. Members of the group that "gozzard agent --socket-group" names may
read. Processes are started and stopped by signed commands from the server only.`

// addLocalCommands adds the commands that ask the agent of this host.
func addLocalCommands(agent *cobra.Command) {
	env := &cliEnv{out: os.Stdout, errs: os.Stderr, lookup: os.LookupEnv, now: time.Now}
	agent.AddCommand(
		env.localCommand(&cobra.Command{
			Use:   "status",
			Short: "Show the state of the agent of this host",
			Long: `Show the agent's identity, its session with the server, why the connection is down, the key and the
policy in use, and what is missing on this host. The exit code is 3 when no agent is running, and 0
otherwise, with or without a server.` + localHelp,
			Example: `  gozzard agent status --data /var/lib/gozzard-agent
  gozzard agent status --socket /run/gozzard/agent.sock -o json`,
		}, (*cliEnv).localStatus, "table", "json", "yaml"),
		env.localCommand(&cobra.Command{
			Use:   "ps",
			Short: "List the processes of the agent of this host",
			Long: `List the processes of this host as the agent sees them now. SINCE is how long a process has been
running or stopped. RESTARTS is how often the agent restarted it since the agent started.` + localHelp,
			Example: `  gozzard agent ps --data /var/lib/gozzard-agent
  gozzard agent ps --data /var/lib/gozzard-agent -o wide`,
		}, (*cliEnv).localPs, "table", "wide", "json", "yaml"),
		env.localCommand(&cobra.Command{
			Use:   "reconnect",
			Short: "Reconnect the agent of this host to its server",
			Long: `Close the agent's connection to the server, if there is one, and connect again at once. Use it after
a change of the network: otherwise the agent waits until it notices the silence, and then for its
next attempt. Processes and operations are not touched. Only root and the agent's account may do
this.` + localHelp,
			Example: `  gozzard agent reconnect --data /var/lib/gozzard-agent`,
		}, (*cliEnv).localReconnect),
	)
}

// localCommand completes a command that asks the agent; known are the forms of its output, none for no output.
func (env *cliEnv) localCommand(cmd *cobra.Command,
	run func(*cliEnv, context.Context, *agentsock.Client, *outputFlag) error, known ...string) *cobra.Command {
	var o localOptions
	cmd.Args = cobra.NoArgs
	cmd.Flags().StringVar(&o.data, "data", "./agent", "state folder of the agent")
	cmd.Flags().StringVar(&o.socket, "socket", agentd.SocketName,
		"`PATH` of the agent's socket; a name without a folder is in the state folder")

	if len(known) > 0 {
		o.output.register(cmd, cmd.Flags(), known...)
	}

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		path, err := agentd.SocketPath(o.data, o.socket)
		if err != nil {
			return failed(err)
		}
		if path == "" {
			return usage("--socket %q: give the path of the agent's socket", o.socket)
		}
		if len(known) > 0 {
			if err := o.output.check(); err != nil {
				return err
			}
		}

		return told(run(env, cmd.Context(), agentsock.NewClient(path), &o.output))
	}

	return cmd
}

// told gives an error of the agent's socket its exit code; nil stays nil.
func told(err error) error {
	var done *exitError
	switch {
	case err == nil, errors.As(err, &done):
		return err
	case errors.Is(err, agentsock.ErrNotRunning):
		return &exitError{exitNotRunning, err}
	case errors.Is(err, agentsock.ErrNotAllowed):
		return &exitError{exitNotAllowed, errors.New(printable(err.Error()))}
	}
	return &exitError{exitFailed, errors.New(printable(err.Error()))}
}

func (env *cliEnv) localReconnect(ctx context.Context, c *agentsock.Client, _ *outputFlag) error {
	if err := c.Reconnect(ctx); err != nil {
		return err
	}
	return written(fmt.Fprintln(env.out,
		"the agent is reconnecting; run \"gozzard agent status\" to see the result"))
}

func (env *cliEnv) localPs(ctx context.Context, c *agentsock.Client, o *outputFlag) error {
	found, err := c.Processes(ctx)
	if err != nil {
		return err
	}
	if o.structured() {
		return o.write(env.out, found)
	}
	if found.Count == 0 {
		env.remark("the agent has no process")
		return nil
	}

	wide := o.format == "wide"
	header := []string{"NAMESPACE", "NAME", "STATE", "PID", "HOSTED", "CPU%", "MEM%", "SINCE", "RESTARTS"}

	if wide {
		header = append(header, "VERSION", "WANTED", "FD")
	}

	t := newTable(append(header, "MESSAGE")...)
	for i := range found.Processes {
		p := &found.Processes[i]
		cells := []string{p.Namespace, p.Name, p.State, "", yesNo(p.Hosted), "", "", age(env.now(), p.Since),
			strconv.Itoa(p.Restarts)}
		if p.State == "running" {
			cells[3], cells[5], cells[6] = strconv.Itoa(int(p.PID)), percent(p.CPU), percent(p.Mem)
		}
		if wide {
			cells = append(cells, p.Version, p.Wanted, strconv.Itoa(int(p.FD)))
		}
		t.add(append(cells, p.Message)...)
	}

	if err := t.write(env.out); err != nil {
		return err
	}
	if n := len(found.Processes); n < found.Count {
		env.remark("%d of %d processes", n, found.Count)
	}

	return nil
}

func (env *cliEnv) localStatus(ctx context.Context, c *agentsock.Client, o *outputFlag) error {
	st, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if o.structured() {
		return o.write(env.out, st)
	}

	var b strings.Builder
	for _, l := range env.statusLines(&st) {
		if v := printable(l[1]); v != "" {
			fmt.Fprintf(&b, "%-11s %s\n", l[0], v)
		}
	}

	return written(fmt.Fprint(env.out, b.String()))
}

// statusLines puts a status into words; empty ones are left out.
func (env *cliEnv) statusLines(st *agentsock.Status) [][2]string {
	now := env.now()
	session := fmt.Sprintf("open for %s (number %d)", age(now, st.Session.Since), st.Session.Number)

	if !st.Session.Open {
		session = "none for " + age(now, st.Session.Since)
		if st.Session.HeardAt == 0 {
			session += ", since the agent started"
		}
	}

	link := "up"

	if !st.Link.Up {
		link = "down"
		if st.Link.Fault != "" {
			link += ": " + st.Link.Fault
		}
	}

	root := "root rejected"

	if st.Policy.AllowRoot {
		root = "root allowed"
	}

	rules := ""

	if st.Policy.File != "" {
		rules = st.Policy.File + " (" + root + ")"
	}

	refused := ""

	if st.Refused > 0 {
		refused = strconv.FormatUint(st.Refused, 10) + " connections of other accounts to the local socket"
	}

	lines := [][2]string{
		{"agent", string(st.Agent)},
		{"version", st.Version},
		{"pid", fmt.Sprintf("%d (uid %d, mode %s), up for %s", st.PID, st.UID, st.Mode, age(now, st.StartedAt))},
		{"host", fmt.Sprintf("%s, cloud %d, %s", st.Hostname, st.Cloud, strings.Join(st.IPs, ", "))},
		{"server", st.Server},
		{"session", session},
		{"link", link},
		{"heard", moment(st.Session.HeardAt)},
		{"key", fmt.Sprintf("%s, epoch %d", st.Key.ID, st.Key.Epoch)},
		{"certificate", untilText(st.Certificate)},
		{"policy", rules},
		{"processes", strconv.Itoa(st.Processes)},
		{"journal", fmt.Sprintf("%s at %d", st.Journal.ID, st.Journal.LSN)},
		{"refused", refused},
	}
	for _, d := range st.Degraded {
		lines = append(lines, [2]string{"degraded", d})
	}

	return lines
}

func untilText(unix int64) string {
	if unix <= 0 {
		return ""
	}
	return "until " + moment(unix)
}
