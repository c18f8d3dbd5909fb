package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// showOptions are the flags of `gozzard show`.
type showOptions struct {
	processFlags
	output outputFlag
}

// newShowCommand is `gozzard show`.
func newShowCommand(env *cliEnv) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show NAME...",
		Short: "Print definitions of processes",
		Long: `Print the definitions that the server has: one YAML document for each process on each host. What has its
default is left out. "gozzard register" accepts the output. Values of env are shown as *** to callers
that may not change the definition.

Exit code: 0 printed, 5 there is no such definition.`,
		Example: `  gozzard show web
  gozzard show web -n shop --host 10.0.0.1 >web.yaml
  gozzard show web -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("give the name of a process: gozzard show NAME; NAME may be a pattern")
			}
			return nil
		},
		ValidArgsFunction: env.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			return env.show(cmd.Context(), &o, names)
		},
	}

	o.processFlags.register(env, cmd)
	o.output.register(cmd, cmd.Flags(), "yaml", "json")
	return cmd
}

// show prints definitions.
func (env *cliEnv) show(ctx context.Context, o *showOptions, names []string) error {
	// Check the flags.
	q, err := o.query(names)
	if err != nil {
		return err
	}
	if err := o.output.check(); err != nil {
		return err
	}

	// Read the definitions.
	var defs []client.Definition
	err = env.withClient(func(c *client.Client) error {
		for start := 0; ; {
			page, err := c.Definitions(ctx, q, start, client.MaxPage)
			if err != nil {
				return err
			}
			defs = append(defs, page.Definitions...)
			if start = page.Next; start == 0 {
				return nil
			}
		}
	})
	if err != nil {
		return err
	}
	if len(defs) == 0 {
		return &exitError{exitNoMatch, errors.New("no definition matches; see gozzard ps")}
	}

	// Print them.
	if o.output.format == "json" {
		return o.output.write(env.out, defs)
	}
	var b bytes.Buffer
	for i := range defs {
		if i > 0 {
			b.WriteString("---\n")
		}
		d := &defs[i]
		doc, err := yaml.JSONToYAML(dropControls(d.Document))
		if err != nil {
			return failed(fmt.Errorf("cannot encode the output: %w", err))
		}
		fmt.Fprintf(&b, "# registered %s\n%s", d.RegisteredAt.Format(time.RFC3339), doc)
	}
	return checkWrite(env.out.Write(b.Bytes()))
}
