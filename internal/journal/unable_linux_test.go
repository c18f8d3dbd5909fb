package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/journal"
)

func nothing() error { return nil }

// A19: a sync that fails because the file system is read-only does not end the program. That file is never synced or
// written again.
func TestReadOnlySync(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	syncs, called := 0, 0
	j, _, err := journal.Open(dir, journal.Options{
		Fatal: func(err error) { t.Errorf("fatal: %v", err) }, Unable: func() { called++ },
	})
	must(t, err)
	_, err = j.Append(false, journal.Entry{Type: 1, Body: []byte("durable")})
	must(t, err)
	id := j.ID()

	journal.SetSync(j, func(*os.File) error { syncs++; return unix.EROFS })
	lsn, err := j.Append(false, journal.Entry{Type: 1, Body: []byte("lost")})
	if !errors.Is(err, journal.ErrUnable) || j.Synced() >= lsn+1 || called != 1 {
		t.Fatalf("lsn %d, synced %d, %v, %d calls", lsn, j.Synced(), err, called)
	}
	for range 3 {
		if _, err := j.Append(true, journal.Entry{Type: 1}); !errors.Is(err, journal.ErrUnable) {
			t.Fatal(err)
		}
		if err := j.Compact(nil); !errors.Is(err, journal.ErrUnable) {
			t.Fatal(err)
		}
	}
	if syncs != 1 {
		t.Errorf("a failed sync was repeated: %d", syncs)
	}

	j.Detach()
	if j.ID() == id || !j.Detached() {
		t.Error("the journal has its old id")
	}
	journal.SetSync(j, func(*os.File) error { return nil })
	must(t, j.Recover([]journal.Entry{{Type: 7, Body: []byte("all")}}, nothing))
	_, err = j.Append(false, journal.Entry{Type: 8})
	must(t, err)
	id = j.ID()
	must(t, j.Close())

	j, records, err := journal.Open(dir, journal.Options{})
	must(t, err)
	defer j.Close()
	if j.ID() != id || len(records) != 2 || records[0].Type != 7 || records[1].Type != 8 {
		t.Errorf("id %x, want %x; %+v", j.ID(), id, records)
	}
}

// A20: what goes into a deleted journal is not durable, whatever the kernel says.
func TestDeletedJournal(t *testing.T) {
	for name, remove := range map[string]func(dir string) error{
		"folder":  os.RemoveAll,
		"file":    func(dir string) error { return os.Remove(filepath.Join(dir, "journal")) },
		"renamed": func(dir string) error { return os.Rename(dir, dir+"-moved") },
		"copied": func(dir string) error {
			path := filepath.Join(dir, "journal")
			b, err := os.ReadFile(path)
			return errors.Join(err, os.Remove(path), os.WriteFile(path, b, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			j, _, err := journal.Open(dir, journal.Options{})
			must(t, err)
			defer j.Close()
			_, err = j.Append(false, journal.Entry{Type: 1})
			must(t, err)
			must(t, j.Check())
			must(t, remove(dir))

			if _, err := j.Append(false, journal.Entry{Type: 2}); !errors.Is(err, journal.ErrUnable) {
				t.Fatalf("acknowledged: %v", err)
			}
			must(t, j.Recover([]journal.Entry{{Type: 3}}, nothing))
			must(t, j.Check())
			_, err = j.Append(false, journal.Entry{Type: 4})
			must(t, err)

			if _, _, err := journal.Open(dir, journal.Options{}); !inUse(err) {
				t.Errorf("the folder is not locked: %v", err)
			}
		})
	}
}

// A20: a folder with another journal, or one that another process uses, is not taken.
func TestForeignJournalIsNotReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j, _, err := journal.Open(dir, journal.Options{})
	must(t, err)
	defer j.Close()
	must(t, os.RemoveAll(dir))
	other, _, err := journal.Open(dir, journal.Options{})
	must(t, err)

	if err := j.Check(); !errors.Is(err, journal.ErrUnable) {
		t.Fatal(err)
	}
	if err := j.Recover(nil, nothing); !inUse(err) {
		t.Errorf("took the folder of another: %v", err)
	}
	must(t, other.Close())
	if err := j.Recover(nil, nothing); err == nil {
		t.Error("replaced the journal of another")
	}
	must(t, os.Remove(filepath.Join(dir, "journal")))
	must(t, j.Recover(nil, nothing))
}

func inUse(err error) bool {
	var used *journal.InUseError
	return errors.As(err, &used)
}

// A22: the lock survives the removal of its file.
func TestLockFileRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j, _, err := journal.Open(dir, journal.Options{})
	must(t, err)
	must(t, os.Remove(filepath.Join(dir, "lock")))
	if _, _, err := journal.Open(dir, journal.Options{}); !inUse(err) {
		t.Errorf("a second program opens the folder: %v", err)
	}
	must(t, j.Close())
	j, _, err = journal.Open(dir, journal.Options{})
	must(t, err)
	must(t, j.Close())
}
