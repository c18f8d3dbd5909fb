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
	output    outputFlag
	effective bool
}

// newShowCommand is `gozzard show`.
func newShowCommand(env *cliEnv) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show NAME...",
		Short: "Print definitions of processes",
		Long: `Print the definitions that the server has: one YAML document for each process on each host. What has its
default is left out. "gozzard register" accepts the output. Above each stands what brought it: when, which
user and app, and by which API, as far as the server still knows it.

With --effective the defaults are filled in and marked. Registering that output fixes them.

Values of env are shown as ***, and neither app nor user are shown, to callers that may not change the
definition.

Exit code: 0 printed, 5 there is no such definition.`,
		Example: `  gozzard show web
  gozzard show web -n shop --host 10.0.0.1 >web.yaml
  gozzard show web --effective
  gozzard show web -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("give one NAME: gozzard show NAME; for several processes give a pattern, such as 'web-*'")
			}
			return nil
		},
		ValidArgsFunction: env.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			return env.show(cmd.Context(), &o, names)
		},
	}

	o.processFlags.register(env, cmd)
	cmd.Flags().BoolVar(&o.effective, "effective", false, "fill in the defaults, and mark them")
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
	defs, err := env.definitions(ctx, q, o.effective)
	if err != nil {
		return err
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
		text, err := definitionText(d)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s\n%s", env.originText(d), text)
	}
	return checkWrite(env.out.Write(b.Bytes()))
}

// definitions reads all definitions that match.
func (env *cliEnv) definitions(ctx context.Context, q client.ProcessQuery, effective bool) ([]client.Definition, error) {
	var defs []client.Definition
	err := env.withClient(func(c *client.Client) error {
		read := c.Definitions
		if effective {
			read = c.EffectiveDefinitions
		}
		for start := 0; ; {
			page, err := read(ctx, q, start, client.MaxPage)
			if err != nil {
				return err
			}
			defs = append(defs, page.Definitions...)
			if start = page.Next; start == 0 {
				return nil
			}
		}
	})
	if err == nil && len(defs) == 0 {
		err = &exitError{exitNoMatch, errors.New("no definition matches; see gozzard ps")}
	}
	return defs, err
}

// definitionText is a definition as YAML. Defaults that are filled in are marked.
func definitionText(d *client.Definition) ([]byte, error) {
	doc := d.Document
	marks := yaml.CommentMap{}
	if len(d.Effective) > 0 {
		doc = d.Effective
		for _, path := range d.Defaults {
			marks["$."+path] = []*yaml.Comment{yaml.LineComment(" default")}
		}
	}

	var v any
	if err := yaml.UnmarshalWithOptions(dropControls(doc), &v, yaml.UseOrderedMap()); err != nil {
		return nil, failed(fmt.Errorf("cannot decode the definition: %w", err))
	}
	text, err := yaml.MarshalWithOptions(v, yaml.WithComment(marks))
	if err != nil {
		return nil, failed(fmt.Errorf("cannot encode the output: %w", err))
	}
	return text, nil
}

// originText says what brought a definition, on one line, as a comment.
func (env *cliEnv) originText(d *client.Definition) string {
	text := env.text("# registered %s", d.RegisteredAt.Format(time.RFC3339))
	o := d.Origin
	if o == nil {
		return text + env.text("; what brought it is unknown")
	}

	text += env.text(", changed %s", o.At.Format(time.RFC3339))
	if !o.At.After(d.RegisteredAt.Time) { // by the task that registered it first
		text = env.text("# registered %s", o.At.Format(time.RFC3339))
	}
	switch {
	case o.User != "" && o.App != "":
		text += env.text(" by %s with the app %s", o.User, o.App)
	case o.User != "" || o.App != "":
		text += env.text(" by %s", o.User+o.App)
	}
	switch o.Door {
	case "api":
		text += env.text(", native API")
	case "topology":
		text += env.text(", business document")
	case "relay":
		text += env.text(", restored record")
	default:
		text += ", API " + o.Door
	}
	if o.Task != "" {
		text += env.text(", task %s", shortTask(o.Task))
	}
	return printable(text)
}
