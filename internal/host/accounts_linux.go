package host

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// accounts caches look-ups as long as the account files do not change.
type accounts struct {
	find  func(name string) (account, error)
	files [2]string // the files that find reads
	// minimum age of a file version before it is cached: two changes within one tick of the file system clock have
	// the same time
	settle time.Duration

	mu     sync.Mutex
	stamp  accountStamp
	byName map[string]account
}

// accountStamp distinguishes versions of the account files. No account can set the change time of a file, and a
// replaced file has another inode.
type accountStamp [2]struct {
	dev, ino uint64
	size     int64
	changed  unix.Timespec
}

func newAccounts() *accounts {
	return &accounts{find: lookupAccount, files: [2]string{"/etc/passwd", "/etc/group"}, settle: 2 * time.Second}
}

// now returns the stamp of the files; settled is false when it cannot be relied on.
func (a *accounts) now() (s accountStamp, settled bool) {
	for i, path := range a.files {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return accountStamp{}, false
		}
		s[i].dev, s[i].ino, s[i].size, s[i].changed = uint64(st.Dev), st.Ino, st.Size, st.Ctim
		if time.Since(time.Unix(st.Ctim.Unix())) < a.settle {
			return accountStamp{}, false
		}
	}
	return s, true
}

// lookup finds an account. Only accounts that exist are cached, so that invented names take no memory.
func (a *accounts) lookup(name string) (account, error) {
	// Without a reliable version of the files, do not use the cache.
	stamp, settled := a.now()
	if !settled {
		return a.find(name)
	}

	// Look into the cache, which is emptied when the files have changed.
	a.mu.Lock()
	if a.stamp != stamp {
		a.stamp, a.byName = stamp, map[string]account{}
	}
	found, ok := a.byName[name]
	a.mu.Unlock()
	if ok {
		return found, nil
	}

	// Read the files.
	found, err := a.find(name)
	if err != nil {
		return found, err
	}

	// Cache the account if both files were read in one version.
	if after, _ := a.now(); after == stamp {
		a.mu.Lock()
		if a.stamp == stamp {
			a.byName[name] = found
		}
		a.mu.Unlock()
	}

	return found, nil
}
