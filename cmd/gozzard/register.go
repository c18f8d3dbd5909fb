package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// registerOptions are the flags of `gozzard register`.
type registerOptions struct {
	taskFlags
	file   string
	hosts  []string
	dryRun bool
}

// newRegisterCommand is `gozzard register`.
func newRegisterCommand(env *cliEnv) *cobra.Command {
	var o registerOptions
	cmd := &cobra.Command{
		Use:   "register -f FILE",
		Short: "Register processes on hosts, or change their definitions",
		Long: `Define processes on hosts, or replace their definitions there. Nothing is started or stopped.
All documents are checked before the first is registered: with a fault in one, nothing is changed.

FILE is YAML or JSON with one document per process (YAML documents are separated by ---); "-" reads
standard input:

  name: web
  namespace: shop                    # "default" when missing
  hosts: [{ip: 127.0.0.1}]           # the only host when missing
  command: [./web, --port, "8080"]   # or a shell line; it stays in the foreground
  folder: /opt/web
  user: www
  env: {MODE: production}
  stop_signal: INT                   # then SIGKILL after stop_timeout
  restart: on-failure
  memory: 512M
  cpu: 1.5                           # cores
  health: http://127.0.0.1:8080/ping

docs/definition.md has all keys, and BlueKing's nested form (spec) works too.` + exitHelp,
		Example: `  gozzard register -f web.yaml
  gozzard register -f web.yaml --dry-run
  gozzard register -f web.yaml --host 10.0.0.1 --host 10.0.0.2
  generate-definitions | gozzard register -f -`,
		Args: noFileArgs("register"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.register(cmd.Context(), &o, cmd.InOrStdin())
		},
	}

	f := cmd.Flags()
	o.registerFile(f)
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would change, and register nothing")
	o.taskFlags.register(cmd)
	return cmd
}

// registerFile adds the flags that name the definitions.
func (o *registerOptions) registerFile(f *pflag.FlagSet) {
	f.StringVarP(&o.file, "file", "f", "", "`FILE` with definitions; - is standard input (required)")
	f.StringArrayVar(&o.hosts, "host", nil, "register on this `HOST` instead of those in the file; may be repeated")
}

// noFileArgs rejects arguments: people write the file without -f.
func noFileArgs(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage("give the file with -f: gozzard %s -f %s", verb, printable(args[0]))
		}
		return nil
	}
}

// newDiffCommand is `gozzard diff`.
func newDiffCommand(env *cliEnv) *cobra.Command {
	var o registerOptions
	cmd := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Compare definitions in a file with the recorded ones",
		Long: `Compare definitions in a file with those that the server has. + is new, ~ is changed, = is
unchanged, ! would be rejected. Nothing is registered.

Exit code: 0 there is no difference, 1 there is one, 2 the file is wrong.`,
		Example: `  gozzard diff -f web.yaml
  gozzard diff -f web.yaml --host 10.0.0.1`,
		Args: noFileArgs("diff"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.diff(cmd.Context(), &o, cmd.InOrStdin())
		},
	}

	o.registerFile(cmd.Flags())
	o.output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// register checks the documents of a file, and then registers them, one task for each.
func (env *cliEnv) register(ctx context.Context, o *registerOptions, in io.Reader) error {
	// Check them all.
	docs, plan, err := env.checkDocuments(ctx, o, in)
	if err != nil {
		return err
	}
	if o.dryRun {
		return env.printPlans(&o.output, plan)
	}

	// Register them.
	var worst error
	for i, doc := range docs {
		o.note = env.changeText(&plan[i])
		err := env.runTask(ctx, &o.taskFlags, "register "+doc.name, func(c *client.Client) (client.Accepted, error) {
			a, err := c.RegisterDocument(ctx, doc.json)
			if err != nil && len(docs) > 1 {
				return a, fmt.Errorf("document %d: %w", i+1, err)
			}
			return a, err
		})
		var ex *exitError
		if err != nil && (!errors.As(err, &ex) || ex.err != nil || ex.code == exitDetached) {
			return err // the server rejected it, or the caller does not wait any more: the rest is not sent
		}
		if err != nil {
			worst = err
		}
	}

	return worst
}

// diff prints how the documents of a file differ from the record. Its error is the exit code.
func (env *cliEnv) diff(ctx context.Context, o *registerOptions, in io.Reader) error {
	_, plan, err := env.checkDocuments(ctx, o, in)
	if err != nil {
		return err
	}
	if err := env.printPlans(&o.output, plan); err != nil {
		return err
	}
	for i := range plan {
		if plan[i].New+plan[i].Changed+plan[i].Rejected > 0 {
			return &exitError{exitFailed, nil}
		}
	}
	return nil
}

// printPlans prints what registering documents would change.
func (env *cliEnv) printPlans(o *outputFlag, plans []client.Preview) error {
	if o.structured() {
		return o.write(env.out, plans)
	}

	var sum client.Preview
	for i := range plans {
		p := &plans[i]
		if err := env.printPlan(p); err != nil {
			return err
		}
		sum.Targets += p.Targets
		sum.Rejected += p.Rejected
		sum.New += p.New
		sum.Changed += p.Changed
		sum.Unchanged += p.Unchanged
	}

	line := env.text("dry run: %s", env.changeText(&sum))
	if sum.Rejected > 0 {
		line = env.text("%s, %d would be rejected", line, sum.Rejected)
	}
	return checkWrite(fmt.Fprintln(env.out, line+env.text("; nothing was registered")))
}

// checkDocuments reads the documents of a file and asks the server about each, without registering any. It prints the
// faults of all of them, each with its file and line.
func (env *cliEnv) checkDocuments(ctx context.Context, o *registerOptions, in io.Reader) ([]document,
	[]client.Preview, error) {
	if err := o.output.check(); err != nil {
		return nil, nil, err
	}
	docs, err := readDocuments(o.file, o.hosts, in)
	if err != nil {
		return nil, nil, err
	}

	plans := make([]client.Preview, len(docs))
	faults := 0
	err = env.withClient(func(c *client.Client) error {
		for i := range docs {
			p, err := c.PreviewDocument(ctx, docs[i].json)
			if n := env.remarkFaults(&docs[i], err); n > 0 {
				faults += n
				continue
			}
			if err != nil {
				return err
			}
			plans[i] = p
		}
		return nil
	})
	if err == nil && faults > 0 {
		err = usage("faults in the definitions of %s: %d; nothing was registered", fileName(o.file), faults)
	}

	return docs, plans, err
}

// remarkFaults prints the faults of a document, one in a line, and counts them.
func (env *cliEnv) remarkFaults(d *document, err error) int {
	lines := env.faultLines(d, err)
	for _, l := range lines {
		env.remark("%s:%s", fileName(d.file), l)
	}
	return len(lines)
}

// faultLines are the faults of a document, each with its line.
func (env *cliEnv) faultLines(d *document, err error) (lines []string) {
	var e *gozzard.Error
	if !errors.As(err, &e) {
		return nil
	}
	faults := slices.Clone(e.Faults)
	slices.SortStableFunc(faults, func(a, b gozzard.Fault) int { return d.lineOf(a.Path) - d.lineOf(b.Path) })
	for _, f := range faults {
		lines = append(lines, fmt.Sprintf("%d: %s", d.lineOf(f.Path), printable(env.faultText(f))))
	}
	return lines
}
