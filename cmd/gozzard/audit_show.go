package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/server"
)

// newAuditShowCommand is `gozzard audit show`.
func newAuditShowCommand(env *cliEnv, flags *auditFlags) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "show ROW",
		Short: "Show one row with its hosts and definitions",
		Long: `Show a row of the audit with everything that it names: the actions with their definitions and
accounts, the hosts, and the result if the task has ended. This works as long as the audit is kept,
also after the results of the task and the definitions were removed. A row of a version that kept
only digests has no list of hosts.`,
		Example: "  gozzard audit show 4711\n  gozzard audit show 4711 -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}
			row, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || row < 1 {
				return usage("%q is not the number of a row: see \"gozzard audit list\"", args[0])
			}

			d, err := env.auditDetail(cmd.Context(), flags, row)
			if err != nil {
				return withExitCode(err)
			}
			if output.structured() {
				return output.write(env.out, d)
			}
			return writeAuditDetail(env.out, &d)
		},
	}
	output.register(cmd, cmd.Flags(), "text", "json", "yaml")
	return cmd
}

// auditDetail reads a row with all its hosts and items.
func (env *cliEnv) auditDetail(ctx context.Context, flags *auditFlags, row int64) (d client.AuditDetail, err error) {
	if flags.data != "" {
		file, err := server.OpenAudit(ctx, flags.data, flags.record)
		if err != nil {
			return d, failed(err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()

		found, err := file.AuditRow(ctx, row)
		if err != nil {
			return d, err
		}
		text := func(digest [32]byte) ([]byte, error) { return file.AuditText(ctx, digest) }
		d, err = client.NewAuditDetail(&found, text, 0, 1<<30)
		return d, err
	}

	c, err := env.connect()
	if err != nil {
		return d, err
	}
	defer c.Close()
	for start := 0; ; start += client.MaxPage {
		page, err := c.AuditDetail(ctx, row, start, client.MaxPage)
		if err != nil {
			return d, err
		}
		if start == 0 {
			d = page
		} else {
			d.Hosts, d.Items = append(d.Hosts, page.Hosts...), append(d.Items, page.Items...)
			maps.Copy(d.Definitions, page.Definitions)
		}
		if start+client.MaxPage >= max(page.HostsTotal, page.ItemsTotal) {
			return d, nil
		}
	}
}

// writeAuditDetail prints a row for people.
func writeAuditDetail(w io.Writer, d *client.AuditDetail) error {
	r := &d.Row
	var b strings.Builder
	line := func(name, format string, args ...any) {
		if text := strings.TrimSpace(fmt.Sprintf(format, args...)); text != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name+":", text)
		}
	}

	// The row.
	asserted := ""
	if r.Asserted {
		asserted = " (named by the app)"
	}
	line("row", "%d", r.Seq)
	line("at", "%s", r.At)
	line("app", "%s", r.App)
	line("user", "%s%s", r.User, asserted)
	line("door", "%s", r.Door)
	line("from", "%s", r.Source)
	line("request", "%s", r.RequestID)
	line("act", "%s", r.Act)
	line("task", "%s", shortTask(r.TaskID))
	line("accounts", "%s", strings.Join(r.Accounts, ", "))
	line("outcome", "%s", r.Outcome)
	if r.Count > 1 {
		line("times", "%d", r.Count)
	}
	if r.ResultRow > 0 {
		line("result", "%s (row %d)", r.Result, r.ResultRow)
	}
	if r.Ref > 0 {
		line("of row", "%d", r.Ref)
	}
	line("hash", "%s", r.Hash)

	// What it names.
	for _, it := range d.Items {
		line("action", "%s %s/%s on %d host(s), account %s, definition %.12s", it.Action, it.Namespace, it.Name, it.Hosts,
			it.Account, it.Definition)
	}
	for digest, def := range d.Definitions {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, def, "  ", "  "); err != nil {
			return failed(err)
		}
		fmt.Fprintf(&b, "definition %s:\n  %s\n", digest, pretty.String())
	}
	if d.Text != "" {
		fmt.Fprintf(&b, "content:\n%s\n", d.Text)
	}
	if d.HostsTotal > 0 {
		fmt.Fprintf(&b, "hosts (%d):\n", d.HostsTotal)
	}
	for _, h := range d.Hosts {
		fmt.Fprintf(&b, "  %s %s\n", refName(h), h.Agent)
	}
	line("hosts", "%s", d.Missing)
	return checkWrite(io.WriteString(w, cleanLines(b.String())))
}

// cleanLines makes every line of a text from elsewhere harmless and keeps its indentation.
func cleanLines(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		rest := strings.TrimLeft(line, " ")
		b.WriteString(line[:len(line)-len(rest)])
		b.WriteString(printable(rest))
		b.WriteByte('\n')
	}
	return b.String()
}
