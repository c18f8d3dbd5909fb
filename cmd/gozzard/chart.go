package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// chartOptions are the flags of `gozzard chart`.
type chartOptions struct {
	oneProcess
	since  string
	points int
	output outputFlag
}

// newChartCommand is `gozzard chart`.
func newChartCommand(env *cliEnv) *cobra.Command {
	var o chartOptions
	cmd := &cobra.Command{
		Use:   "chart NAME",
		Short: "Draw CPU, memory and restarts of a process over time",
		Long: `Draw what the agent of a host measured of a process: CPU in percent of one processor core, resident
memory, and restarts by the agent. The agent stores a day in steps of 10 seconds and 30 days in steps
of 5 minutes on the host. One host is asked: give --host if the process is on several. NAME may be the
name that the console shows, such as web or shop/web, if only one process has it.

A column is the average of its time for CPU and memory, and the number of restarts. It is empty where
nothing was measured: the process or the agent did not run.`,
		Example: `  gozzard chart web
  gozzard chart web -n shop --host 0:10.0.0.1 --since 24h
  gozzard chart web --since 720h -o json`,
		Args:              oneName,
		ValidArgsFunction: env.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.chart(cmd.Context(), &o, args[0])
		},
	}

	f := cmd.Flags()
	o.oneProcess.register(f)
	f.StringVar(&o.since, "since", "1h",
		"begin at this time, such as 2026-01-02T15:04:05Z, or this long ago, such as 24h; at most 30 days ago")
	f.IntVar(&o.points, "points", 0, "number of points, 1 to 1000; 0 means the width of the terminal, or 300 with -o json")
	o.output.register(cmd, f, "table", "json", "yaml")
	return cmd
}

// chart draws the history of a process.
func (env *cliEnv) chart(ctx context.Context, o *chartOptions, name string) error {
	// Check the flags.
	if err := o.output.check(); err != nil {
		return err
	}
	if o.points < 0 || o.points > gozzard.MaxHistoryPoints {
		return usage("--points must be 0 to %d", gozzard.MaxHistoryPoints)
	}
	from, err := env.sinceFlag(o.since)
	if err != nil {
		return err
	}
	to := env.now()
	if from.IsZero() || !from.Before(to) || to.Sub(from) > 30*24*time.Hour+time.Hour {
		return usage("--since %q: use a time within the last 30 days", o.since)
	}

	// Choose how many points fit.
	width, _ := env.size()
	points := o.points
	switch {
	case points > 0:
	case o.output.structured():
		points = 300
	default:
		points = min(max(width-axisWidth, 10), gozzard.MaxHistoryPoints)
	}

	// Read them, and draw them.
	return o.with(ctx, env, name, func(c *client.Client, key gozzard.Key, host string) error {
		h, err := c.History(ctx, key, host, from.Add(time.Second), to.Add(time.Second), points)
		if err != nil {
			return err
		}
		if o.output.structured() {
			return o.output.write(env.out, h)
		}
		names := shownNamesOf(ctx, c, slices.Values([]string{key.Namespace}))
		return env.drawHistory(names.whole(key.Namespace, key.Name), &h)
	})
}

// drawHistory prints the charts.
func (env *cliEnv) drawHistory(title string, h *client.History) error {
	cpu, mem, restarts := lineOf(h.CPU), lineOf(h.Mem), lineOf(h.Restarts)
	if !anyOf(cpu) && !anyOf(mem) && !anyOf(restarts) {
		env.remark("nothing was measured in this time: the process or the agent did not run, or was just started")
		return nil
	}

	for i := range mem {
		mem[i] = max(mem[i]/(1<<20), hole)
		if h.Mem[i] == nil {
			mem[i] = hole
		}
	}

	times := timeAxis(time.Unix(h.From, 0), time.Duration(h.Step)*time.Second, len(cpu))
	var b strings.Builder
	head := func(format string, line []float64, unit func(float64) string) {
		now, average, most := summary(line)
		b.WriteString(env.text(format, unit(now), unit(average), unit(most)) + "\n")
	}

	b.WriteString(printable(title) + "\n\n")
	head("CPU, %% of one core: now %s, average %s, most %s", cpu, percentText)
	b.WriteString(draw(cpu, 8, percentText) + times + "\n")
	head("Memory: now %s, average %s, most %s", mem, mebibyteText)
	b.WriteString(draw(mem, 8, mebibyteText) + times + "\n")

	total := 0.0
	for _, v := range restarts {
		total += max(v, 0) // a hole is below 0
	}
	b.WriteString(env.text("Restarts: %.0f", total) + "\n")
	if total > 0 {
		b.WriteString(draw(restarts, 4, numberText) + times)
	}
	return checkWrite(env.out.Write([]byte(b.String())))
}
