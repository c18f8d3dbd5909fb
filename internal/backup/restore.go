package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"filippo.io/age"

	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/signing"
)

// Contents describes a backup that was checked.
type Contents struct {
	Manifest
	Record    record.Survey
	Keys      []signing.DatedKey // signing keys of the server, the newest last
	Authority string             // pin of the authority; "" if there is none
}

// VerifyOptions say which backup to check. Database, File and Identities are required.
type VerifyOptions struct {
	Database   Database
	File       string
	Identities []age.Identity
	Temp       string // where the backup is extracted for a while; "": the folder of the system
	Progress   Progress
}

// Verify extracts a backup into a temporary folder, checks all of it as a restore would, and removes the folder.
func Verify(ctx context.Context, o VerifyOptions) (c Contents, err error) {
	dir, err := os.MkdirTemp(o.Temp, "gozzard-verify-") // made with mode 0700
	if err != nil {
		return c, fmt.Errorf("cannot create a folder for the backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	return open(ctx, o, dir)
}

// open extracts a backup into a folder and checks everything that a server needs.
func open(ctx context.Context, o VerifyOptions, dir string) (c Contents, err error) {
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}

	if c.Manifest, err = decrypt(ctx, o, dir); err != nil {
		return c, fmt.Errorf("the backup %s cannot be used: %w", o.File, err)
	}
	if err := c.examine(ctx, o, dir); err != nil {
		return c, fmt.Errorf("the backup %s cannot be used: %w", o.File, err)
	}
	return c, nil
}

// decrypt extracts a backup.
func decrypt(ctx context.Context, o VerifyOptions, dir string) (Manifest, error) {
	// Open the file.
	f, err := os.Open(o.File)
	if err != nil {
		return Manifest{}, err
	}

	defer f.Close()

	st, err := f.Stat()
	if err != nil {
		return Manifest{}, err
	}
	if !st.Mode().IsRegular() {
		return Manifest{}, errors.New("it is not a plain file")
	}

	// Decrypt it.
	plain, err := age.Decrypt(f, o.Identities...)
	var wrong *age.NoIdentityMatchError
	if errors.As(err, &wrong) {
		return Manifest{}, errors.New("it was made for another key or passphrase, or its head is damaged")
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("it is not a backup, or its head is damaged: %w", err)
	}

	// Extract the files.
	var done int64
	cancellable := readerFunc(func(b []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return plain.Read(b)
	})
	return unpack(cancellable, dir, func(n int) {
		done += int64(n)
		o.Progress("extracting", min(done, st.Size()), st.Size())
	})
}

// readerFunc is a function as an io.Reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

var _ io.Reader = readerFunc(nil)

// examine finds faults that checksums do not show: a damaged record, a broken audit, files that this program cannot
// read.
func (c *Contents) examine(ctx context.Context, o VerifyOptions, dir string) (err error) {
	// The record. Its copy is brought up to date.
	o.Progress("checking the record", 0, 0)
	record := filepath.Join(dir, RecordFile)
	if err := o.Database.Verify(ctx, record, c.Audit); err != nil {
		return err
	}
	if err := o.Database.Upgrade(ctx, record); err != nil {
		return err
	}
	if c.Record, err = o.Database.Look(ctx, record); err != nil {
		return err
	}

	// The signing key.
	if c.Keys, err = signing.Keys(dir); err != nil {
		return err
	}
	if newest := c.Keys[len(c.Keys)-1].Key.Epoch; newest != c.Epoch {
		return fmt.Errorf("its signing key is of epoch %d, but %d in the manifest", newest, c.Epoch)
	}

	// The authority, if there is one.
	if !c.has(authorityFile) {
		return nil
	}
	c.Authority, err = enrol.ReadPin(dir)
	return err
}

// RestoreOptions say which backup to restore, and where. Database, File, Identities and Data are required.
type RestoreOptions struct {
	Database   Database
	File       string
	Identities []age.Identity
	Data       string // a folder that is empty or does not exist
	SigningKey string // a newer signing.key of the same server; "": the one in the backup
	Progress   Progress
	Now        func() time.Time
}

// Restored is the result of a restore.
type Restored struct {
	Contents
	Signing signing.Key // the new key; the restored one has signed its hand-over. Zero: an external signer has it
}

// Restore makes the data folder of a server from a backup. Its hosts wait until an admin confirms them, and its signing
// key is rotated: agents that have obeyed the restored server obey no other copy any more.
func Restore(ctx context.Context, o RestoreOptions) (r Restored, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := makeEmptyFolder(o.Data); err != nil {
		return r, err
	}

	// Extract and check the backup inside of the new folder.
	dir, err := os.MkdirTemp(o.Data, ".restore-")
	if err != nil {
		return r, fmt.Errorf("cannot restore into %s: %w", o.Data, err)
	}

	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	verify := VerifyOptions{Database: o.Database, File: o.File, Identities: o.Identities, Progress: o.Progress}
	if r.Contents, err = open(ctx, verify, dir); err != nil {
		return r, err
	}

	// Prepare the key and the record.
	if o.SigningKey != "" {
		if err := useNewerKey(o.SigningKey, dir, r.Keys); err != nil {
			return r, err
		}
	}
	_, r.Signing, err = signing.Rotate(dir, o.Now)
	if errors.Is(err, signing.ErrOutside) { // the server itself rotates it, by the signer
		r.Signing, err = signing.Key{}, nil
	}
	if err != nil {
		return r, err
	}
	if err := o.Database.MarkRestored(ctx, filepath.Join(dir, RecordFile), r.Taken, o.Now()); err != nil {
		return r, err
	}

	// Move the files. The record is the last: without it a server does not accept the folder as that of a fleet.
	files := slices.Clone(r.Files)
	slices.Reverse(files)
	for _, f := range files {
		if err := os.Rename(filepath.Join(dir, f.Name), filepath.Join(o.Data, placeOf(f.Name))); err != nil {
			return r, fmt.Errorf("cannot move %s, and the files in %s are incomplete: %w", f.Name, o.Data, err)
		}
	}

	return r, atomicfile.SyncFolder(o.Data)
}

// makeEmptyFolder creates a folder, or checks that it is empty.
func makeEmptyFolder(dir string) error {
	list, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.MkdirAll(dir, 0o700)
	case err == nil && len(list) > 0:
		return fmt.Errorf("%s is not empty: a backup is restored into a new folder only", dir)
	case err == nil:
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("cannot restore into %s: %w", dir, err)
	}

	return nil
}

// useNewerKey replaces the signing key of the backup by a newer one of the same server.
func useNewerKey(path, dir string, have []signing.DatedKey) error {
	scratch := filepath.Join(dir, "newer")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return err
	}
	if err := copySecret(path, filepath.Join(scratch, SigningFile)); err != nil {
		return fmt.Errorf("cannot read the signing key: %w", err)
	}

	keys, err := signing.Keys(scratch)
	if err != nil {
		return err
	}

	last := have[len(have)-1].Key
	if !slices.ContainsFunc(keys, func(k signing.DatedKey) bool { return k.Key == last }) {
		return fmt.Errorf("the signing key %s does not follow the one in the backup (epoch %d): "+
			"it is of another server, or older", path, last.Epoch)
	}

	return os.Rename(filepath.Join(scratch, SigningFile), filepath.Join(dir, SigningFile))
}
