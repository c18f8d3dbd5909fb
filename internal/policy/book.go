package policy

import (
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"
)

// accountFiles are what accounts and groups are looked up in, where there are such files.
var accountFiles = [...]string{"/etc/passwd", "/etc/group"}

// settled is how old a version of them must be to be remembered: what is changed twice within one tick of a file
// system's clock has one time.
const settled = 2 * time.Second

// book remembers accounts for as long as the files they were found in stay as they are: those may be long, and
// every command is judged.
type book struct {
	mu    sync.Mutex
	files [len(accountFiles)]fs.FileInfo
	known map[string]entry
}

// entry is an account and whether users has it.
type entry struct {
	account
	listed bool
}

// find looks an account up. Only what exists is remembered, so that made-up names take no room.
func (p *Policy) find(name string) (entry, error) {
	files, ok := stamp()
	if !ok || p.book == nil {
		return p.lookup(name)
	}

	b := p.book
	b.mu.Lock()

	if b.known == nil || !unchanged(b.files, files) {
		b.files, b.known = files, map[string]entry{}
	}

	e, known := b.known[name]
	b.mu.Unlock()

	if known {
		return e, nil
	}

	e, err := p.lookup(name)
	if err != nil || e.found == nil {
		return e, err
	}

	if after, ok := stamp(); ok && unchanged(files, after) { // both files were read in one version
		b.mu.Lock()
		if unchanged(b.files, files) {
			b.known[name] = e
		}
		b.mu.Unlock()
	}

	return e, nil
}

func (p *Policy) lookup(name string) (entry, error) {
	who, err := lookup(name)
	if err != nil {
		return entry{account: who}, err
	}
	return entry{who, slices.ContainsFunc(p.Users, who.isOrIsIn)}, nil
}

// stamp tells versions of the files apart; ok is false when there is nothing to go by.
func stamp() (files [len(accountFiles)]fs.FileInfo, ok bool) {
	for i, path := range accountFiles {
		fi, err := os.Stat(path)
		if err != nil || time.Since(fi.ModTime()) < settled {
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
