package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/signing"
)

const (
	// workPrefix is the start of the name of the folder with the copies. It is inside of the data folder, which other
	// accounts cannot read.
	workPrefix = ".backup-"

	// workStale is the age at which leftovers of a killed program are removed.
	workStale = 24 * time.Hour

	// spareSpace must stay free on the disk of the record when a copy is made.
	spareSpace = 64 << 20

	noteFile = "backup.json"
)

// Progress is called with how much of a step is done. total is 0 if it is not known.
type Progress func(step string, done, total int64)

// CreateOptions say what to back up, and which keys can open the backup. Database, Data, To and Recipients are
// required.
type CreateOptions struct {
	Database   Database
	Data       string // data folder of a server, which may be running
	To         string // a file that does not exist yet
	Recipients []age.Recipient
	Program    string // version of this program
	Progress   Progress
	Now        func() time.Time
}

// Note describes the last backup. It is stored in the data folder.
type Note struct {
	Taken time.Time `json:"taken"`
	File  string    `json:"file"`
	Bytes int64     `json:"bytes"`
}

// Create writes a backup. The file appears complete or not at all, and only its owner can read it.
func Create(ctx context.Context, o CreateOptions) (m Manifest, note Note, err error) {
	// Check the options.
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	if o.To, err = filepath.Abs(o.To); err != nil {
		return m, note, err
	}
	if _, err := os.Lstat(o.To); !errors.Is(err, fs.ErrNotExist) {
		return m, note, fmt.Errorf("cannot write %s: %w", o.To, errors.Join(err, errExists(err)))
	}

	// Copy everything into a temporary folder.
	work, err := workFolder(o.Data, o.Now())
	if err != nil {
		return m, note, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if m, err = collect(ctx, o, work); err != nil {
		return m, note, err
	}

	// Write the encrypted file.
	note = Note{Taken: m.Taken, File: o.To}
	if note.Bytes, err = encrypt(ctx, o, &m, work); err != nil {
		return m, note, fmt.Errorf("cannot write the backup %s: %w", o.To, err)
	}

	// Store the note.
	b, err := json.Marshal(note)
	if err != nil {
		return m, note, err
	}
	return m, note, atomicfile.Write(filepath.Join(o.Data, noteFile), append(b, '\n'))
}

func errExists(err error) error {
	if err != nil {
		return nil
	}
	return errors.New("it exists, and a backup never overwrites a file")
}

// workFolder creates the folder for the copies and removes those of killed programs.
func workFolder(data string, now time.Time) (string, error) {
	old, err := filepath.Glob(filepath.Join(escapeGlob(data), workPrefix+"*"))
	if err != nil {
		return "", err
	}

	for _, dir := range old {
		if st, err := os.Lstat(dir); err == nil && st.IsDir() && now.Sub(st.ModTime()) > workStale {
			if err := os.RemoveAll(dir); err != nil {
				return "", fmt.Errorf("cannot remove the leftovers of an earlier backup: %w", err)
			}
		}
	}

	dir, err := os.MkdirTemp(data, workPrefix)
	if err != nil {
		return "", fmt.Errorf("cannot create a folder for the copy of the record: %w", err)
	}

	return dir, nil
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// collect copies all files. The record is that of one moment; the keys may be a little newer, which does no harm.
func collect(ctx context.Context, o CreateOptions, work string) (m Manifest, err error) {
	m = Manifest{Version: formatVersion, Taken: o.Now().UTC().Truncate(time.Millisecond), Program: o.Program}

	// Copy the record.
	if err := CheckHere(o.Data); err != nil {
		return m, err
	}
	record := filepath.Join(o.Data, RecordFile)
	if _, err := os.Stat(record); err != nil {
		return m, fmt.Errorf("%s is not the data folder of a server: %w", o.Data, err)
	}
	if err := checkRoom(o.Data, record); err != nil {
		return m, err
	}

	o.Progress("copying the record", 0, 0)
	if err := o.Database.Copy(ctx, record, filepath.Join(work, RecordFile)); err != nil {
		return m, err
	}

	v, err := o.Database.Look(ctx, filepath.Join(work, RecordFile))
	if err != nil {
		return m, err
	}
	m.Audit = v.Audit

	// Copy the keys.
	for _, name := range known[1:] {
		err := copyKey(o.Data, name, filepath.Join(work, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return m, err
		}
	}
	keys, err := signing.Keys(work)
	if err != nil {
		return m, fmt.Errorf("cannot back up %s: %w", filepath.Join(o.Data, SigningFile), err)
	}

	m.Epoch = keys[len(keys)-1].Key.Epoch

	// List all files in the manifest.
	for _, name := range known {
		f, err := describe(filepath.Join(work, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return m, err
		}
		m.Files = append(m.Files, f)
	}

	return m, m.check()
}

// checkRoom checks that the disk has room for a copy of the record. A copy that fills the disk would stop the server.
func checkRoom(data, record string) error {
	need := int64(spareSpace)
	for _, name := range []string{record, record + "-wal"} {
		if st, err := os.Stat(name); err == nil {
			need += st.Size()
		}
	}

	free, err := FreeSpace(data)
	if err != nil {
		return fmt.Errorf("cannot check the free space for a copy of the record: %w", err)
	}
	if free < uint64(need) {
		return fmt.Errorf("%d MiB are free in %s, but a temporary copy of the record needs %d MiB",
			free>>20, data, need>>20)
	}

	return nil
}

// copyKey copies a small file of the data folder. The key of an authority may have the name that an older program gave it.
func copyKey(data, name, to string) error {
	if placeOf(name) == name {
		return copySecret(filepath.Join(data, name), to)
	}

	b, err := enrol.ReadKeyFile(data, name == nextFile)
	if err != nil {
		return err
	}
	return saveSecret(filepath.Join(data, placeOf(name)), b, to)
}

// copySecret copies a small file so that only its owner can read it.
func copySecret(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}

	defer in.Close()

	b, err := io.ReadAll(io.LimitReader(in, maxSecret+1))
	if err != nil {
		return err
	}
	return saveSecret(from, b, to)
}

// saveSecret writes the content of a small file so that only its owner can read it.
func saveSecret(from string, b []byte, to string) error {
	if len(b) == 0 || len(b) > maxSecret {
		return fmt.Errorf("cannot back up %s: it is empty or has more than %d bytes", from, maxSecret)
	}

	return os.WriteFile(to, b, 0o600)
}

// describe returns the entry of a file in the manifest.
func describe(path string) (File, error) {
	in, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer in.Close()

	sum := sha256.New()
	n, err := io.Copy(sum, in)
	return File{Name: filepath.Base(path), Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// encrypt packs the copies into the encrypted file.
func encrypt(ctx context.Context, o CreateOptions, m *Manifest, work string) (size int64, err error) {
	var done int64
	total := m.Bytes()
	err = atomicfile.WriteFrom(o.To, func(file io.Writer) error {
		sized := writerFunc(func(p []byte) (int, error) {
			n, err := file.Write(p)
			size += int64(n)
			return n, err
		})

		w, err := age.Encrypt(sized, o.Recipients...)
		if err != nil {
			return err
		}

		cancellable := writerFunc(func(p []byte) (int, error) {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			return w.Write(p)
		})
		err = pack(cancellable, m, work, func(n int) {
			done += int64(n)
			o.Progress("encrypting", min(done, total), total)
		})
		return errors.Join(err, w.Close())
	})
	if err != nil {
		return 0, err
	}
	return size, nil
}

// writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// LastNote reads the note of the last backup of a data folder. It returns fs.ErrNotExist if there is none.
func LastNote(data string) (n Note, err error) {
	f, err := os.Open(filepath.Join(data, noteFile))
	if err != nil {
		return n, err
	}
	defer f.Close()

	if err := json.NewDecoder(io.LimitReader(f, maxManifest)).Decode(&n); err != nil {
		return Note{}, fmt.Errorf("cannot read %s: %w", f.Name(), err)
	}
	return n, nil
}
