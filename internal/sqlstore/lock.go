package sqlstore

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// databaseLock makes this process the only user of a database. It is a lock on a file beside the database, which has
// the pid of the holder, and a lock on the folder of both. The lock on the folder stays when the file is removed.
type databaseLock struct {
	path   string // of the lock file
	folder *os.File
	file   *os.File
	known  os.FileInfo
	log    *slog.Logger
}

// lockDatabase locks a database for this process alone.
func lockDatabase(path string, o Options) (*databaseLock, error) {
	l := &databaseLock{path: path + ".lock", log: o.Log}

	// Lock the folder.
	var err error
	if l.folder, err = lockFolder(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("cannot lock the database %s: %w", path, err)
	}
	if l.folder == nil {
		return nil, gozzard.Errorf(gozzard.ErrConflict, "database in use by pid %s: %s", l.awaitHolder(), path)
	}

	// Lock the file.
	locked, err := l.lockFile()
	if err != nil {
		return nil, fmt.Errorf("cannot lock the database %s: %w", path, errors.Join(err, l.release()))
	}
	if !locked {
		inUse := gozzard.Errorf(gozzard.ErrConflict, "database in use by pid %s: %s", lockHolder(l.path), path)
		return nil, errors.Join(inUse, l.release())
	}

	return l, nil
}

// lockFile opens the lock file, locks it and writes the pid of this process into it.
func (l *databaseLock) lockFile() (locked bool, err error) {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}

	locked, err = lockFile(f)
	if err != nil || !locked {
		return false, errors.Join(err, f.Close())
	}

	// The pid has a fixed width and overwrites the old one, so it needs no new space on a full disk.
	if _, err := f.WriteAt(fmt.Appendf(nil, "%-20d\n", os.Getpid()), 0); isDiskFull(err) {
		l.log.Warn("cannot write the pid into the lock file", "err", err)
	} else if err != nil {
		return false, errors.Join(err, f.Close())
	}

	if err := f.Truncate(21); err != nil { // what the last holder wrote behind it
		return false, errors.Join(err, f.Close())
	}

	st, err := f.Stat()
	if err != nil {
		return false, errors.Join(err, f.Close())
	}

	l.file, l.known = f, st
	return true, nil
}

// renew makes the lock file again when it was removed or replaced. The folder was locked all the time, so no other
// process used the database meanwhile. Only the pid was missing.
func (l *databaseLock) renew(note string) {
	if st, err := os.Stat(l.path); err == nil && os.SameFile(st, l.known) {
		return
	}

	old := l.file
	locked, err := l.lockFile()
	switch {
	case err != nil:
		l.log.Debug("cannot make the lock file of the database again", "file", l.path, "err", err)
	case locked:
		l.log.Warn("the lock file of the database was removed or replaced; the server made it again", "file", l.path)
		_ = old.Close() // a removed file that nothing was written to
		l.note(note)
	}
}

// note writes a text behind the pid, for "gozzard doctor".
func (l *databaseLock) note(text string) {
	if _, err := l.file.WriteAt(fmt.Appendf(nil, "%-100s\n", text), 21); err != nil {
		l.log.Debug("cannot write into the lock file of the database", "err", err)
	}
}

// release gives the lock back and leaves the file: if it removed the file, two other processes could each lock a
// different file of the same name.
func (l *databaseLock) release() (err error) {
	for _, f := range []*os.File{l.file, l.folder} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// Holder reads from the lock file of a database which process uses it, and why its record is lost; "" if it is not. The
// process may have ended since.
func Holder(path string) (pid int, lost string) {
	b, err := os.ReadFile(path + ".lock")
	if err != nil {
		return 0, ""
	}
	line, rest, _ := strings.Cut(string(b), "\n")
	pid, _ = strconv.Atoi(strings.TrimSpace(line)) // 0: it has not written its pid yet
	return pid, strings.TrimSpace(rest)
}

// awaitHolder is the pid of the process that has the folder. If the lock file was removed, that process makes it again
// within a second.
func (l *databaseLock) awaitHolder() string {
	for range 20 {
		if pid := lockHolder(l.path); pid != "unknown" {
			return pid
		}
		time.Sleep(100 * time.Millisecond)
	}
	return "unknown"
}

// lockHolder is the pid of the process that has the lock, as a text.
func lockHolder(path string) string {
	pid, _ := Holder(strings.TrimSuffix(path, ".lock"))
	if pid == 0 { // it has not written its pid yet, or the file is gone
		return "unknown"
	}
	return strconv.Itoa(pid)
}
