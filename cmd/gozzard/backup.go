package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/backup"
)

// newBackupCommand is `gozzard backup`.
func newBackupCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Back up and restore a server",
		Long: `A backup is one encrypted file with everything that a new server needs: the record, the authority of
the hosts (ca.key), the key that signs commands (signing.key) and the join secret. With this file
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

// newBackupKeygenCommand is `gozzard backup keygen`.
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

// backupKeygen writes a new secret key to a new file and prints the public key.
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

	return checkWrite(fmt.Fprintln(env.out, recipient))
}

// readSecret reads a small file. It rejects a file that other accounts can read.
func readSecret(path string) ([]byte, error) {
	if err := atomicfile.Check(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<20)) // far more than any key or passphrase
}

// bytesProgress shows the progress of a long copy on a terminal, a few times per second.
func (env *cliEnv) bytesProgress() backup.Progress {
	if !env.terminal {
		return nil
	}

	var shown time.Time
	return func(step string, done, total int64) {
		if now := env.now(); now.Sub(shown) > 200*time.Millisecond {
			shown = now
			step = env.chinese.Text(step)
			text := step + " …"
			if total > 0 {
				text = env.text("%s: %d of %d MiB", step, done>>20, total>>20)
			}
			_, _ = fmt.Fprintf(env.errs, "\r\x1b[K%s", text) // stderr may be closed
		}
	}
}

// clearProgress removes the line of bytesProgress from the terminal.
func (env *cliEnv) clearProgress() {
	if env.terminal {
		_, _ = fmt.Fprint(env.errs, "\r\x1b[K")
	}
}
