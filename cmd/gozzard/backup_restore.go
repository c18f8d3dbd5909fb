package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/server"
)

// decryptFlags choose the key that opens a backup.
type decryptFlags struct {
	identity, pass string
}

func (o *decryptFlags) register(f *pflag.FlagSet) {
	f.StringVar(&o.identity, "identity", "", "`FILE` with the secret key, see backup keygen")
	f.StringVar(&o.pass, "passphrase-file", "", "`FILE` with the passphrase instead")
}

// identities reads the key or the passphrase.
func (o *decryptFlags) identities() ([]backup.Identity, error) {
	if (o.identity == "") == (o.pass == "") {
		return nil, errors.New("either --identity or --passphrase-file is required")
	}

	text, err := readSecret(o.identity + o.pass)
	if err != nil {
		return nil, err
	}
	if o.pass != "" {
		return backup.PassphraseIdentity(text)
	}

	ids, err := backup.ParseIdentities(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", o.identity, err)
	}

	return ids, nil
}

// newBackupVerifyCommand is `gozzard backup verify`.
func newBackupVerifyCommand(env *cliEnv) *cobra.Command {
	var open decryptFlags
	var temp string
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check that a backup can be restored",
		Long: `Unpack a backup into a temporary folder that only this account can enter, and check it as a restore
would: every byte, the database, the hash chain of the audit up to the noted row, that this program
can open it (the copy is migrated if needed), and the keys. Then the folder is removed. The exit
code is 1 when anything is wrong. Run this drill regularly.`,
		Example: "  gozzard backup verify /backup/gozzard-1.age --identity backup.key",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := open.identities()
			if err != nil {
				return usage("%w", err)
			}
			c, err := server.VerifyBackup(cmd.Context(), args[0], ids, temp, env.bytesProgress())
			env.clearProgress()
			if err != nil {
				return failed(err)
			}
			return env.printBackup(&c)
		},
	}

	open.register(cmd.Flags())
	cmd.Flags().StringVar(&temp, "temp", "",
		"temporary `FOLDER` with enough space for the record (default: that of the system)")
	return cmd
}

// printBackup prints the contents of a backup.
func (env *cliEnv) printBackup(c *backup.Contents) error {
	r, key := &c.Record, c.Keys[len(c.Keys)-1].Key
	authority := c.Authority
	if authority == "" {
		authority = "none: hosts join with the join secret"
	}

	return env.say(`taken      %s (%s ago) by gozzard %s
record     %d bytes: %d hosts, %d enrolled, %d processes, %d businesses, %d tasks (%d attempts open), %d apps, %d users
audit      %d rows, unbroken; newest: %d:%s
keys       signing key %s of epoch %d; authority %s
ok         it can be restored by this program
`, c.Taken.Format(time.RFC3339), shortDuration(env.now().Sub(c.Taken)), printable(c.Program),
		c.Files[0].Size, r.Hosts, sum(r.Members), r.Processes, r.Businesses, r.Tasks, r.Open, r.Apps, r.Users,
		r.AuditRows, c.Audit.Seq, c.Audit.Hash, key.ID(), key.Epoch, authority)
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// newBackupRestoreCommand is `gozzard backup restore`.
func newBackupRestoreCommand(env *cliEnv) *cobra.Command {
	var open decryptFlags
	var data, signing string
	cmd := &cobra.Command{
		Use:   "restore FILE --data NEWDIR",
		Short: "Restore a server from a backup",
		Long: `Create the data folder NEWDIR from a backup. NEWDIR must be empty or must not exist. All checks of
"backup verify" run first. Run this as the account of the new server, and make sure that the old
server is not running any more.

Changes after the backup are lost. Therefore:
  - Hosts cannot connect until an admin confirms them, because hosts that were revoked or removed
    after the backup would be members again. Start the server, check "gozzard hosts", revoke what
    must not come back, then run "gozzard hosts confirm-restore". The processes keep running
    meanwhile. Hosts that joined after the backup join again.
  - Operations that were running are not sent again. They get the verdict that the host has on
    record, or "interrupted". Jobs that were running are marked as failed.
  - Enrolment tokens are revoked and logins are ended. Accounts, secrets and personal tokens are
    those of the backup: check "gozzard app list" and "gozzard user list".

The signing key is rotated, so agents that obey the restored server obey no other copy of it. If the
key was rotated after the backup, agents reject the key of the backup ("old copy", "another
server"): give the newest signing.key with --signing-key. If that file is lost, remove server.key in
the state folder of every agent; an enrolled host then joins again ("gozzard token create --agent
ID", "gozzard agent join").`,
		Example: `  gozzard backup restore /backup/gozzard-1.age --identity backup.key --data /var/lib/gozzard
  gozzard server --data /var/lib/gozzard …
  gozzard hosts confirm-restore`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := open.identities()
			if err != nil {
				return usage("%w", err)
			}
			if data == "" {
				return usage("--data NEWDIR is required: a folder that is empty or does not exist yet")
			}
			return failed(env.backupRestore(cmd.Context(), backup.RestoreOptions{
				File: args[0], Identities: ids, Data: data, SigningKey: signing, Progress: env.bytesProgress(),
				Now: env.now,
			}))
		},
	}

	open.register(cmd.Flags())
	cmd.Flags().StringVar(&data, "data", "", "`FOLDER` to create")
	cmd.Flags().StringVar(&signing, "signing-key", "",
		"newer signing.key `FILE` of the same server, used instead of the one in the backup")
	return cmd
}

// backupRestore restores a backup and prints what comes next.
func (env *cliEnv) backupRestore(ctx context.Context, o backup.RestoreOptions) error {
	r, err := server.RestoreBackup(ctx, o)
	env.clearProgress()
	if err != nil {
		return err
	}
	if err := env.printBackup(&r.Contents); err != nil {
		return err
	}

	abs, err := filepath.Abs(o.Data)
	if err != nil {
		return err
	}

	key := env.text("the signing key was rotated to %s of epoch %d", r.Signing.ID(), r.Signing.Epoch)
	if r.Signing.Epoch == 0 {
		key = env.text("the signing key is in an external signer: when the server runs, use gozzard key rotate signing")
	}
	return env.say(`restored   into %s; %s
next       start the server, check "gozzard hosts", revoke the hosts that were excluded after %s,
           then run: gozzard hosts confirm-restore
`, abs, key, r.Taken.Format(time.RFC3339))
}
