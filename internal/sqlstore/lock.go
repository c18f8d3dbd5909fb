package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// lockDatabase makes this process the only user of a database and writes its pid into the lock file. release gives the
// lock back and leaves the file: if it removed the file, two other processes could each lock a different file of the
// same name.
func lockDatabase(path string, o Options) (release func() error, err error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the database: %w", err)
	}

	locked, err := lockFile(f)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the database %s: %w", path, errors.Join(err, f.Close()))
	}
	if !locked {
		inUse := gozzard.Errorf(gozzard.ErrConflict, "database in use by pid %s: %s", lockHolder(f), path)
		return nil, errors.Join(inUse, f.Close())
	}

	// The pid has a fixed width and overwrites the old one, so it needs no new space on a full disk.
	if _, err := f.WriteAt(fmt.Appendf(nil, "%-20d\n", os.Getpid()), 0); isDiskFull(err) {
		o.Log.Warn("cannot write the pid into the lock file", "err", err)
	} else if err != nil {
		return nil, fmt.Errorf("cannot lock the database %s: %w", path, errors.Join(err, f.Close()))
	}

	return f.Close, nil
}

// lockHolder reads the pid of the process that has the lock.
func lockHolder(f *os.File) string {
	buf := make([]byte, 21)
	n, _ := f.ReadAt(buf, 0) // a short or empty file: the other process has not written its pid yet
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return "unknown"
	}
	return strconv.Itoa(pid)
}
