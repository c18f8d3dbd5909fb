package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/server"
)

// newAuditListCommand is `gozzard audit list`.
func newAuditListCommand(env *cliEnv, flags *auditFlags) *cobra.Command {
	var output outputFlag
	var last int
	var since, until string
	var f gozzard.AuditFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the newest rows",
		Long: `List the newest rows of the audit, the oldest of them first. The flags choose rows; a row must have
everything that they ask for.`,
		Example: `  gozzard audit list
  gozzard audit list --host 10.0.0.5 --since 24h
  gozzard audit list --account root --user alice --since 2026-11-01T00:00:00Z
  gozzard audit list --action login:failed --last 1000 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := output.check(); err != nil {
				return err
			}
			if last < 1 || last > 1_000_000 {
				return usage("--last %d: use 1 to 1000000", last)
			}
			if f.Since, err = env.sinceFlag(since); err != nil {
				return err
			}
			if f.Until, err = env.sinceFlag(until); err != nil {
				return usage("--until %q: use a time such as 2026-01-02T15:04:05Z, or how long ago, such as 10m", until)
			}

			rows, err := env.newestAudit(cmd.Context(), flags, f, last)
			if err != nil {
				return withExitCode(err)
			}
			if output.structured() {
				return output.write(env.out, rows)
			}
			return env.auditTable(rows).write(env.out)
		},
	}

	fs := cmd.Flags()
	fs.IntVar(&last, "last", 50, "number of `ROWS` to list")
	fs.StringVar(&f.Host, "host", "", "only rows about this `HOST`: an agent id, a host name, an address, or cloud:address")
	fs.StringVar(&f.Account, "account", "",
		"only operations with definitions of this OS `ACCOUNT`; root also finds definitions without an account")
	fs.StringVar(&f.User, "user", "", "only rows of this `USER`, and failed logins as this USER")
	fs.StringVar(&f.App, "app", "", "only rows of this `APP`, and wrong credentials of this APP")
	fs.StringVar(&f.Action, "action", "", "only rows whose act has this `WORD`, such as stop, login:failed, refused:policy or enrol")
	fs.StringVar(&since, "since", "",
		"only rows since this `TIME`, such as 2026-01-02T15:04:05Z, or since this long ago, such as 24h")
	fs.StringVar(&until, "until", "", "only rows before this `TIME`, or before this long ago")
	output.register(cmd, fs, "table", "json", "yaml")
	return cmd
}

func (env *cliEnv) auditTable(rows []client.AuditRow) *textTable {
	t := newTable("ROW", "AT", "APP", "USER", "FROM", "ACT", "TARGETS", "ACCOUNTS", "RESULT", "TASK")
	for i := range rows {
		r := &rows[i]
		user := r.User
		if r.Asserted {
			user += " (named by the app)"
		}
		result := r.Result
		if result == "" {
			result = r.Outcome
		}
		result = env.chinese.Message(result)
		if r.Count > 1 {
			result = strings.TrimSpace(env.text("%s (%d times)", result, r.Count))
		}
		t.add(strconv.FormatInt(r.Seq, 10), r.At.String(), r.App, user, r.Source, r.Act, strconv.Itoa(r.Targets),
			strings.Join(r.Accounts, ","), result, shortTask(r.TaskID))
	}
	return t
}

// newestAudit returns the newest rows that a filter chooses, the oldest of them first.
func (env *cliEnv) newestAudit(ctx context.Context, flags *auditFlags, f gozzard.AuditFilter,
	last int) (rows []client.AuditRow, err error) {
	find, end, err := env.openAuditFind(ctx, flags)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()

	rows = []client.AuditRow{}
	f.Newest = true
	for len(rows) < last {
		page, err := find(f, min(last-len(rows), client.MaxPage))
		if err != nil {
			return nil, err
		}
		rows = append(rows, page.Rows...)
		if f.Before = page.Next; f.Before == 0 {
			break
		}
	}
	slices.Reverse(rows)
	return rows, nil
}

// openAuditFind opens the audit of a data folder or of the server to look for rows.
func (env *cliEnv) openAuditFind(ctx context.Context, flags *auditFlags) (
	find func(gozzard.AuditFilter, int) (client.AuditPage, error), end func() error, err error) {
	if flags.data == "" {
		c, err := env.connect()
		if err != nil {
			return nil, nil, err
		}
		return func(f gozzard.AuditFilter, limit int) (client.AuditPage, error) { return c.FindAudit(ctx, f, limit) },
			func() error { c.Close(); return nil }, nil
	}

	file, err := server.OpenAudit(ctx, flags.data, flags.record)
	if err != nil {
		return nil, nil, failed(err)
	}
	return func(f gozzard.AuditFilter, limit int) (page client.AuditPage, err error) {
		found, next, err := file.FindAudit(ctx, f, limit)
		page.Next = next
		for i := range found {
			page.Rows = append(page.Rows, client.NewAuditFound(&found[i]))
		}
		return page, failed(err)
	}, file.Close, nil
}
