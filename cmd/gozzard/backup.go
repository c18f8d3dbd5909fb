package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/server"
)

// newBackupCommand is `gozzard backup`.
func newBackupCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Back up and restore a server",
		Long: `A backup is one encrypted file with everything that a new server needs: the record, the authority of
the hosts (ca.pem), the key that signs commands (signing.key) and the join secret. With this file
and its key anyone can command the fleet, within the policies of the hosts. Therefore every backup
is encrypted, and its key does not belong on the server.

  gozzard backup keygen --to backup.key                         on another machine; keep the file there, in two places
  gozzard server … --backup-to DIR --backup-recipient age1…     the server makes a backup every day
  gozzard backup create --data DIR --to FILE --recipient age1…  by hand; the server may be running
  gozzard backup verify FILE --identity backup.key              the restore drill: unpack, check everything, remove
  gozzard backup restore FILE --identity backup.key --data NEWDIR

credentials.json is not in the backup: callers have their own copy, and "gozzard server
--reset-admin" makes a new first app.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newBackupKeygenCommand(env), newBackupCreateCommand(env), newBackupVerifyCommand(env),
		newBackupRestoreCommand(env))
	return cmd
}

func newBackupKeygenCommand(env *cliEnv) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "keygen --to FILE",
		Short: "Create the key that opens backups",
		Long: `Create a pair of keys. The secret key is written to FILE, readable by its owner only. The public key
is printed; it is enough to make backups. Without FILE no backup can be opened: keep it and a copy
of it away from the server. The key is an identity of age (age-encryption.org).`,
		Example: "  gozzard backup keygen --to backup.key",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if to == "" {
				return usage("--to FILE is required: the file for the secret key")
			}
			return failed(env.backupKeygen(to))
		},
	}

	cmd.Flags().StringVar(&to, "to", "", "`FILE` for the secret key, which must not exist")
	return cmd
}

func (env *cliEnv) backupKeygen(to string) error {
	secret, recipient, err := backup.NewIdentity()
	if err != nil {
		return err
	}

	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and may be the only key of your backups: nothing was written", to)
	}
	if err != nil {
		return fmt.Errorf("cannot write the key: %w", err)
	}

	_, err = fmt.Fprintf(f, "# opens backups of gozzard; made %s\n# public key: %s\n%s\n",
		env.now().UTC().Format(time.RFC3339), recipient, secret)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("cannot write the key: %w", errors.Join(err, os.Remove(to)))
	}

	return written(fmt.Fprintln(env.out, recipient))
}

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
				return usage("--to FILE and either --recipient or --passphrase-file are required: every backup is encrypted")
			}
			keys, err := backupRecipients(recipients, pass)
			if err != nil {
				return usage("%w", err)
			}
			return failed(env.backupCreate(cmd.Context(), data, to, keys))
		},
	}

	cmd.Flags().StringVar(&data, "data", "./data", "data `FOLDER` of the server")
	cmd.Flags().StringVar(&to, "to", "", "`FILE` to write, which must not exist")
	cmd.Flags().StringSliceVar(&recipients, "recipient", nil,
		"public `KEYS` (age1…) that the backup is encrypted for, see \"gozzard backup keygen\"")
	cmd.Flags().StringVar(&pass, "passphrase-file", "",
		"`FILE` with a passphrase instead, at least 16 characters, readable by its owner only")
	return cmd
}

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

// readSecret reads a small file that only its owner may read.
func readSecret(path string) ([]byte, error) {
	if err := atomicfile.Check(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<20)) // who reads the text refuses less
}

func (env *cliEnv) backupCreate(ctx context.Context, data, to string, keys []backup.Recipient) error {
	m, note, err := server.CreateBackup(ctx, backup.CreateOptions{Data: data, To: to, Recipients: keys, Program: version,
		Progress: env.bytesProgress(), Now: env.now})
	env.clearProgress()
	if err != nil {
		return err
	}
	env.remark("backed up %s as of %s; store this line elsewhere, it names the newest row of the audit: %d:%s", data,
		m.Taken.Format(time.RFC3339), m.Audit.Seq, m.Audit.Hash)
	return written(fmt.Fprintf(env.out, "%s\t%d bytes\n", note.File, note.Bytes))
}

// openFlags say with what a backup is opened.
type openFlags struct {
	identity, pass string
}

func (o *openFlags) register(f *pflag.FlagSet) {
	f.StringVar(&o.identity, "identity", "", "`FILE` with the secret key, see backup keygen")
	f.StringVar(&o.pass, "passphrase-file", "", "`FILE` with the passphrase instead")
}

func (o *openFlags) identities() ([]backup.Identity, error) {
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

func newBackupVerifyCommand(env *cliEnv) *cobra.Command {
	var open openFlags
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
			return env.tellBackup(&c)
		},
	}

	open.register(cmd.Flags())
	cmd.Flags().StringVar(&temp, "temp", "", "temporary `FOLDER` with enough space for the record (default: that of the system)")
	return cmd
}

// tellBackup says what is in a backup.
func (env *cliEnv) tellBackup(c *backup.Contents) error {
	r, key := &c.Record, c.Keys[len(c.Keys)-1].Key
	authority := c.Authority
	if authority == "" {
		authority = "none: hosts join with the join secret"
	}

	return written(fmt.Fprintf(env.out, `taken      %s (%s ago) by gozzard %s
record     %d bytes: %d hosts, %d enrolled, %d processes, %d businesses, %d tasks (%d attempts open), %d apps, %d users
audit      %d rows, unbroken; newest: %d:%s
keys       signing key %s of epoch %d; authority %s
ok         it can be restored by this program
`, c.Taken.Format(time.RFC3339), span(env.now().Sub(c.Taken)), printable(c.Program),
		c.Files[0].Size, r.Hosts, total(r.Members), r.Processes, r.Businesses, r.Tasks, r.Open, r.Apps, r.Users,
		r.AuditRows, c.Audit.Seq, c.Audit.Hash, key.ID(), key.Epoch, authority))
}

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

func newBackupRestoreCommand(env *cliEnv) *cobra.Command {
	var open openFlags
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

func (env *cliEnv) backupRestore(ctx context.Context, o backup.RestoreOptions) error {
	r, err := server.RestoreBackup(ctx, o)
	env.clearProgress()

	if err != nil {
		return err
	}
	if err := env.tellBackup(&r.Contents); err != nil {
		return err
	}

	abs, err := filepath.Abs(o.Data)
	if err != nil {
		return err
	}

	return written(fmt.Fprintf(env.out, `restored   into %s; the signing key was rotated to %s of epoch %d
next       start the server, check "gozzard hosts", revoke the hosts that were excluded after %s, then run: gozzard hosts confirm-restore
`, abs, r.Signing.ID(), r.Signing.Epoch, r.Taken.Format(time.RFC3339)))
}

// bytesProgress shows how far a long copy is, on a terminal, a few times a second.
func (env *cliEnv) bytesProgress() backup.Progress {
	if !env.terminal {
		return nil
	}

	var shown time.Time
	return func(step string, done, total int64) {
		if now := env.now(); now.Sub(shown) > 200*time.Millisecond {
			shown = now
			text := step + " …"
			if total > 0 {
				text = fmt.Sprintf("%s: %d of %d MiB", step, done>>20, total>>20)
			}
			_, _ = fmt.Fprintf(env.errs, "\r\x1b[K%s", text) // as remark
		}
	}
}

func (env *cliEnv) clearProgress() {
	if env.terminal {
		_, _ = fmt.Fprint(env.errs, "\r\x1b[K")
	}
}
