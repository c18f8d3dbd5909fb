package policy

import (
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"
)

// accountFiles are the files that have the accounts and groups, on systems that have such files.
var accountFiles = [...]string{"/etc/passwd", "/etc/group"}

// minFileAge is how old a version of those files must be before the cache uses it. Two changes within one tick of the
// file system's clock have the same time.
const minFileAge = 2 * time.Second

// accountCache remembers accounts as long as the files that have them do not change. Those files may be long, and
// every command is checked.
type accountCache struct {
	mu    sync.Mutex
	files [len(accountFiles)]fs.FileInfo
	known map[string]cached
}

// cached is an account, and whether users lists it.
type cached struct {
	account
	listed bool
}

// findAccount looks up an account. The cache remembers only accounts that exist, so invented names use no memory.
func (p *Policy) findAccount(name string) (cached, error) {
	// Look into the cache, and empty it if the files have changed.
	files, ok := fileInfos()
	if !ok || p.cache == nil {
		return p.lookup(name)
	}
	c := p.cache
	c.mu.Lock()
	if c.known == nil || !unchanged(c.files, files) {
		c.files, c.known = files, map[string]cached{}
	}
	e, known := c.known[name]
	c.mu.Unlock()
	if known {
		return e, nil
	}

	// Look into the files.
	e, err := p.lookup(name)
	if err != nil || e.found == nil {
		return e, err
	}

	// Remember the account, if the files have not changed meanwhile.
	if after, ok := fileInfos(); ok && unchanged(files, after) {
		c.mu.Lock()
		if unchanged(c.files, files) {
			c.known[name] = e
		}
		c.mu.Unlock()
	}
	return e, nil
}

// lookup looks an account up without the cache.
func (p *Policy) lookup(name string) (cached, error) {
	acct, err := lookup(name)
	if err != nil {
		return cached{account: acct}, err
	}
	return cached{acct, slices.ContainsFunc(p.Users, acct.matches)}, nil
}

// fileInfos identifies the present version of the files. ok is false if there are no such files or they are too new.
func fileInfos() (files [len(accountFiles)]fs.FileInfo, ok bool) {
	for i, path := range accountFiles {
		fi, err := os.Stat(path)
		if err != nil || time.Since(fi.ModTime()) < minFileAge {
			return files, false
		}
		files[i] = fi
	}
	return files, true
}

func unchanged(a, b [len(accountFiles)]fs.FileInfo) bool {
	for i := range a {
		if !same(a[i], b[i]) {
			return false
		}
	}
	return true
}
