package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/server"
)

// newRecordCommand is `gozzard record`.
func newRecordCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Move the record of a server to PostgreSQL or back, or mark a restored one",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newRecordCopyCommand(env), newRecordMarkRestoredCommand(env))
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
			env.warnOfPassword(o.To + o.From)
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

// newRecordMarkRestoredCommand is `gozzard record mark-restored`.
func newRecordMarkRestoredCommand(env *cliEnv) *cobra.Command {
	o := server.RestoredOptions{Now: env.now}
	cmd := &cobra.Command{
		Use:   "mark-restored --data DIR --record ADDRESS",
		Short: "Prepare a record that was restored with the tools of PostgreSQL",
		Long: `Run this after the database of a server was restored, from a dump or to a point in time, and before the
server is started. The server must not run. The data folder must be that of the server: it has the
keys.

Changes after the copy are lost. Therefore, as after "gozzard backup restore":
  - Hosts cannot connect until an admin confirms them, because hosts that were revoked or removed
    after the copy would be members again. Start the server, check "gozzard hosts", revoke what must
    not come back, then run "gozzard hosts confirm-restore". The processes keep running meanwhile.
    Hosts that joined after the copy join again.
  - Operations that were running are not sent again. They get the verdict that the host has on
    record, or "interrupted". Jobs that were running are marked as failed.
  - Enrolment tokens are revoked and logins are ended. Accounts, secrets and personal tokens are
    those of the copy: check "gozzard app list" and "gozzard user list".
  - The signing key is rotated.

A server notices that its database was set back, and does not start until this command was run. It
cannot notice it if the data folder comes from an old copy, too: run this command after every
restore.

Do not write a password into the address: other accounts can see it. Use PGPASSFILE or PGPASSWORD.`,
		Example: "  gozzard record mark-restored --data /var/lib/gozzard --record postgres://gozzard@db.example.com/gozzard",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Record == "" {
				return usage("--record is required: the address of the database")
			}
			if err := actAsOwner(o.Data, noteWriter{env}); err != nil {
				return failed(err)
			}
			env.warnOfPassword(o.Record)
			return failed(env.recordMarkRestored(cmd.Context(), o))
		},
	}

	cmd.Flags().StringVar(&o.Data, "data", "./data", "data `FOLDER` of the server")
	cmd.Flags().StringVar(&o.Record, "record", "", "`ADDRESS` of the restored database, as postgres://USER@HOST/DATABASE")
	return cmd
}

// recordMarkRestored marks a record as restored and prints what comes next.
func (env *cliEnv) recordMarkRestored(ctx context.Context, o server.RestoredOptions) error {
	r, err := server.MarkRestored(ctx, o)
	if err != nil {
		return err
	}

	key := env.text("the signing key was rotated to %s of epoch %d", r.Signing.ID(), r.Signing.Epoch)
	if r.Signing.Epoch == 0 {
		key = env.text("the signing key is in an external signer: when the server runs, use gozzard key rotate signing")
	}
	return env.say(`restored   the newest row of the audit is of %s; %d host(s) wait; %s
next       start the server, check "gozzard hosts", revoke the hosts that were excluded after that time,
           then run: gozzard hosts confirm-restore
`, r.Taken.UTC().Format(time.RFC3339), r.Waiting, key)
}

// warnOfPassword warns if the command line shows the password of a database.
func (env *cliEnv) warnOfPassword(address string) {
	if server.PasswordShown(address, os.Args) {
		env.remark("the command line has the password of the database, and other accounts of this machine can read it: " +
			"use PGPASSFILE, ~/.pgpass or PGPASSWORD instead")
	}
}
