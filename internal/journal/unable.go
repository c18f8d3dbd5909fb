package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// usable returns why nothing can be recorded, or nil. The caller holds j.mu.
func (j *Journal) usable() error {
	if j.err != nil {
		return j.err
	}
	return j.Fault()
}

// Fault returns why the journal cannot record now, or nil. Its error is ErrUnable. It never waits.
func (j *Journal) Fault() error {
	if p := j.unable.Load(); p != nil {
		return *p
	}
	return nil
}

// setUnable makes every later call return ErrUnable until Recover succeeds. The caller holds j.mu.
func (j *Journal) setUnable(reason error) error {
	if err := j.Fault(); err != nil {
		return err
	}
	err := fmt.Errorf("%w: %w", ErrUnable, reason)
	j.unable.Store(&err)
	j.syncEnded.Broadcast()
	j.o.Log.Error("the journal cannot record", "dir", j.dir, "err", reason)
	j.o.Unable()
	return err
}

// inPlace returns an error if the open file is not the one that a restart would find. The caller holds j.mu.
func (j *Journal) inPlace() error {
	switch _, err := os.Lstat(j.path(fileName)); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was deleted", j.path(fileName))
	case err != nil:
		return err
	case !sameFile(j.file, j.path(fileName)):
		return fmt.Errorf("%s was replaced by another file", j.path(fileName))
	}
	return nil
}

// Check looks at the folder. An ErrUnable means that the journal cannot record, for example because the folder was
// deleted. Another error means that no new file can be made in the folder, although the journal can still record. The
// caller should check about once a second, because nothing else notices a deleted folder while nothing is recorded.
func (j *Journal) Check() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	if err := j.inPlace(); err != nil {
		return j.setUnable(err)
	}
	return tryWriting(j.dir)
}

// tryWriting returns why no file can be made in a folder or its journal cannot be written, as far as that shows without
// a write. Opening shows it where a kernel has stopped all writes after an error of the disk.
func tryWriting(dir string) error {
	if err := checkWritable(dir); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, fileName), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// CheckFolder returns why no journal could be opened in a folder, as far as that shows without changing anything.
func CheckFolder(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("cannot use the state folder: %w", err)
	}
	if !st.IsDir() {
		return fmt.Errorf("cannot use state folder %s: not a folder", dir)
	}
	if err := tryWriting(dir); err != nil {
		return fmt.Errorf("cannot use the state folder: %w", err)
	}
	return nil
}

// Detach gives a journal that cannot record a new id. The caller must do that, and name the new id to its server,
// before it acts without a record: the file still has the old id, so after a restart the server knows that something
// may have happened of which the file knows nothing.
func (j *Journal) Detach() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.Fault() != nil && j.ID() == j.onDisk {
		j.setID(newID())
	}
}

// Detached reports whether the journal has another id than its file.
func (j *Journal) Detached() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ID() != j.onDisk
}

// Recover makes a journal that cannot record usable again. It makes the folder again if it was deleted, calls beside,
// which may write other files there, and replaces the journal by live, as Compact does. The old file is not continued,
// because it may end with a part of a record, and a failed sync must not be repeated.
//
// It does not touch a folder that another process has locked, nor one with another journal.
func (j *Journal) Recover(live []Entry, beside func() error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.syncing {
		j.syncEnded.Wait()
	}
	if j.err != nil || j.Fault() == nil {
		return j.err
	}

	// Make the folder ours.
	if err := j.claim(); err != nil {
		return err
	}
	if err := beside(); err != nil {
		return err
	}

	// Write the file.
	if err := j.rewrite(live); err != nil {
		return err
	}
	j.hasReserve = false
	j.unable.Store(nil)
	return nil
}

// claim makes and locks the folder, and checks that no other journal is in it. The caller holds j.mu.
func (j *Journal) claim() error {
	if err := makeDir(j.dir); err != nil {
		return err
	}

	// Lock it, if it is another folder than before or its lock file is gone.
	if !j.lock.holds(j.dir) {
		if err := j.lockAgain(); err != nil {
			return err
		}
	}

	// Look for another journal.
	path := j.path(fileName)
	if err := checkFile(path); err != nil {
		return err
	}
	if sameFile(j.file, path) {
		return nil
	}
	head, err := readHead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if h, _, ok := decodeHeader(head); !ok || h.id != j.onDisk {
		return fmt.Errorf("%s is the journal of another agent or is damaged: move it away", path)
	}
	return nil
}

// lockAgain replaces the lock by one on the folder that is at the path now. The caller holds j.mu.
func (j *Journal) lockAgain() error {
	// Where it is the same folder, only the lock file is new.
	if old := j.lock; old.folder != nil && sameFile(old.folder, j.dir) {
		f, err := lockPath(j.path(lockName), 0)
		if err != nil {
			return lockError(j.dir, j.path(lockName), err)
		}
		_ = old.file.Close()
		old.file = f
		return nil
	}

	lock, err := lockDir(j.dir, 0)
	if err != nil {
		return err
	}
	if err := atomicfile.SyncFolder(filepath.Dir(j.dir)); err != nil { // the folder is new
		_ = lock.close()
		return err
	}
	_ = j.lock.close()
	j.lock = lock
	return nil
}
