package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// newConfigRenderCommand is `gozzard config render`.
func newConfigRenderCommand(env *cliEnv) *cobra.Command {
	var o configOptions
	var r client.ConfigRenderRequest
	from := ""
	cmd := &cobra.Command{
		Use:   "render TEMPLATE --process ID",
		Short: "Print the file of a process instance, as a release would write it",
		Long: `Print the file that a template makes for one process instance, as a release would write it. Nothing is
stored, and no host is touched. With --from a local file is rendered in place of the active version:
you see what a change does before you apply it. With -o json its host, path, owner and sha256 are
printed, too.`,
		Example: `  gozzard config render nginx --process 46
  gozzard config render nginx --process 46 --instance 2 --from nginx.conf.tpl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.Process < 1 || r.Instance < 1 {
				return usage("--process is required: the id of a process of the business, see gozzard ps --biz; instances are counted from 1")
			}
			if from != "" {
				text, err := readContent(from, cmd.InOrStdin())
				if err != nil {
					return err
				}
				content := string(text)
				r.Content = &content
			}

			return o.with(cmd.Context(), env, func(c *client.Client, biz int) error {
				t, err := findConfig(cmd.Context(), c, biz, args[0])
				if err != nil {
					return err
				}

				r.Biz, r.Template = biz, t.ID
				file, err := c.RenderConfig(cmd.Context(), r)
				if err != nil {
					return env.printFaults(err)
				}
				if o.output.structured() {
					return o.output.write(env.out, file)
				}
				return env.printLog(file.Content)
			})
		},
	}

	o.register(cmd, "text", "json", "yaml")
	cmd.Flags().IntVar(&r.Process, "process", 0, "`ID` of the process (required)")
	cmd.Flags().IntVar(&r.Instance, "instance", 1, "`NUMBER` of the instance of the process on its host")
	cmd.Flags().StringVar(&from, "from", "", "render this local `FILE` instead of the active version; - is standard input")
	return cmd
}

// configDiff is how the file of a process instance differs from what a release would write.
type configDiff struct {
	Process  int            `json:"process"`
	Name     string         `json:"name"`
	Instance int            `json:"instance"`
	Host     client.HostRef `json:"host"`
	Path     string         `json:"path,omitempty"`
	Same     bool           `json:"same"`
	ByHand   bool           `json:"changed_by_hand"` // since the last release
	Absent   bool           `json:"absent"`
	SHA256   string         `json:"sha256,omitempty"` // of what a release would write
	Live     string         `json:"live,omitempty"`   // on the host
	Lines    string         `json:"lines,omitempty"`  // that differ
	Error    string         `json:"error,omitempty"`
}

// newConfigDiffCommand is `gozzard config diff`.
func newConfigDiffCommand(env *cliEnv) *cobra.Command {
	var o configJobOptions
	cmd := &cobra.Command{
		Use:   "diff TEMPLATE",
		Short: "Compare the files on hosts with what a release would write",
		Long: `Compare the files on hosts with what a release of the template would write now. Lines with - are on the
host, lines with + come with the release. A file that was changed by hand since the last release is
named: a release does not replace it, unless you give --force.

It is about every process instance that the template is bound to, or about some of them by --set,
--module, --env or -e; "gozzard start --help" explains expressions.

Exit code: 0 there is no difference, 1 there is one or a file could not be compared, 4 not allowed, 5
nothing matched.`,
		Example: `  gozzard config diff nginx
  gozzard config diff nginx --module web
  gozzard config diff nginx -e 'front.*.*.nginx.*' -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.with(cmd.Context(), env, args, func(c *client.Client, r client.ConfigJobRequest, list []client.ConfigTemplate) error {
				return env.diffConfigs(cmd.Context(), c, &o, r, list[0])
			})
		},
	}
	o.registerScope(cmd)
	o.output.register(cmd, cmd.Flags(), "text", "json", "yaml")
	return cmd
}

// diffConfigs compares the files of a template. Its error is the exit code.
func (env *cliEnv) diffConfigs(ctx context.Context, c *client.Client, o *configJobOptions, r client.ConfigJobRequest, t client.ConfigTemplate) error {
	// A job finds the instances, and which files differ from what was released last.
	r.Work = "diff"
	job, err := env.configJob(ctx, c, o, r)
	if err != nil {
		return err
	}

	list := []configDiff{}
	differ := 0
	for i := range job.List {
		d, err := compareConfig(ctx, c, r.Biz, t, &job.List[i])
		if err != nil {
			return err
		}
		if !d.Same {
			differ++
		}
		if !o.output.structured() {
			if err := env.printConfigDiff(&d); err != nil {
				return err
			}
		}
		list = append(list, d)
	}

	if o.output.structured() {
		err = o.output.write(env.out, list)
	} else {
		err = env.say("%d of %d files differ\n", differ, len(list))
	}
	if err == nil && differ > 0 {
		return &exitError{exitFailed, nil}
	}
	return err
}

// compareConfig compares the file of one instance. A fault of it is in the result: the others are compared.
func compareConfig(ctx context.Context, c *client.Client, biz int, t client.ConfigTemplate, task *client.ConfigTask) (configDiff, error) {
	d := configDiff{Process: task.Process, Name: task.Name, Instance: task.Instance, Host: task.Host}
	for _, f := range task.Files {
		d.ByHand = d.ByHand || f.Live != ""
	}

	file, err := c.RenderConfig(ctx, client.ConfigRenderRequest{Biz: biz, Template: t.ID, Process: task.Process, Instance: task.Instance})
	if err != nil {
		return d, d.fault(ctx, err)
	}
	d.Path, d.SHA256 = file.Path, file.SHA256
	host := string(file.Host.Agent)
	if host == "" {
		host = refName(file.Host)
	}
	live, err := c.ReadFile(ctx, client.FileQuery{Namespace: gozzard.BusinessNamespace(biz), Host: host, Path: file.Path, Account: file.Owner})
	if err != nil {
		return d, d.fault(ctx, err)
	}

	d.Live, d.Absent, d.Same = live.SHA256, !live.Exists, live.Exists && live.SHA256 == file.SHA256
	if d.Same || d.Absent || live.Content == nil {
		return d, nil
	}
	d.Lines = lineDiff(*live.Content, file.Content)
	return d, nil
}

// fault notes why a file could not be compared. It returns the error if that is about all files.
func (d *configDiff) fault(ctx context.Context, err error) error {
	switch gozzard.KindOf(err) {
	case gozzard.ErrUnauthenticated, gozzard.ErrRateLimited, gozzard.ErrUnavailable:
		return err
	}
	d.Error = printable(err.Error())
	return ctx.Err()
}

// printConfigDiff prints the difference of one file. Nothing is printed for one that is the same.
func (env *cliEnv) printConfigDiff(d *configDiff) error {
	if d.Same {
		return nil
	}
	at := fmt.Sprintf("%s %s %d/%d %s", refName(d.Host), printable(d.Name), d.Process, d.Instance, printable(d.Path))
	switch {
	case d.Error != "":
		why := d.Error
		if _, rest, named := strings.Cut(why, refName(d.Host)+": "); named { // the line begins with the host
			why = rest
		}
		return env.say("%s: cannot be compared: %s\n", at, env.chinese.Message(why))
	case d.Absent:
		return env.say("%s: is not on the host\n", at)
	case d.ByHand:
		if err := env.say("%s: changed by hand since the last release\n", at); err != nil {
			return err
		}
	default:
		if err := env.say("%s: differs\n", at); err != nil {
			return err
		}
	}
	if d.Lines == "" {
		return env.say("the file on the host is no text\n")
	}
	return env.printLog(d.Lines)
}
