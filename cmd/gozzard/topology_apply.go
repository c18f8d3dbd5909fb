package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/topology"
)

// maxPlanned limits each part of the plan that is printed. -o json has all of it.
const maxPlanned = 200

// applyOptions are the flags of `gozzard topology apply`.
type applyOptions struct {
	client.ApplyOptions
	file   string
	output outputFlag
}

// newTopologyApplyCommand is `gozzard topology apply`.
func newTopologyApplyCommand(env *cliEnv) *cobra.Command {
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
  config_templates:
    - {id: 2, name: main, file_name: nginx.conf, abs_path: /etc, owner: www, group: www, mode: "0644",
       bind: {templates: [26]}}

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

// applyTopology prints the plan and then applies it. The server rejects it if another caller changed the business in
// between.
func (env *cliEnv) applyTopology(ctx context.Context, o *applyOptions, in io.Reader) error {
	if err := o.output.check(); err != nil {
		return err
	}

	// Read the document.
	doc, biz, err := env.readBusiness(o.file, in)
	if err != nil {
		return err
	}

	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	done, err := env.changeTopology(o, func(with client.ApplyOptions) (client.Applied, error) {
		return c.ApplyTopology(ctx, biz, doc, with)
	})
	if err != nil {
		return err
	}
	if o.output.structured() {
		return writeApplied(env, o, &done)
	}

	return env.printApplied(o, &done)
}

// changeTopology makes a change as a plan first, prints the plan, and then makes the change if the business still has the
// version of the plan.
func (env *cliEnv) changeTopology(o *applyOptions, change func(client.ApplyOptions) (client.Applied, error)) (
	client.Applied, error) {
	plan := o.ApplyOptions
	plan.DryRun = true
	done, err := change(plan)
	if err != nil {
		return done, env.printFaults(err)
	}
	if !o.output.structured() {
		if err := env.writePlan(&done); err != nil {
			return done, err
		}
	}
	if o.DryRun {
		return done, nil
	}

	o.Version = &done.Version
	if done, err = change(o.ApplyOptions); err != nil {
		return done, env.printFaults(err)
	}
	return done, nil
}

// readBusiness reads and checks a document, so that a fault is reported without a server.
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

	b, err := topology.Parse(doc, topology.Flat{Names: specjson.FlatNames(), Read: specjson.ReadProcess})
	if err != nil {
		return nil, 0, env.printFaults(err)
	}

	return doc, b.ID, nil
}

// printFaults prints an error with a line for each fault. Its error has the exit code only.
func (env *cliEnv) printFaults(err error) error {
	var e *gozzard.Error
	if !errors.As(err, &e) || len(e.Faults) == 0 {
		return withExitCode(err)
	}

	env.remark("gozzard: %s", printable(env.chinese.Message(e.Message)+strings.TrimSpace(env.colon())))
	for _, f := range e.Faults {
		env.remark("  %s", printable(env.faultText(f)))
	}

	var ex *exitError
	if errors.As(withExitCode(err), &ex) {
		return &exitError{ex.code, nil}
	}

	return withExitCode(err)
}

// writePlan prints what a document adds, changes and removes.
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
			line := fmt.Sprintf("%s %s %d %s", part.sign, env.kindOfItem(it.Kind), it.ID, it.Name)
			if err := checkWrite(fmt.Fprintln(env.out, printable(line))); err != nil {
				return err
			}
			for _, f := range it.Fields {
				if err := checkWrite(fmt.Fprintln(env.out, "    "+printable(f))); err != nil {
					return err
				}
			}
		}
	}

	if a.Plan.Empty() {
		return nil
	}

	return env.say("plan: %d added, %d changed, %d removed\n", len(a.Plan.Added),
		len(a.Plan.Changed), len(a.Plan.Removed))
}

// kindOfItem is a kind of items of a plan in the language of the reader.
func (env *cliEnv) kindOfItem(kind string) string {
	switch kind {
	case "business":
		return env.text("business")
	case "cloud":
		return env.text("cloud")
	case "set":
		return env.text("set")
	case "module":
		return env.text("module")
	case "service instance":
		return env.text("service instance")
	case "process":
		return env.text("process")
	case "config template":
		return env.text("config template")
	}
	return kind // of a later version
}

// writeApplied writes an answer as it is. Its error has the exit code of a change that would be rejected.
func writeApplied(env *cliEnv, o *applyOptions, a *client.Applied) error {
	if err := o.output.write(env.out, a); err != nil || a.Rejected == "" {
		return err
	}
	return &exitError{exitFailed, nil}
}

// printApplied prints what was applied.
func (env *cliEnv) printApplied(o *applyOptions, a *client.Applied) error {
	if o.DryRun && a.Managed > 0 && !o.Prune {
		first := a.Named[0]
		first.Text = env.chinese.Message(first.Text)
		env.remark("rejected without --prune: %d instances that would be removed are supervised, such as %s", a.Managed,
			printable(first.String()))
	}
	if a.TaskID != "" {
		env.remark("the removed processes are being unregistered; follow it with: gozzard task %s",
			printable(shortTask(a.TaskID)))
	}

	for _, w := range a.Warnings {
		env.remark("warning: %s", printable(env.chinese.Message(w)))
	}
	if a.Rejected != "" && (a.Managed == 0 || o.Prune) {
		env.remark("rejected: %s", printable(env.chinese.Message(a.Rejected)))
	}

	switch {
	case a.Rejected != "":
		if err := env.say("dry run: nothing was changed\n"); err != nil {
			return err
		}
		return &exitError{exitFailed, nil}
	case a.Applied:
		return env.say("applied: business %d is at version %d\n", a.Biz, a.Version)
	case a.Plan.Empty():
		return env.say("nothing to change: business %d is at version %d\n", a.Biz, a.Version)
	}

	return env.say("dry run: nothing was changed\n")
}
