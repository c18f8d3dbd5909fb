package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/topology"
)

// maxPlanned bounds each part of a plan that is listed; the whole plan is had with -o json.
const maxPlanned = 200

// newTopologyCommand is `gozzard topology`.
func newTopologyCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topology",
		Short: "Manage businesses: sets, modules and service instances",
		Long: `Manage businesses: sets with their environment, modules, service instances on hosts, and the
processes of each. Processes can then be chosen by their place in every command: gozzard ps -e
'front.*.*.nginx.*'.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unknown command %q for %q", printable(args[0]), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}

	cmd.AddCommand(newApplyCommand(env), newExportCommand(env), newBusinessesCommand(env), newTreeCommand(env))
	return cmd
}

type applyOptions struct {
	client.ApplyOptions
	file   string
	output outputFlag
}

// newApplyCommand is `gozzard topology apply`.
func newApplyCommand(env *cliEnv) *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Apply a topology document to a business",
		Long: `Change a business to match a document: new items are added, different ones are changed, and missing
ones are removed. The plan is printed first. Applying the same document again changes nothing.
Processes keep running as they are: a changed definition applies from the next operation on.

FILE is YAML or JSON with one business; "-" reads standard input:

  biz: 2
  name: shop
  clouds: [{id: 0, name: default area}]
  sets:
    - id: 5
      name: front
      env: 3                              # 1 test, 2 experience, 3 formal
      modules:
        - id: 21
          name: web
          service_template_id: 26
          instances:
            - id: 5
              name: 10.0.0.1_web
              host: {ip: 10.0.0.1, cloud: 0}
              processes:
                - {id: 46, name: nginx, func_name: nginx, proc_num: 1, priority: 1, user: www, work_path: /opt/nginx,
                   pid_file: /run/nginx.pid, start_cmd: ./start.sh, stop_cmd: ./stop.sh, restart_cmd: ./restart.sh,
                   reload_cmd: ./reload.sh, face_stop_cmd: ./kill.sh, timeout: 60, start_check_secs: 5}
  config_templates: [{id: 2, name: main, file_name: nginx.conf, abs_path: /etc, owner: www, group: www, mode: "0644", bind: {templates: [26]}}]

A supervised process is not removed and does not get another alias or host, unless you give --prune:
then it is unregistered and keeps running without supervision. A business from BlueKing CMDB is not
replaced, unless you give --take-over; CMDB does not change it any more after that.

Exit code: 0 done or nothing to do, 1 rejected or failed, 2 the document is wrong (every fault is
listed with its line, and nothing is changed).`,
		Example: `  gozzard topology apply -f shop.yaml --dry-run
  gozzard topology apply -f shop.yaml
  gozzard topology export 2 | sed s/front/edge/ | gozzard topology apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.applyTopology(cmd.Context(), &o, cmd.InOrStdin())
		},
	}

	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "`FILE` with a business; - is standard input (required)")
	f.BoolVar(&o.DryRun, "dry-run", false, "print the plan and change nothing")
	f.BoolVar(&o.Prune, "prune", false, "also remove supervised processes: they are unregistered and keep running")
	f.BoolVar(&o.TakeOver, "take-over", false, "replace a business that comes from CMDB")
	o.output.register(cmd, f, "table", "json", "yaml")
	return cmd
}

// applyTopology shows the plan, then has it done as it was shown: a business that somebody else changed in between
// is left as it is.
func (env *cliEnv) applyTopology(ctx context.Context, o *applyOptions, in io.Reader) error {
	if err := o.output.check(); err != nil {
		return err
	}

	doc, biz, err := env.readBusiness(o.file, in)
	if err != nil {
		return err
	}

	c, err := env.connect()
	if err != nil {
		return err
	}

	defer c.Close()
	plan := o.ApplyOptions
	plan.DryRun = true
	done, err := c.ApplyTopology(ctx, biz, doc, plan)
	if err != nil {
		return env.explain(err)
	}
	if !o.output.structured() {
		if err := env.writePlan(&done); err != nil {
			return err
		}
	}

	if !o.DryRun {
		o.Version = &done.Version
		if done, err = c.ApplyTopology(ctx, biz, doc, o.ApplyOptions); err != nil {
			return env.explain(err)
		}
	}

	if o.output.structured() {
		return o.output.write(env.out, done)
	}

	return env.tellApplied(o, &done)
}

// readBusiness reads a document and looks it through, so that what is wrong is told without a server.
func (env *cliEnv) readBusiness(file string, in io.Reader) ([]byte, int, error) {
	if file == "" {
		return nil, 0, usage("give the document with -f FILE; -f - reads standard input")
	}

	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, 0, usage("cannot read the business: %w", err)
		}
		defer f.Close()
		in = f
	}

	doc, err := io.ReadAll(io.LimitReader(in, topology.MaxDocument+1))
	if err != nil {
		return nil, 0, usage("cannot read the business: %w", err)
	}

	b, err := topology.Parse(doc)
	if err != nil {
		return nil, 0, env.explain(err)
	}

	return doc, b.ID, nil
}

// explain tells an error with its faults on lines of their own.
func (env *cliEnv) explain(err error) error {
	var e *gozzard.Error
	if !errors.As(err, &e) || len(e.Faults) == 0 {
		return served(err)
	}

	env.remark("gozzard: %s:", printable(e.Message))

	for _, f := range e.Faults {
		env.remark("  %s", printable(f.String()))
	}

	var ex *exitError
	if errors.As(served(err), &ex) {
		return &exitError{ex.code, nil}
	}

	return served(err)
}

func (env *cliEnv) writePlan(a *client.Applied) error {
	for _, part := range []struct {
		sign  string
		items []client.PlanItem
	}{{"+", a.Plan.Added}, {"~", a.Plan.Changed}, {"-", a.Plan.Removed}} {
		for i, it := range part.items {
			if i == maxPlanned {
				env.remark("%s and %d more; -o json lists all", part.sign, len(part.items)-i)
				break
			}
			line := fmt.Sprintf("%s %s %d %s", part.sign, it.Kind, it.ID, it.Name)
			if err := written(fmt.Fprintln(env.out, printable(line))); err != nil {
				return err
			}
			for _, f := range it.Fields {
				if err := written(fmt.Fprintln(env.out, "    "+printable(f))); err != nil {
					return err
				}
			}
		}
	}

	if a.Plan.Empty() {
		return nil
	}

	return written(fmt.Fprintf(env.out, "plan: %d added, %d changed, %d removed\n", len(a.Plan.Added),
		len(a.Plan.Changed), len(a.Plan.Removed)))
}

func (env *cliEnv) tellApplied(o *applyOptions, a *client.Applied) error {
	if o.DryRun && a.Hosted > 0 && !o.Prune {
		env.remark("rejected without --prune: %d instances that would be removed are supervised, such as %s", a.Hosted,
			printable(a.Named[0].String()))
	}

	if a.TaskID != "" {
		env.remark("the removed processes are being unregistered; follow it with: gozzard task %s",
			printable(a.TaskID))
	}

	switch {
	case a.Applied:
		return written(fmt.Fprintf(env.out, "applied: business %d is at version %d\n", a.Biz, a.Version))
	case a.Plan.Empty():
		return written(fmt.Fprintf(env.out, "nothing to change: business %d is at version %d\n", a.Biz, a.Version))
	}

	return written(fmt.Fprintln(env.out, "dry run: nothing was changed"))
}

// newExportCommand is `gozzard topology export`.
func newExportCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "export [BIZ]",
		Short: "Print the document of a business",
		Long: `Print the document of a business in the form that "gozzard topology apply" reads. BIZ is optional
while there is only one business.`,
		Example: `  gozzard topology export 2 > shop.yaml
  gozzard topology export 2 -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withBusiness(cmd.Context(), args, &output,
				func(ctx context.Context, c *client.Client, biz int) error {
					return env.export(ctx, c, &output, biz)
				})
		},
	}

	output.register(cmd, cmd.Flags(), "yaml", "json")
	return cmd
}

func (env *cliEnv) export(ctx context.Context, c *client.Client, output *outputFlag, biz int) error {
	if output.format == "json" {
		doc, err := c.TopologyJSON(ctx, biz)
		if err != nil {
			return served(err)
		}
		return output.write(env.out, doc)
	}
	doc, err := c.Topology(ctx, biz)
	if err != nil {
		return served(err)
	}
	return written(env.out.Write(doc))
}

// withBusiness finds the business that an argument names, or the only one, and does something with it.
func (env *cliEnv) withBusiness(ctx context.Context, args []string, output *outputFlag,
	f func(context.Context, *client.Client, int) error) error {
	if err := output.check(); err != nil {
		return err
	}

	biz := 0

	if len(args) > 0 {
		var err error
		if biz, err = strconv.Atoi(args[0]); err != nil || biz < 1 {
			return usage("%q is not a business id, such as 2", printable(args[0]))
		}
	}

	c, err := env.connect()
	if err != nil {
		return err
	}

	defer c.Close()

	if biz == 0 {
		if biz, err = onlyBusiness(ctx, c); err != nil {
			return err
		}
	}

	return f(ctx, c, biz)
}

// newBusinessesCommand is `gozzard topology list`.
func newBusinessesCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the businesses",
		Long:  "List the businesses with their source: an applied file, or BlueKing CMDB.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.businesses(cmd.Context(), &output)
		},
	}
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

func (env *cliEnv) businesses(ctx context.Context, output *outputFlag) error {
	if err := output.check(); err != nil {
		return err
	}

	c, err := env.connect()
	if err != nil {
		return err
	}

	defer c.Close()
	list, err := c.Businesses(ctx)
	if err != nil {
		return served(err)
	}
	if output.structured() {
		return output.write(env.out, list)
	}
	if list.Count == 0 {
		env.remark("there is no business")
		return nil
	}

	t := newTable("BIZ", "NAME", "VERSION", "SOURCE", "SINCE")
	for _, b := range list.Businesses {
		t.add(strconv.Itoa(b.ID), b.Name, strconv.FormatInt(b.Version, 10), b.Source, b.At.UTC().Format(time.RFC3339))
	}

	return t.write(env.out)
}
