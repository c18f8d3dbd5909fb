package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// processFlags are the flags that choose processes.
type processFlags struct {
	namespaces []string
	hosts      []string
	states     []string
	labels     []string
	hosted     bool
	flags      *pflag.FlagSet
}

func (p *processFlags) register(f *pflag.FlagSet) {
	p.flags = f
	f.StringArrayVarP(&p.namespaces, "namespace", "n", nil,
		"`NAMESPACE`, or a pattern such as 'shop-*'; may be repeated")
	f.StringArrayVar(&p.hosts, "host", nil, "`HOST` as cloud:ip, an IP address or an agent id; may be repeated")
}

// registerLabel adds the flag -l.
func (p *processFlags) registerLabel(f *pflag.FlagSet) {
	f.StringArrayVarP(&p.labels, "label", "l", nil, "`LABEL` as key=value, key!=value, key or !key; the value may be a "+
		"pattern; may be repeated, and all must match")
}

// query is the question to the server that the flags and names make.
func (p *processFlags) query(names []string) (client.ProcessQuery, error) {
	q := client.ProcessQuery{Namespaces: p.namespaces, Names: names, Hosts: p.hosts, States: p.states,
		Labels: p.labels}
	for _, l := range p.labels {
		if _, err := gozzard.ParseLabelRule(l); err != nil {
			return q, usage("-l %q: %w; use key=value, key!=value, key or !key", l, err)
		}
	}
	if _, err := parseHostFlags(p.hosts); err != nil {
		return q, err
	}
	if p.flags.Changed("hosted") {
		q.Managed = &p.hosted
	}
	return q, nil
}

// isUnfiltered reports whether a query asks for all processes.
func isUnfiltered(q *client.ProcessQuery) bool {
	return len(q.Namespaces)+len(q.Names)+len(q.Hosts)+len(q.States)+len(q.Labels)+q.Biz == 0 && q.Managed == nil
}

// psOptions are the flags of `gozzard ps`.
type psOptions struct {
	processFlags
	scopeFlags
	output   outputFlag
	limit    int
	watch    bool
	interval time.Duration
}

// newPsCommand is `gozzard ps`.
func newPsCommand(env *cliEnv) *cobra.Command {
	var o psOptions
	cmd := &cobra.Command{
		Use:   "ps [NAME...]",
		Short: "List processes of the fleet",
		Long: `List processes with their last known status. NAME may be a pattern: * is any text, ? is one
character. A star after the state marks a host that is offline: the row shows the last status that
it reported.` + scopeHelp,
		Example: `  gozzard ps
  gozzard ps 'web-*' -n shop --state stopped
  gozzard ps --host 0:10.0.0.1 -o wide
  gozzard ps --hosted=false -o json
  gozzard ps -l tier=front -l 'zone!=test'
  gozzard ps -n shop --watch
  gozzard ps --biz 2 -e 'front.web.10\.0\.0\.[1-9]_web.*.*'
  gozzard ps --set front --env formal --state stopped`,
		ValidArgsFunction: env.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			return env.ps(cmd.Context(), &o, names)
		},
	}

	f := cmd.Flags()
	o.processFlags.register(f)
	o.scopeFlags.register(f)
	o.registerLabel(f)
	f.StringArrayVar(&o.states, "state", nil, "`STATE` running, stopped or unregistered; may be repeated")
	f.BoolVar(&o.hosted, "hosted", true, "only supervised processes; --hosted=false for the others")
	f.IntVar(&o.limit, "limit", 1000, "list at most this many; 0 lists all")
	f.BoolVarP(&o.watch, "watch", "w", false, "repeat the list until Ctrl-C")
	f.DurationVar(&o.interval, "interval", 2*time.Second, "pause between the lists of --watch")
	o.output.register(cmd, f, "table", "wide", "json", "yaml")
	return cmd
}

// ps lists processes, once or until Ctrl-C.
func (env *cliEnv) ps(ctx context.Context, o *psOptions, names []string) error {
	// Check the flags.
	q, err := o.query(names)
	if err != nil {
		return err
	}
	if err := o.output.check(); err != nil {
		return err
	}
	if o.limit < 0 || o.interval < 100*time.Millisecond {
		return usage("--limit must be 0 or more, --interval 100ms or more")
	}

	// Connect, and find the business.
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	if q.BusinessSelection, err = o.scope(ctx, c); err != nil {
		return err
	}

	// List.
	for {
		err := env.listOnce(ctx, c, o, q)
		if !o.watch {
			return err
		}
		if err != nil && ctx.Err() == nil {
			env.remark("gozzard: %v", err) // the server may be restarting: try again
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.interval):
		}
	}
}

// listOnce prints the list one time.
func (env *cliEnv) listOnce(ctx context.Context, c *client.Client, o *psOptions, q client.ProcessQuery) error {
	found, err := fetchProcesses(ctx, c, q, o.limit)
	if err != nil {
		return withExitCode(err)
	}

	// Clear the screen between the lists of --watch.
	count, rows := found.Count, found.Processes
	if o.watch && env.screen {
		if err := checkWrite(fmt.Fprint(env.out, "\x1b[H\x1b[2J")); err != nil {
			return err
		}
	}

	// Print the list.
	if o.output.structured() {
		if err := o.output.write(env.out, found); err != nil {
			return err
		}
	} else if len(rows) > 0 {
		table := env.processTable
		if q.Biz != 0 {
			table = env.instanceTable
		}
		if err := table(rows, o.output.format == "wide").write(env.out); err != nil {
			return err
		}
	}

	// Say what is not in it.
	if found.Next > 0 {
		env.remark("%d of %d processes; --limit 0 lists all", found.Next, count)
	}
	if count == 0 {
		env.remark("no processes found")
		if !isUnfiltered(&q) && !o.watch {
			return &exitError{exitNoMatch, nil}
		}
	}

	return nil
}

// fetchProcesses reads at most limit processes; 0 reads all. Next is the place where it stopped, 0 at the end.
func fetchProcesses(ctx context.Context, c *client.Client, q client.ProcessQuery,
	limit int) (client.ProcessPage, error) {
	all := client.ProcessPage{Processes: []client.Process{}}
	for {
		n := client.MaxPage
		if limit > 0 {
			n = min(n, limit-all.Next)
		}
		page, err := c.Processes(ctx, q, all.Next, n)
		if err != nil {
			return all, err
		}
		all.Processes = append(all.Processes, page.Processes...)
		all.Count, all.Next = page.Count, page.Next
		if page.Next == 0 || page.Next == limit {
			return all, nil
		}
	}
}

// processTable is the table of processes.
func (env *cliEnv) processTable(rows []client.Process, wide bool) *textTable {
	header := []string{"NAMESPACE", "NAME", "HOST", "STATE", "PID", "HOSTED", "CPU%", "MEM%", "UP"}
	if wide {
		header = append(header, "VERSION", "WANTED", "FD", "REPORTED", "AGENT", "LABELS", "MESSAGE")
	}

	t := newTable(header...)
	for i := range rows {
		p := &rows[i]
		cells := []string{p.Namespace, p.Name, refName(p.Host), stateText(p), "",
			yesNo(p.Managed), "", "", ""}
		if p.State == "running" {
			cells[4], cells[6], cells[7], cells[8] = strconv.Itoa(int(p.PID)), percent(p.CPU), percent(p.Mem),
				age(env.now(), p.StartedAt.Unix())
		}
		if wide {
			cells = append(cells, p.Version, p.Wanted, strconv.Itoa(int(p.FD)), ago(age(env.now(), p.ReportedAt.Unix())),
				string(p.Host.Agent), labelText(p.Labels), p.Message)
		}
		t.add(cells...)
	}

	return t
}

// instanceTable is the table of the processes of a business, with a row for each instance.
func (env *cliEnv) instanceTable(rows []client.Process, wide bool) *textTable {
	header := []string{"SET", "MODULE", "PROCESS", "ID", "HOST", "STATE", "PID", "HOSTED", "CPU%", "MEM%", "UP"}
	if wide {
		header = append(header, "ENV", "SERVICE", "INST", "PRIORITY", "VERSION", "WANTED", "FD", "REPORTED", "AGENT",
			"MESSAGE")
	}

	t := newTable(header...)
	for i := range rows {
		p, at := &rows[i], rows[i].Topology
		if at == nil { // from a server without businesses
			at = &client.Place{}
		}
		host := refName(p.Host)
		cells := []string{at.SetName, at.ModuleName, p.Name, strconv.Itoa(at.Process), host, stateText(p), "",
			yesNo(p.Managed), "", "", ""}
		if p.State == "running" {
			cells[6], cells[8], cells[9], cells[10] = strconv.Itoa(int(p.PID)), percent(p.CPU), percent(p.Mem),
				age(env.now(), p.StartedAt.Unix())
		}
		if wide {
			cells = append(cells, envText(at.Env), at.ServiceName, strconv.Itoa(at.Inst), strconv.Itoa(at.Priority),
				p.Version, p.Wanted, strconv.Itoa(int(p.FD)),
				ago(age(env.now(), p.ReportedAt.Unix())), string(p.Host.Agent), p.Message)
		}
		t.add(cells...)
	}

	return t
}

// stateText is the state of a process in words.
func stateText(p *client.Process) string {
	if p.LastState != "" {
		return stateWords(p.State) + " (was " + stateWords(p.LastState) + ")"
	}
	return stateWords(p.State)
}

func stateWords(state string) string { return strings.ReplaceAll(state, "_", " ") }

// hostName is cloud:ip, or the agent id of a host without a known address.
func hostName(cloud int, ip, agent string) string {
	if ip == "" {
		return agent
	}
	return strconv.Itoa(cloud) + ":" + ip
}

// refName is the name of a host of an answer.
func refName(h client.HostRef) string { return hostName(h.Cloud, h.IP, string(h.Agent)) }

func labelText(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ",")
}

func ago(s string) string {
	if s == "" {
		return "never"
	}
	return s + " ago"
}
