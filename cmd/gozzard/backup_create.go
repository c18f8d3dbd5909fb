package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/server"
)

// newBackupCreateCommand is `gozzard backup create`.
func newBackupCreateCommand(env *cliEnv) *cobra.Command {
	var data, to, pass string
	var recipients []string
	cmd := &cobra.Command{
		Use:   "create --data DIR --to FILE --recipient age1…",
		Short: "Make an encrypted backup of a server",
		Long: `Make an encrypted backup of the server with the data folder DIR. The server may be running: the
record is copied as of one moment. While this runs, DIR needs as much free space as the record has.
FILE appears complete or not at all, readable by its owner only, and never replaces another file.
Run this as the account of the server.`,
		Example: `  gozzard backup create --data /var/lib/gozzard --to /backup/gozzard-1.age --recipient age1…
  gozzard backup create --data /var/lib/gozzard --to /backup/gozzard-1.age --passphrase-file FILE`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" || (pass == "") == (len(recipients) == 0) {
				return usage(
					"--to FILE and either --recipient or --passphrase-file are required: every backup is encrypted")
			}
			keys, err := backupRecipients(recipients, pass)
			if err != nil {
				return usage("%w", err)
			}
			findData(cmd, &data)
			if err := actAsOwner(data, noteWriter{env}); err != nil {
				return failed(err)
			}
			return failed(env.backupCreate(cmd.Context(), data, to, keys))
		},
	}

	registerData(cmd, &data)
	cmd.Flags().StringVar(&to, "to", "", "`FILE` to write, which must not exist")
	cmd.Flags().StringSliceVar(&recipients, "recipient", nil,
		"public `KEYS` (age1…) that the backup is encrypted for, see \"gozzard backup keygen\"")
	cmd.Flags().StringVar(&pass, "passphrase-file", "",
		"`FILE` with a passphrase instead, at least 16 characters, readable by its owner only")
	return cmd
}

// backupRecipients returns the keys that a backup is encrypted for: public keys, or the passphrase in a file.
func backupRecipients(words []string, pass string) ([]backup.Recipient, error) {
	if pass == "" {
		return backup.ParseRecipients(words)
	}
	text, err := readSecret(pass)
	if err != nil {
		return nil, err
	}
	return backup.Passphrase(text, backup.Work)
}

// backupCreate makes a backup and prints its file and size.
func (env *cliEnv) backupCreate(ctx context.Context, data, to string, keys []backup.Recipient) error {
	m, note, err := server.CreateBackup(ctx, backup.CreateOptions{
		Data: data, To: to, Recipients: keys, Program: version, Progress: env.bytesProgress(), Now: env.now,
	})
	env.clearProgress()
	if err != nil {
		return err
	}
	env.remark("backed up %s as of %s; store this line elsewhere, it names the newest row of the audit: %d:%s", data,
		m.Taken.Format(time.RFC3339), m.Audit.Seq, m.Audit.Hash)
	return env.say("%s\t%d bytes\n", note.File, note.Bytes)
}
