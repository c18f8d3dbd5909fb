package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// newFileCommand is `gozzard file`.
func newFileCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "file",
		Short: "Write, read, compare and restore files on hosts",
		Long: `Write, read, compare and restore files on hosts. The policy of a host must allow the path, the owner
and the size (files in policy.yaml); by default it allows no file. You need the right configure for
the account of the file.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newFilePutCommand(env), newFileGetCommand(env), newFileDiffCommand(env), newFileHistoryCommand(env),
		newFileRestoreCommand(env))
	return cmd
}

// fileWriteOptions are the flags of verbs that write a file.
type fileWriteOptions struct {
	taskFlags
	hosts       []string
	from        string
	write       client.FileWrite
	waitOffline time.Duration
}

func (o *fileWriteOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.write.Namespace, "namespace", "n", "default", "`NAMESPACE` of the business whose file it is")
	f.StringArrayVar(&o.hosts, "host", nil, "write on this `HOST`: cloud:ip, an IP address, a host name or an agent id; may be repeated (required)")
	f.StringVar(&o.write.Account, "account", "", "`ACCOUNT` that the file belongs to (required)")
	f.StringVar(&o.write.Group, "group", "", "`GROUP` of the file (default: the main group of the account)")
	f.StringVar(&o.write.Mode, "mode", "0644", "permissions of the file, in octal `DIGITS`")
	f.StringVar(&o.write.Expect, "expect", "", "write only if the file has this `SHA256` now, or absent if there must be no file")
	f.DurationVar(&o.waitOffline, "wait-offline", 0,
		"wait this long for hosts that are offline, such as 1h (default: they fail at once)")
	f.IntVar(&o.write.Confirm, "confirm", 0, "the `NUMBER` of hosts that you expect; the server asks for it when there are many, "+
		"and says how many there are")
	o.taskFlags.register(cmd)
}

// run writes a file and waits for its task.
func (o *fileWriteOptions) run(ctx context.Context, env *cliEnv, path string) (err error) {
	if err := bothRequired("--host", len(o.hosts) > 0, "--account", o.write.Account != ""); err != nil {
		return err
	}
	if o.write.Hosts, err = parseHostFlags(o.hosts); err != nil {
		return err
	}
	o.write.Path, o.write.Offline = path, client.Offline{Wait: o.waitOffline}
	return env.runTask(ctx, &o.taskFlags, "configure "+printable(path), func(c *client.Client) (client.Accepted, error) {
		return c.WriteFile(ctx, o.write)
	})
}

// onePath accepts the path of one file on a host.
func onePath(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("give the path of one file on the host: %s PATH", cmd.CommandPath())
	}
	return nil
}

// newFilePutCommand is `gozzard file put`.
func newFilePutCommand(env *cliEnv) *cobra.Command {
	var o fileWriteOptions
	cmd := &cobra.Command{
		Use:   "put PATH --from FILE",
		Short: "Write a file on hosts",
		Long: `Write the content of a local file to PATH on hosts. The file is replaced in one step, and the host
keeps its former content. Folders are not made.` + exitHelp,
		Example: `  gozzard file put /etc/shop/web.conf --from web.conf --account shop --host 10.0.0.1
  gozzard file put /etc/shop/web.conf --from - --account shop -n shop --host 10.0.0.1 --host 10.0.0.2 --mode 0640
  gozzard file put /etc/shop/web.conf --from web.conf --account shop --host 10.0.0.1 --expect absent`,
		Args: onePath, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			content, err := readContent(o.from, cmd.InOrStdin())
			if err != nil {
				return err
			}
			o.write.Content = content
			return o.run(cmd.Context(), env, args[0])
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.from, "from", "", "local `FILE` with the content; - is standard input (required)")
	cmd.Flags().StringVar(&o.write.LineEnds, "line-ends", "", "change the ends of lines to `FORM` lf or crlf")
	return cmd
}

// readContent reads a local file, or standard input.
func readContent(from string, in io.Reader) ([]byte, error) {
	if from == "" {
		return nil, usage("--from is required: a local file, or - for standard input")
	}
	if from != "-" {
		f, err := os.Open(from)
		if err != nil {
			return nil, usage("cannot read the content: %w", err)
		}
		defer f.Close()
		in = f
	}

	b, err := io.ReadAll(io.LimitReader(in, gozzard.MaxFileBytes+1))
	switch {
	case err != nil:
		return nil, usage("cannot read the content: %w", err)
	case len(b) > gozzard.MaxFileBytes:
		return nil, usage("the content has more than %d bytes", gozzard.MaxFileBytes)
	}
	return append([]byte{}, b...), nil
}

// newFileRestoreCommand is `gozzard file restore`.
func newFileRestoreCommand(env *cliEnv) *cobra.Command {
	var o fileWriteOptions
	cmd := &cobra.Command{
		Use:   "restore PATH --sha256 SHA256",
		Short: "Write a former content of a file again",
		Long: `Write a content again that a host has kept when the file was replaced. "gozzard file history" lists
these contents.` + exitHelp,
		Example: `  gozzard file restore /etc/shop/web.conf --account shop --host 10.0.0.1 --sha256 9f86d08…`,
		Args:    onePath, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !gozzard.IsFileDigest(o.write.Kept) {
				return usage("--sha256 must be a sha256 that \"gozzard file history\" lists")
			}
			return o.run(cmd.Context(), env, args[0])
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.write.Kept, "sha256", "", "`SHA256` of the content, as \"gozzard file history\" lists it (required)")
	return cmd
}

// fileReadOptions are the flags of verbs that read a file of one host.
type fileReadOptions struct {
	client.FileQuery
	output outputFlag
}

func (o *fileReadOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.Namespace, "namespace", "n", "default", "`NAMESPACE` of the business whose file it is")
	f.StringVar(&o.Host, "host", "", "`HOST` as cloud:ip, an IP address, a host name or an agent id (required)")
	f.StringVar(&o.Account, "account", "", "`ACCOUNT` that the file belongs to (required)")
}

func (o *fileReadOptions) check(path string) error {
	if err := bothRequired("--host", o.Host != "", "--account", o.Account != ""); err != nil {
		return err
	}
	_, err := parseHostFlag(o.Host)
	o.Path = path
	return err
}

// read reads a file that must exist.
func (o *fileReadOptions) read(ctx context.Context, c *client.Client) (client.File, []byte, error) {
	f, err := c.ReadFile(ctx, o.FileQuery)
	if err != nil {
		return f, nil, err
	}
	if !f.Exists {
		return f, nil, &exitError{exitNoMatch, fmt.Errorf("there is no file %s on this host", printable(o.Path))}
	}
	b, err := f.Bytes()
	return f, b, err
}

// newFileGetCommand is `gozzard file get`.
func newFileGetCommand(env *cliEnv) *cobra.Command {
	var o fileReadOptions
	cmd := &cobra.Command{
		Use:   "get PATH",
		Short: "Print a file of a host, or a former content of it",
		Long: `Print a file of one host. It is read with the rights of its account. With --sha256 a former content
is printed that the host keeps. With -o json its owner, group, mode and sha256 are printed, too.`,
		Example: `  gozzard file get /etc/shop/web.conf --account shop --host 10.0.0.1
  gozzard file get /etc/shop/web.conf --account shop --host 10.0.0.1 -o json`,
		Args: onePath, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.output.check(); err != nil {
				return err
			}
			if err := o.check(args[0]); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				f, content, err := o.read(cmd.Context(), c)
				if err != nil {
					return err
				}
				if o.output.structured() {
					return o.output.write(env.out, f)
				}
				return env.printLog(string(content))
			})
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.Kept, "sha256", "", "`SHA256` of a former content, as \"gozzard file history\" lists it")
	o.output.register(cmd, cmd.Flags(), "text", "json", "yaml")
	return cmd
}

// newFileHistoryCommand is `gozzard file history`.
func newFileHistoryCommand(env *cliEnv) *cobra.Command {
	var o fileReadOptions
	cmd := &cobra.Command{
		Use:   "history PATH",
		Short: "List the former contents of a file that its host keeps",
		Long: `List the former contents of a file that its host keeps, the newest first: the last 10, for 90 days.
REPLACED is when a content was replaced, and TASK is the number of the task that did it.`,
		Example: `  gozzard file history /etc/shop/web.conf --account shop --host 10.0.0.1`,
		Args:    onePath, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.output.check(); err != nil {
				return err
			}
			if err := o.check(args[0]); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				list, err := c.FileVersions(cmd.Context(), o.FileQuery)
				if err != nil {
					return err
				}
				if o.output.structured() {
					return o.output.write(env.out, list)
				}
				t := newTable("REPLACED", "SHA256", "SIZE", "OWNER", "GROUP", "MODE", "TASK")
				for _, v := range list.Versions {
					t.add(v.At.Local().Format(time.DateTime), v.SHA256, fmt.Sprint(v.Size), printable(v.Owner), printable(v.Group),
						v.Mode, fmt.Sprint(v.Task))
				}
				return t.write(env.out)
			})
		},
	}
	o.register(cmd)
	o.output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}
