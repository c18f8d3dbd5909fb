package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// takeLock makes this process the only user of a database and writes its pid down. The file stays when the lock is
// given back: removing it would let two others hold locks on two files of one name.
func takeLock(path string, o Options) (release func() error, err error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the database: %w", err)
	}

	taken, err := lockFile(f)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the database %s: %w", path, errors.Join(err, f.Close()))
	}
	if !taken {
		return nil, errors.Join(gozzard.Errorf(gozzard.ErrConflict, "database in use by pid %s: %s", lockHolder(f),
			path), f.Close())
	}

	// Fixed width over what was there: no truncation, so it needs no new space on a full disk.
	if _, err := f.WriteAt(fmt.Appendf(nil, "%-20d\n", os.Getpid()), 0); isNoRoom(err) {
		o.Log.Warn("cannot write the pid into the lock file", "err", err)
	} else if err != nil {
		return nil, fmt.Errorf("cannot lock the database %s: %w", path, errors.Join(err, f.Close()))
	}

	return f.Close, nil
}

func lockHolder(f *os.File) string {
	buf := make([]byte, 21)
	n, _ := f.ReadAt(buf, 0) // a short or empty file only means that the holder is about to write it
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return "unknown"
	}
	return strconv.Itoa(pid)
}
