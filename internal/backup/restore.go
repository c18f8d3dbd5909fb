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
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// Contents is what was found in a backup.
type Contents struct {
	Manifest
	Record    sqlstore.Survey
	Keys      []signing.DatedKey // of the server, the newest last
	Authority string         // names the key of the authority; "" when there is none
}

// Verify takes a backup out into a folder of its own below temp ("" for the system's), looks at all of it as a
// restore would, and removes the folder.
func Verify(ctx context.Context, file string, ids []age.Identity, temp string, p Progress) (c Contents, err error) {
	dir, err := os.MkdirTemp(temp, "gozzard-verify-") // made with mode 0700
	if err != nil {
		return c, fmt.Errorf("cannot make a folder to take the backup out: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return open(ctx, file, ids, dir, p)
}

// open takes a backup out and looks at everything that a server will need of it.
func open(ctx context.Context, file string, ids []age.Identity, dir string, p Progress) (c Contents, err error) {
	if p == nil {
		p = func(string, int64, int64) {}
	}
	if c.Manifest, err = decrypt(ctx, file, ids, dir, p); err != nil {
		return c, fmt.Errorf("the backup %s cannot be used: %w", file, err)
	}
	if err := c.examine(ctx, dir, p); err != nil {
		return c, fmt.Errorf("the backup %s cannot be used: %w", file, err)
	}
	return c, nil
}

func decrypt(ctx context.Context, file string, ids []age.Identity, dir string, p Progress) (Manifest, error) {
	f, err := os.Open(file)
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

	plain, err := age.Decrypt(f, ids...)
	var wrong *age.NoIdentityMatchError
	if errors.As(err, &wrong) {
		return Manifest{}, errors.New("it was not made for this key or passphrase, or its head is damaged")
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("it is no backup, or its head is damaged: %w", err)
	}

	var done int64

	whole := readerFunc(func(b []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return plain.Read(b)
	})

	return unpack(whole, dir, func(n int) {
		done += int64(n)
		p("taking out", min(done, st.Size()), st.Size())
	})
}

// readerFunc is a function to read from.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

var _ io.Reader = readerFunc(nil)

// examine checks what checksums do not tell: whether the record is sound, its audit whole, and all of it can be
// read by this program.
func (c *Contents) examine(ctx context.Context, dir string, p Progress) (err error) {
	record := filepath.Join(dir, RecordFile)
	p("checking the record", 0, 0)

	if err := sqlstore.Verify(ctx, record, c.Audit); err != nil {
		return err
	}

	s, err := sqlstore.OpenSQLite(ctx, record, sqlstore.Options{}) // brings the copy up to date
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("the record cannot be closed: %w", err)
	}
	if c.Record, err = sqlstore.Look(ctx, record); err != nil {
		return err
	}
	if c.Keys, err = signing.Keys(dir); err != nil {
		return err
	}
	if newest := c.Keys[len(c.Keys)-1].Key.Epoch; newest != c.Epoch {
		return fmt.Errorf("its signing key is of epoch %d, its manifest says %d", newest, c.Epoch)
	}
	if !c.has(AuthorityFile) {
		return nil
	}

	a, err := enrol.OpenAuthority(dir, nil)
	if err != nil {
		return err
	}

	c.Authority = a.Pin()
	return nil
}

// RestoreOptions say where a backup comes from and goes to. File, Identities and Data are required.
type RestoreOptions struct {
	File       string
	Identities []age.Identity
	Data       string // a folder that is empty or not there
	SigningKey string // a newer signing.key of the same server, "" for the one in the backup
	Progress   Progress
	Now        func() time.Time
}

// Restored is what a restore did.
type Restored struct {
	Contents
	Signing signing.Key // the new key, introduced by the one that was restored
}

// Restore makes the data folder of a server from a backup. Its hosts wait until an admin confirms them
// (sqlstore.MarkRestored), and its signing key is rotated: agents that have obeyed the restored server obey no
// other copy any more.
func Restore(ctx context.Context, o RestoreOptions) (r Restored, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := emptyFolder(o.Data); err != nil {
		return r, err
	}

	dir, err := os.MkdirTemp(o.Data, ".restore-")
	if err != nil {
		return r, fmt.Errorf("cannot restore into %s: %w", o.Data, err)
	}

	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	if r.Contents, err = open(ctx, o.File, o.Identities, dir, o.Progress); err != nil {
		return r, err
	}
	if o.SigningKey != "" {
		if err := newerKey(o.SigningKey, dir, r.Keys); err != nil {
			return r, err
		}
	}

	if _, r.Signing, err = signing.Rotate(dir, o.Now); err != nil {
		return r, err
	}
	if err := mark(ctx, filepath.Join(dir, RecordFile), r.Taken, o.Now()); err != nil {
		return r, err
	}

	files := slices.Clone(r.Files)
	slices.Reverse(files) // the record last: without it no server takes the folder for one with a fleet

	for _, f := range files {
		if err := os.Rename(filepath.Join(dir, f.Name), filepath.Join(o.Data, f.Name)); err != nil {
			return r, fmt.Errorf("cannot put %s in its place, and what is in %s is not whole: %w", f.Name, o.Data, err)
		}
	}

	return r, atomicfile.SyncFolder(o.Data)
}

func emptyFolder(dir string) error {
	list, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.MkdirAll(dir, 0o700)
	case err == nil && len(list) > 0:
		return fmt.Errorf("%s is not empty: a backup is restored into a new folder, never over what is there", dir)
	case err == nil:
		err = os.Chmod(dir, 0o700)
	}

	if err != nil {
		return fmt.Errorf("cannot restore into %s: %w", dir, err)
	}

	return nil
}

// newerKey takes a signing key in place of the one in the backup, if that leads to it.
func newerKey(path, dir string, have []signing.DatedKey) error {
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
		return fmt.Errorf("the signing key %s does not go back to the one in the backup (epoch %d): it is of another server, or older", path, last.Epoch)
	}

	return os.Rename(filepath.Join(scratch, SigningFile), filepath.Join(dir, SigningFile))
}

func mark(ctx context.Context, record string, taken, now time.Time) error {
	s, err := sqlstore.OpenSQLite(ctx, record, sqlstore.Options{})
	if err != nil {
		return err
	}
	err = s.MarkRestored(ctx, taken, now)
	if err = errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("cannot prepare the restored record: %w", err)
	}
	if st, err := os.Stat(record + "-wal"); err == nil && st.Size() > 0 {
		return errors.New("cannot prepare the restored record: its log was not emptied")
	}
	return nil
}
