package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// psOptions are the flags of `gozzard ps`.
type psOptions struct {
	processFlags
	scopeFlags
	sortFlags
	groupFlags
	output   outputFlag
	colour   colourFlag
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
character.

States, the worst first:
  crash loop    it ended again and again soon after its start; it is started again at NEXT
  failed        it ended with a failure or could not be started, and is not started again
  unhealthy     it runs, and its health check fails
  backing off   it ended or could not be started; it is started again at NEXT
  unknown       its host does not report; the state in brackets is the last one
  starting      its start is not over, or it waits for other processes
  unregistered  its host does not know it
  stopped       it does not run, and nothing is wrong with that
  running       it runs
  scheduled     a periodic process that waits for its next run, at NEXT
  completed     a process that ended with 0, as it should

RESTARTS counts restarts by the agent since a person last started or stopped the process. CPU is in
percent of the whole machine, MEM is resident memory; both cover all processes that belong to the
one in the row, and are - until the agent has measured them, some seconds after the start.

The order is by namespace, name and host, in a business by process id; in --watch on a terminal the worst states are first,
because the screen may cut the rest off. --sort sorts everything that matches before --limit cuts it.
Numbers are listed with the largest first.

On a terminal, names with more than 50 processes are grouped: one row for each name, with counts by
state. JSON and YAML are never grouped.` + scopeHelp,
		Example: `  gozzard ps
  gozzard ps 'web-*' -n shop --state stopped
  gozzard ps --state crash-loop --state failed
  gozzard ps --sort mem --limit 10
  gozzard ps --host 0:10.0.0.1 -o wide
  gozzard ps --managed=false -o json
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
	o.processFlags.register(env, cmd)
	o.registerStatus(env, cmd)
	o.scopeFlags.register(f)
	o.sortFlags.register(cmd)
	o.groupFlags.register(cmd)
	o.registerManaged(cmd)
	f.IntVar(&o.limit, "limit", 1000, "list at most this many; 0 lists all")
	f.BoolVarP(&o.watch, "watch", "w", false, "repeat the list until Ctrl-C; on a terminal it fills the screen")
	f.DurationVar(&o.interval, "interval", 2*time.Second, "pause between the lists of --watch")
	o.colour.register(cmd, f)
	o.output.register(cmd, f, "table", "wide", "json", "yaml")
	return cmd
}

// check rejects flags that are wrong on their own.
func (o *psOptions) check() error {
	if o.limit < 0 {
		return usage("--limit must be 0 or more")
	}
	if o.interval < 100*time.Millisecond {
		return usage("--interval must be 100ms or more")
	}
	for _, err := range []error{o.output.check(), o.colour.check(), o.sortFlags.check(), o.groupFlags.check(o.by)} {
		if err != nil {
			return err
		}
	}
	return nil
}

// ps lists processes, once or until Ctrl-C.
func (env *cliEnv) ps(ctx context.Context, o *psOptions, names []string) error {
	// Check the flags.
	q, err := o.query(names)
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
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
	v := &psView{env: env, o: o, c: c, q: q, paint: o.colour.painter(env), order: o.by}
	if v.order == "" && q.Biz == 0 { // the server has the processes of a business in the order of their ids
		v.order = "name"
	}
	switch {
	case o.watch && env.screen && !o.output.structured():
		return v.watchScreen(ctx)
	case o.watch:
		return v.repeat(ctx)
	}
	return v.listOnce(ctx)
}

// repeat prints the list again and again until Ctrl-C.
func (v *psView) repeat(ctx context.Context) error {
	for {
		err := v.listOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !passes(err):
			return err
		case err != nil:
			v.env.remark("gozzard: %v; trying again", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(v.o.interval):
		}
	}
}

// passes reports whether an error may pass without a change of the command: the server may be restarting.
func passes(err error) bool {
	var ex *exitError
	return errors.As(err, &ex) && ex.err != nil && (ex.code == exitFailed || ex.code == exitTimedOut)
}

// watchScreen shows the list on the whole terminal until Ctrl-C. Its last words are the totals.
func (v *psView) watchScreen(ctx context.Context) error {
	if v.o.by == "" {
		v.order = "state"
	}
	last := ""
	err := v.env.watchScreen(ctx, v.o.interval, nil, func(height int) (picture, error) {
		l, err := v.read(ctx)
		if err != nil {
			return picture{}, withExitCode(err)
		}
		const title, header = 1, 1
		table, _ := v.table(&l, height-title-header)
		last = v.summary(&l)
		return picture{title: v.env.now().Format("15:04:05  ") + last, lines: table,
			hint: "choose with NAME, --state or -l, or enlarge the window"}, nil
	})
	if err == nil && last != "" {
		v.env.remark("%s", last)
	}
	return err
}

// listOnce prints the list one time.
func (v *psView) listOnce(ctx context.Context) error {
	l, err := v.read(ctx)
	if err != nil {
		return withExitCode(err)
	}

	// Print the list.
	env := v.env
	if v.o.output.structured() {
		if err := v.o.output.write(env.out, l.page(v.o.limit)); err != nil {
			return err
		}
	} else if l.total > 0 {
		table, notes := v.table(&l, 0)
		if err := checkWrite(fmt.Fprintln(env.out, strings.Join(table, "\n"))); err != nil {
			return err
		}
		for _, n := range notes {
			env.remark("%s", n)
		}
	}

	// Say how many there are.
	switch {
	case l.total == 0:
		env.remark("no processes found")
		if !isUnfiltered(&v.q) && !v.o.watch {
			return &exitError{exitNoMatch, noneOf(ctx, v.c, &v.q)}
		}
	case !v.o.output.structured():
		env.remark("%s", v.summary(&l))
	case l.next > 0 || v.o.limit > 0 && l.total > v.o.limit && v.q.Biz == 0:
		env.remark("%d of %d processes; --limit 0 lists all", v.o.limit, l.total)
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
