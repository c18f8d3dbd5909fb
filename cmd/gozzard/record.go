package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/server"
)

// newRecordCommand is `gozzard record`.
func newRecordCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Move the record of a server to PostgreSQL or back",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newRecordCopyCommand(env))
	return cmd
}

// newRecordCopyCommand is `gozzard record copy`.
func newRecordCopyCommand(env *cliEnv) *cobra.Command {
	o := server.CopyOptions{Now: env.now}
	cmd := &cobra.Command{
		Use:   "copy --data DIR --to ADDRESS | --from ADDRESS",
		Short: "Copy the record of a server that does not run to PostgreSQL, or back to a file",
		Long: `Copy the whole record: tasks, results, definitions, businesses, accounts, hosts and the audit. The
server must not run. The copy is made in one transaction, every row of it is compared with the
original, and the chain of the audit is followed on both sides. If anything is wrong, the data
folder is as before.

With --to the record goes from the data folder into the database, which must be empty. The file is
kept as gozzard.db.moved-TIME. Start the server with --record from then on.

With --from the record goes from the database back into the data folder. The database stays as it
is. Start the server without --record from then on.

Do not write a password into the address: other accounts can see it. Use PGPASSFILE or PGPASSWORD.`,
		Example: `  gozzard record copy --data /var/lib/gozzard --to postgres://gozzard@db.example.com/gozzard
  gozzard record copy --data /var/lib/gozzard --from postgres://gozzard@db.example.com/gozzard`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (o.To == "") == (o.From == "") {
				return usage("either --to or --from is required: the address of the database")
			}
			if err := actAsOwner(o.Data, noteWriter{env}); err != nil {
				return failed(err)
			}
			return failed(env.recordCopy(cmd.Context(), o))
		},
	}

	cmd.Flags().StringVar(&o.Data, "data", "./data", "data `FOLDER` of the server")
	cmd.Flags().StringVar(&o.To, "to", "", "`ADDRESS` of the database to copy to, as postgres://USER@HOST/DATABASE")
	cmd.Flags().StringVar(&o.From, "from", "", "`ADDRESS` of the database to copy from")
	return cmd
}

// recordCopy copies a record and says how the server goes on.
func (env *cliEnv) recordCopy(ctx context.Context, o server.CopyOptions) error {
	progress := env.bytesProgress()
	o.Progress = func(table string, _ int64) {
		if progress != nil {
			progress(table, 0, 0)
		}
	}
	t, err := server.CopyRecord(ctx, o)
	env.clearProgress()
	if err != nil {
		return err
	}

	env.remark("the newest row of the audit is %d:%s, on both sides", t.Audit.Seq, t.Audit.Hash)
	if o.To != "" {
		return env.say("copied %d rows of %d tables; start the server with --record\n", t.Rows, t.Tables)
	}
	return env.say("copied %d rows of %d tables; start the server without --record\n", t.Rows, t.Tables)
}
