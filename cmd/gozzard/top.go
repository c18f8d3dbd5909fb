package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

func topChoices() []string { return []string{"cpu", "mem"} }

// newTopCommand is `gozzard top`.
func newTopCommand(env *cliEnv) *cobra.Command {
	o := psOptions{groupFlags: groupFlags{never: true}}
	cmd := &cobra.Command{
		Use:   "top [NAME...]",
		Short: "Show the busiest processes of the fleet",
		Long: `Show the processes that use the most CPU or memory, on the whole terminal, until q or Ctrl-C is
pressed. NAME may be a pattern: * is any text, ? is one character.

Keys: c sorts by CPU, m sorts by memory, q ends.

CPU is in percent of the whole machine, MEM is resident memory, as in "gozzard ps". If the output is
no terminal, the list is printed once.`,
		Example: `  gozzard top
  gozzard top 'web-*' -n shop --sort mem
  gozzard top --host 0:10.0.0.1 --interval 5s
  gozzard top --limit 5 | cat`,
		ValidArgsFunction: env.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			return env.top(cmd.Context(), &o, names)
		},
	}

	f := cmd.Flags()
	o.processFlags.register(env, cmd)
	o.registerStatus(env, cmd)
	f.StringVar(&o.by, "sort", "cpu", "`KEY` to sort by: cpu or mem")
	completeFixed(cmd, "sort", topChoices()...)
	f.IntVar(&o.limit, "limit", 20, "print at most this many if the output is no terminal; 0 prints all")
	f.DurationVar(&o.interval, "interval", 2*time.Second, "pause between two pictures")
	o.colour.register(cmd, f)
	o.output.register(cmd, f, "table", "json", "yaml")
	return cmd
}

// top shows the busiest processes, until the user ends it, or once if there is no terminal.
func (env *cliEnv) top(ctx context.Context, o *psOptions, names []string) error {
	// Check the flags.
	q, err := o.query(names)
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if !slices.Contains(topChoices(), o.by) {
		return usage("--sort %q: use %s", o.by, words(topChoices()))
	}

	// Connect.
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	// Show.
	v := &psView{env: env, o: o, c: c, q: q, paint: o.colour.painter(env), order: o.by}
	if env.screen && !o.output.structured() {
		o.watch = true
		return v.topScreen(ctx)
	}
	l, err := v.read(ctx)
	if err != nil {
		return withExitCode(err)
	}
	if o.output.structured() {
		return o.output.write(env.out, l.page(o.limit))
	}
	if l.total == 0 {
		env.remark("no processes found")
		return nil
	}
	table, _ := v.table(&l, 0)
	return checkWrite(fmt.Fprintln(env.out, strings.Join(table, "\n")))
}

// topScreen shows the list on the whole terminal.
func (v *psView) topScreen(ctx context.Context) error {
	press := func(key byte) bool {
		switch key {
		case 'c', 'C':
			v.o.by = "cpu"
		case 'm', 'M':
			v.o.by = "mem"
		case 'q', 'Q':
			return false
		}
		v.order = v.o.by
		return true
	}

	return v.env.watchScreen(ctx, v.o.interval, press, func(height int) (picture, error) {
		l, err := v.read(ctx)
		if err != nil {
			return picture{}, withExitCode(err)
		}

		// Only what fits is made into a table: the fleet may be large.
		const title, header = 1, 1
		room := max(height-title-header, 1)
		total := v.summary(&l)
		l.rows = l.rows[:min(len(l.rows), room)]
		table, _ := v.table(&l, room)
		sorted := v.env.text("by CPU")
		if v.order == "mem" {
			sorted = v.env.text("by memory")
		}
		return picture{title: v.topTitle(total, v.env.text("%d processes", l.total), sorted), lines: table}, nil
	})
}

// topTitle is the first line of the screen. If the terminal is too narrow for the number of processes in each state, it has
// the number of all: the keys must stay readable.
func (v *psView) topTitle(total, short, sorted string) string {
	clock := v.env.now().Format("15:04:05  ")
	rest := "  " + sorted + "  " + v.env.text("keys: c CPU, m memory, q quit")
	width, _ := v.env.size()
	if text.StringWidthWithoutEscSequences(clock+total+rest) > width {
		total = short
	}
	return clock + total + rest
}
