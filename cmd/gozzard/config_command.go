package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newConfigCommand is `gozzard config`.
func newConfigCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Keep configuration files of processes as templates, and release them to hosts",
		Long: `Keep configuration files of the processes of a business as templates, and release them to hosts. A
template has a content with expressions, a place and an owner, and is bound to processes. Each
process instance gets a file of it.

Write templates in files under version control, apply them, look at what they become, and release
them. A release replaces no file that was changed by hand, unless you say so. Each release can be
taken back.

You need the right configure, and the policy of each host must allow the path, the owner and the
size (files in policy.yaml); by default it allows no file.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newConfigApplyCommand(env), newConfigListCommand(env), newConfigShowCommand(env), newConfigRemoveCommand(env),
		newConfigRenderCommand(env), newConfigDiffCommand(env), newConfigReleaseCommand(env), newConfigRollbackCommand(env),
		newConfigHistoryCommand(env), newConfigStopCommand(env))
	return cmd
}

// configOptions are the flags of verbs about the templates of a business.
type configOptions struct {
	biz    int
	output outputFlag
}

func (o *configOptions) register(cmd *cobra.Command, formats ...string) {
	cmd.Flags().IntVar(&o.biz, "biz", 0, "`ID` of the business (default: the only one)")
	if len(formats) > 0 {
		o.output.register(cmd, cmd.Flags(), formats...)
	}
}

// with runs f with the business of the flags, or with the only one.
func (o *configOptions) with(ctx context.Context, env *cliEnv, f func(c *client.Client, biz int) error) error {
	if len(o.output.known) > 0 {
		if err := o.output.check(); err != nil {
			return err
		}
	}
	return env.withClient(func(c *client.Client) error {
		biz := o.biz
		if biz == 0 {
			var err error
			if biz, err = onlyBusiness(ctx, c); err != nil {
				return err
			}
		}
		return f(c, biz)
	})
}

// findConfig finds a template by its name, or else by its id.
func findConfig(ctx context.Context, c *client.Client, biz int, named string) (client.ConfigTemplate, error) {
	list, err := c.ConfigTemplates(ctx, biz)
	if err != nil {
		return client.ConfigTemplate{}, err
	}
	for _, t := range list.Templates {
		if t.Name == named {
			return t, nil
		}
	}
	for _, t := range list.Templates {
		if strconv.FormatInt(t.ID, 10) == named {
			return t, nil
		}
	}
	return client.ConfigTemplate{}, &exitError{exitNoMatch,
		fmt.Errorf("business %d has no configuration template %q: see gozzard config list", biz, printable(named))}
}

// listConfigs completes the names of templates.
func listConfigs(ctx context.Context, c *client.Client, at place) (out []value, err error) {
	biz, _ := strconv.Atoi(at.cmd.Flags().Lookup("biz").Value.String()) // a wrong one is 0
	if biz == 0 {
		if biz, err = onlyBusiness(ctx, c); err != nil {
			return nil, err
		}
	}
	list, err := c.ConfigTemplates(ctx, biz)
	for _, t := range list.Templates {
		out = append(out, value{t.Name, t.FileName})
	}
	return out, err
}

// newConfigListCommand is `gozzard config list`.
func newConfigListCommand(env *cliEnv) *cobra.Command {
	var o configOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the templates of a business",
		Long: `List the templates of a business. BOUND is to how many processes and process templates each is bound.
READY says whether it has a version that can be released, RELEASED whether a host has a file of it.`,
		Example: `  gozzard config list
  gozzard config list --biz 2 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.with(cmd.Context(), env, func(c *client.Client, biz int) error {
				list, err := c.ConfigTemplates(cmd.Context(), biz)
				if err != nil {
					return err
				}
				if o.output.structured() {
					return o.output.write(env.out, list)
				}
				if list.Count == 0 {
					env.remark("business %d has no configuration template: apply one with gozzard config apply -f FILE", biz)
					return nil
				}
				t := newTable("ID", "NAME", "FOLDER", "FILE", "OWNER", "BOUND", "READY", "RELEASED", "CHANGED BY")
				for _, x := range list.Templates {
					t.add(strconv.FormatInt(x.ID, 10), x.Name, x.Folder, x.FileName, x.Owner, strconv.Itoa(x.Bound), yesNo(x.Ready),
						yesNo(x.Released), x.UpdatedBy)
				}
				return t.write(env.out)
			})
		},
	}
	o.register(cmd, "table", "json", "yaml")
	return cmd
}

// newConfigShowCommand is `gozzard config show`.
func newConfigShowCommand(env *cliEnv) *cobra.Command {
	var o configOptions
	content := false
	cmd := &cobra.Command{
		Use:   "show TEMPLATE",
		Short: "Show a template with its versions and what it is bound to",
		Long: `Show a template, by its name or id: its place, what it is bound to, and its versions, the newest
first. "gozzard config rollback" needs the number of a version. With --content the content of the
active version is printed, and nothing else.`,
		Example: `  gozzard config show nginx
  gozzard config show nginx --content > nginx.conf.tpl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.with(cmd.Context(), env, func(c *client.Client, biz int) error {
				t, err := findConfig(cmd.Context(), c, biz, args[0])
				if err != nil {
					return err
				}
				d, err := c.ConfigTemplate(cmd.Context(), biz, t.ID)
				switch {
				case err != nil:
					return err
				case o.output.structured():
					return o.output.write(env.out, d)
				case content:
					return env.printLog(d.Content)
				}
				return env.printConfig(&d)
			})
		},
	}
	o.register(cmd, "table", "json", "yaml")
	cmd.Flags().BoolVar(&content, "content", false, "print the content of the active version only")
	return cmd
}

// printConfig prints a template and its versions.
func (env *cliEnv) printConfig(d *client.ConfigTemplateDetail) error {
	numbers := func(list []int) string { return strings.Trim(fmt.Sprint(list), "[]") }
	about := newTable("ID", "NAME", "FOLDER", "FILE", "OWNER", "GROUP", "MODE", "LINES", "PROCESSES", "PROCESS TEMPLATES")
	about.add(strconv.FormatInt(d.ID, 10), d.Name, d.Folder, d.FileName, d.Owner, d.Group, d.Mode, d.LineEnds, numbers(d.Bind.Processes),
		numbers(d.Bind.Templates))
	if err := about.write(env.out); err != nil {
		return err
	}

	if err := checkWrite(fmt.Fprintln(env.out)); err != nil {
		return err
	}
	t := newTable("VERSION", "STATE", "BYTES", "CHANGED", "BY", "DESCRIPTION")
	for _, v := range d.Versions {
		t.add(strconv.FormatInt(v.ID, 10), v.State, strconv.Itoa(v.Size), v.Updated.Local().Format(time.DateTime), v.UpdatedBy, v.Description)
	}
	return t.write(env.out)
}

// newConfigRemoveCommand is `gozzard config remove`.
func newConfigRemoveCommand(env *cliEnv) *cobra.Command {
	var o configOptions
	cmd := &cobra.Command{
		Use:   "remove TEMPLATE",
		Short: "Remove a template and its bindings (files on hosts stay)",
		Long: `Remove a template and its bindings. Files that were released stay on their hosts. A template with the
same name that is applied later is a new one.`,
		Example: `  gozzard config remove nginx`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.with(cmd.Context(), env, func(c *client.Client, biz int) error {
				t, err := findConfig(cmd.Context(), c, biz, args[0])
				if err != nil {
					return err
				}
				if err := c.RemoveConfig(cmd.Context(), biz, t.ID); err != nil {
					return err
				}
				return env.say("removed: configuration template %s of business %d\n", printable(t.Name), biz)
			})
		},
	}
	o.register(cmd)
	return cmd
}
