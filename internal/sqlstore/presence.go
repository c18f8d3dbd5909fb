package sqlstore

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// presenceEvery is how often the files of the database are looked at while nothing is written.
const presenceEvery = 400 * time.Millisecond

// presence notices when the files of an open database are removed or replaced. SQLite would go on: it writes to the
// files that it has open, and everything is gone when the last of them is closed.
type presence struct {
	lock *databaseLock
	log  *slog.Logger
	lost func(reason string) // called when a reason appears or ends ("")
	db   file
	wal  file

	mu     sync.Mutex
	reason string // why the record is lost; "": it is there
}

// file is a file with what it was when it was opened.
type file struct {
	path  string
	known os.FileInfo
}

// newPresence remembers the files of a database that is open.
func newPresence(path string, lock *databaseLock, o Options) (*presence, error) {
	p := &presence{lock: lock, log: o.Log, lost: o.Lost, db: file{path: path}, wal: file{path: path + "-wal"}}
	for _, f := range []*file{&p.db, &p.wal} {
		var err error
		if f.known, err = os.Stat(f.path); err != nil {
			return nil, fmt.Errorf("cannot watch the files of the database: %w", err)
		}
	}
	return p, nil
}

// missing says what became of a file; "" when it is there.
func (f *file) missing(what string) string {
	st, err := os.Stat(f.path)
	switch {
	case os.IsNotExist(err):
		return what + " was removed while the server runs"
	case err != nil:
		return what + " cannot be found any more"
	case !os.SameFile(st, f.known):
		return what + " was replaced by another file while the server runs"
	}
	return ""
}

// check looks at the files. While one of them is lost, it returns the error of every write.
func (p *presence) check() error {
	p.mu.Lock()
	defer p.mu.Unlock()

	why := p.db.missing("the record")
	if why == "" {
		why = p.wal.missing("the write-ahead log of the record")
	}

	if why != p.reason {
		p.reason = why
		p.changed(why)
	}
	if why != "" {
		return gozzard.Errorf(gozzard.ErrUnavailable, "%s: nothing is recorded", why)
	}
	return nil
}

// watch is check, with a look at the lock file.
func (p *presence) watch() {
	p.mu.Lock()
	p.lock.renew(p.reason)
	p.mu.Unlock()
	_ = p.check() // it reports by itself
}

// changed reports that the record is lost, or that it is there again.
func (p *presence) changed(why string) {
	if why == "" {
		p.log.Info("the files of the record are there again: the server goes on", "file", p.db.path)
	} else {
		p.log.Error("the record is lost: nothing is acknowledged any more. The server still has the old files open; "+
			"put them back, or stop the server and restore a backup", "reason", why, "file", p.db.path)
	}
	p.lock.note(why)
	p.lost(why)
}
