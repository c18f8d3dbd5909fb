package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/server"
)

// auditFlags choose where the audit is read from.
type auditFlags struct {
	data   string // the data folder of a server; "": ask the server
	record string // the database of the record, when the data folder does not have it
}

// newAuditCommand is `gozzard audit`.
func newAuditCommand(env *cliEnv) *cobra.Command {
	var flags auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show and verify the audit of all changes",
		Long: `The audit has a row for every change: the app and the user (marked when only the app named the
user), the address and the request id, the action, the accounts, the hosts and the definitions. The
row is written in the same transaction as the change. When a task has its last result, a second row
records how many of its attempts had which result. Failed logins, requests without a right and hosts
that were refused are rows, too; equal ones within a minute are one row with their number.

Every row contains a hash over itself and over the hash of the previous row. If a row is changed,
removed or inserted, the chain is broken from there on.

The audit is read from a server, which needs the role admin on everything, or with --data from the
data folder of a server, running or not. Root acts as the owner of that folder. If the record is in
PostgreSQL, add --record.`,
		Args: cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if flags.data == "" && flags.record != "" {
				return usage("--record needs --data: the data folder of the server has the keys")
			}
			if flags.data == "" {
				return nil
			}
			env.warnOfPassword(flags.record)
			return failed(actAsOwner(flags.data, noteWriter{env}))
		},
	}
	cmd.PersistentFlags().StringVar(&flags.data, "data", "",
		"read the audit from the data `FOLDER` of a server on this machine, without asking the server")
	cmd.PersistentFlags().StringVar(&flags.record, "record", "",
		"`ADDRESS` of the PostgreSQL database that has the record of that folder, as postgres://USER@HOST/DATABASE")
	cmd.AddCommand(newAuditListCommand(env, &flags), newAuditShowCommand(env, &flags),
		newAuditVerifyCommand(env, &flags), newAuditExportCommand(env, &flags), newAuditVerifyExportCommand(env))
	return cmd
}

// newAuditExportCommand is `gozzard audit export`.
func newAuditExportCommand(env *cliEnv, flags *auditFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Export all rows as lines of JSON",
		Long: `Write every row as a line of JSON, oldest first, with everything that its hash covers. The lines are
enough to check the chain.`,
		Example: "  gozzard audit export > audit.jsonl",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := bufio.NewWriter(env.out)
			_, err := env.eachAudit(cmd.Context(), flags, func(r *client.AuditRow) error {
				b, err := json.Marshal(r)
				if err != nil {
					return err
				}
				_, err = w.Write(append(escapeControls(b), '\n'))
				return err
			})
			return withExitCode(errors.Join(err, w.Flush()))
		},
	}
}

// eachAudit calls f for every row, oldest first, and returns the newest row as of the beginning. Rows that are
// added meanwhile are not read.
func (env *cliEnv) eachAudit(ctx context.Context, flags *auditFlags,
	f func(*client.AuditRow) error) (head gozzard.AuditHead, err error) {
	read, end, err := env.openAudit(ctx, flags)
	if err != nil {
		return head, err
	}

	defer func() { err = errors.Join(err, end()) }()

	after, first := int64(0), true
	for {
		page, err := read(after)
		if err != nil {
			return head, err
		}
		if first {
			head, first = page.Head, false
		}
		for i := range page.Rows {
			if page.Rows[i].Seq > head.Seq {
				return head, nil
			}
			if err := f(&page.Rows[i]); err != nil {
				return head, err
			}
			after = page.Rows[i].Seq
		}
		if len(page.Rows) == 0 {
			return head, nil
		}
	}
}

// openAudit opens the audit of a data folder or of the server. read returns the page after a row.
func (env *cliEnv) openAudit(ctx context.Context,
	flags *auditFlags) (read func(after int64) (client.AuditPage, error), end func() error, err error) {
	if flags.data == "" {
		c, err := env.connect()
		if err != nil {
			return nil, nil, err
		}
		return func(after int64) (client.AuditPage, error) { return c.Audit(ctx, after, client.MaxPage) },
			func() error { c.Close(); return nil }, nil
	}

	file, err := server.OpenAudit(ctx, flags.data, flags.record)
	if err != nil {
		return nil, nil, failed(err)
	}

	return func(after int64) (page client.AuditPage, err error) {
		if page.Head, err = file.AuditHead(ctx); err != nil {
			return page, failed(err)
		}
		links, err := file.AuditAfter(ctx, after, client.MaxPage)
		for i := range links {
			page.Rows = append(page.Rows, client.NewAuditRow(&links[i]))
		}
		return page, failed(err)
	}, file.Close, nil
}
