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
		Short: "Back a server up, try a backup out, restore it",
		Long: `A backup is one encrypted file with all that a server needs to live again: the record, the authority of its hosts (ca.pem), the key that commands
are signed with (signing.key) and the join secret. With it, and with the key that opens it, somebody can command the fleet within the policies of its hosts:
there is no form of it that is not encrypted, and the key that opens it does not belong on the server.

  gozzard backup keygen --to backup.key               on another machine: keep the file there, twice; it prints the public key
  gozzard server … --backup-to DIR --backup-recipient age1…    the server backs itself up, once a day
  gozzard backup create --data DIR --to FILE --recipient age1…  or by hand; the server may be running
  gozzard backup verify FILE --identity backup.key    the drill: takes it out, checks everything, removes it again
  gozzard backup restore FILE --identity backup.key --data NEWDIR

credentials.json is not in it: who calls has his own, and "gozzard server --reset-admin" makes a new first one.`,
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
		Short: "Make the key that opens backups",
		Long: `Make a pair of keys. The secret one goes to FILE, readable by its owner only; the public one is printed and is enough to make backups.
Without FILE no backup can be opened by anybody: keep it, and a copy of it, away from the server. It is an identity of age (age-encryption.org).`,
		Example: "  gozzard backup keygen --to backup.key",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if to == "" {
				return usage("--to FILE is required: where the secret key goes")
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
		return fmt.Errorf("%s exists, and may be the only key of backups: nothing was written", to)
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
		Short: "Write an encrypted backup of a server, which may be running",
		Long: `Write an encrypted backup of the server with the data folder DIR. The server may be running: the record is copied as it is at one moment, and goes on.
The copy needs as much free space in DIR as the record has, for as long as this takes. FILE appears whole or not at all, readable by its owner only, and is
never written over another one. Run it as the account of the server.`,
		Example: `  gozzard backup create --data /var/lib/gozzard --to /backup/gozzard-1.age --recipient age1…
  gozzard backup create --data /var/lib/gozzard --to /backup/gozzard-1.age --passphrase-file FILE`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" || (pass == "") == (len(recipients) == 0) {
				return usage("--to FILE and either --recipient or --passphrase-file are required: there is no backup that is not encrypted")
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
		"public `KEYS` (age1…) that may open it, see backup keygen")
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
	env.remark("backed up %s as of %s; keep this line elsewhere, it is the newest row of the audit: %d:%s", data,
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
		Short: "Try a backup out: the restore drill",
		Long: `Take a backup out into a temporary folder that only this account can enter, and look at all of it as a restore would: that every byte is as it was
written, that the record is sound, that its audit is unbroken up to the row that was noted, that this program can open it (bringing the copy up to date where
it must), and that its keys can be used. Then the folder is removed. The exit code is 1 when anything is wrong; a backup that was never tried is a hope.`,
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
	cmd.Flags().StringVar(&temp, "temp", "", "`FOLDER` to work in, with room for the record (default: the system's)")
	return cmd
}

// tellBackup says what is in a backup.
func (env *cliEnv) tellBackup(c *backup.Contents) error {
	r, key := &c.Record, c.Keys[len(c.Keys)-1].Key
	authority := c.Authority
	if authority == "" {
		authority = "none: hosts are let in by the join secret"
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
		Short: "Make the data folder of a server from a backup",
		Long: `Make the data folder NEWDIR, which must be empty or not exist, from a backup. Everything that "backup verify" looks at is looked at first. Run it as the
account that the server will run as, and see to it that the old server does not run any more.

What happened after the backup was taken is not in it. Therefore, in the restored record:
  - Hosts are kept out until an admin has looked: those revoked or removed since would be members again. Start the server, compare "gozzard hosts" with what
    you know, revoke what must not come back, then: gozzard hosts confirm-restore. Their processes go on meanwhile. Hosts that joined since join again.
  - Operations that were under way are not sent again. They get the verdict that the host remembers, or "interrupted". Jobs that were under way are failed.
  - Enrolment tokens are revoked and logins ended. Accounts, secrets and personal tokens are those of the backup: look at gozzard app list and user list.

The signing key is rotated, so that agents which have obeyed the restored server obey no other copy of it. If the key was rotated after the backup, agents
refuse the one in the backup ("old copy", "another server"): give the newest signing.key with --signing-key. When it is lost, each agent must be given the
new key by hand: remove server.key in its state folder; an enrolled host then joins again (gozzard token create --agent ID, gozzard agent join).`,
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
				return usage("--data NEWDIR is required: a folder that is empty or does not exist")
			}
			return failed(env.backupRestore(cmd.Context(), backup.RestoreOptions{
				File: args[0], Identities: ids, Data: data, SigningKey: signing,
				Progress: env.bytesProgress(), Now: env.now,
			}))
		},
	}

	open.register(cmd.Flags())
	cmd.Flags().StringVar(&data, "data", "", "`FOLDER` to make")
	cmd.Flags().StringVar(&signing, "signing-key", "",
		"newer signing.key `FILE` of the same server, in place of the one in the backup")
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
next       start the server, look at "gozzard hosts", revoke what was put out after %s, then: gozzard hosts confirm-restore
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
