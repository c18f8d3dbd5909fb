package host

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The output of a process and of the commands that start it goes to one log per process: <state>/logs/<hash of
// key>/current.log. The process writes to the file itself, because a pipe needs a reader: with the agent stopped, a
// full pipe would block the process and a closed one would kill it. Therefore the file cannot be renamed, and
// rotation copies it and truncates it. Text that is written between the two steps is lost, and so is what a fast
// writer adds beyond the size of one file between two checks. The process never waits for any of this.
//
// A process holds a descriptor of its log, so it can also allocate blocks behind the end of the file and set its size.
// The sweep judges a log by its blocks too, and frees what is too much.
//
// Positions count bytes since the log began. The name of a rotated file is the position of its first byte, so a
// reader continues where it stopped, whatever was rotated. The position where current.log begins follows from the
// newest rotated file. It is also stored in a file beside them, for the time after the rotated files were removed.

const (
	logFiles    = 5 // number of rotated files
	expireEvery = time.Hour
	maxLogSize  = 1 << 40 // no process prints that much between two checks: it has set the size
	logPerms    = 0o622
	currentLog  = "current.log"
	logNote     = "note"
	logBounds   = "bounds"
)

// logs are the logs of all processes.
type logs struct {
	dir  string
	size int64
	age  time.Duration

	mu        sync.Mutex
	open      map[string]*procLog // by folder
	inodes    map[fileID]struct{} // of the current files
	watch     logWatch
	managed   map[string]bool      // the folders of processes that are managed
	abandoned map[string]time.Time // since when folders belong to no process that is managed

	began          time.Time
	abandonedBytes int64 // of all logs of processes that are not managed

	freed func(folder string, bytes int64) // reports that a process had allocated too much
}

// procLog is the log of one process.
type procLog struct {
	dir string

	mu    sync.Mutex
	base  int64 // position where current.log begins
	began time.Time
	end   int64 // the highest position seen; a smaller size means that the process truncated its log

	written time.Time // the last write, as the newest check saw it
	expired time.Time // when old files were last removed
	freed   time.Time // when it was last reported that blocks were freed
	own     bounds    // of the definition; 0 means the setting of the agent
}

// bounds limit a log.
type bounds struct {
	size int64
	keep int
	age  time.Duration
}

func openLogs(stateDir string, size int64, age time.Duration) (*logs, error) {
	l := &logs{dir: filepath.Join(stateDir, "logs"), size: size, age: age, open: map[string]*procLog{},
		inodes: map[fileID]struct{}{}, watch: newLogWatch(), managed: map[string]bool{}, abandoned: map[string]time.Time{},
		began: time.Now(), abandonedBytes: abandonedBytes, freed: func(string, int64) {}}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make folder for logs: %w", err)
	}

	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read folder of logs: %w", err)
	}
	for _, e := range entries {
		if _, err := l.find(e.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("cannot read log: %w", err)
		}
		if l.open[e.Name()] != nil {
			l.abandoned[e.Name()] = time.Time{} // unless the agent says that its process is managed
		}
	}

	return l, nil
}

// close ends the reports of the kernel.
func (l *logs) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch.close()
}

// find returns the log of a folder that exists.
func (l *logs) find(folder string) (*procLog, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.get(folder)
}

func (l *logs) get(folder string) (*procLog, error) {
	if p := l.open[folder]; p != nil {
		return p, nil
	}

	p := &procLog{dir: filepath.Join(l.dir, folder)}
	fi, err := os.Lstat(p.current())
	if err != nil {
		return nil, err
	}
	if err := p.recall(fi); err != nil {
		return nil, err
	}

	l.open[folder] = p
	l.watch.wake(folder)
	l.inodes[idOf(fi)] = struct{}{}
	if _, known := l.abandoned[folder]; !known && !l.managed[folder] {
		l.abandoned[folder] = time.Now()
	}
	return p, nil
}

// create opens a log for appending, to be passed to a command. The log belongs to the agent, and only the agent can
// enter its folder. The permission for others allows a program of another account to open its output again through
// /dev/stdout, but not to read or replace the file.
func (l *logs) create(folder string, own bounds) (*procLog, *os.File, error) {
	l.mu.Lock() // a concurrent sweep either sees that the log is in use, or create makes it again
	defer l.mu.Unlock()

	// Open the file.
	dir := filepath.Join(l.dir, folder)
	path := filepath.Join(dir, currentLog)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("cannot make folder for log: %w", err)
	}
	fd, err := retryOpen(path, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open log: %w", &os.PathError{Op: "open", Path: path, Err: err})
	}
	f := os.NewFile(uintptr(fd), path)

	// Set its permission, and its time, so that no sweep removes it.
	p, err := l.get(folder)
	fi, statErr := f.Stat()
	err = errors.Join(err, statErr, os.Chtimes(path, time.Time{}, time.Now()))
	if err == nil && fi.Mode().Perm() != logPerms {
		err = f.Chmod(logPerms)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot open log: %w", err), f.Close())
	}

	if err := p.setBounds(own); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}

	// Remember it as ours. It has a new inode if the old file was removed.
	l.watch.wake(folder)
	l.inodes[idOf(fi)] = struct{}{}
	return p, f, nil
}

// owns reports whether a file is one of these logs.
func (l *logs) owns(id fileID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.inodes[id]
	return ok
}

// sweep rotates logs that are large or old, and removes logs that were silent for a long time and have no process
// any more. It checks all logs, or those that may have changed. hot means that a log grows so fast that the next check
// should come soon.
func (l *logs) sweep(all bool, inUse func(folder string) bool) (hot bool, err error) {
	var errs []error
	for folder, p := range l.toCheck(all) {
		b := p.bounds(bounds{l.size, logFiles, l.age})
		found, err := p.rotate(b)
		if found.freed > 0 {
			l.freed(folder, found.freed)
		}
		l.noteCheck(folder, p, found.changed)
		if errors.Is(err, os.ErrNotExist) { // it was removed; the next command makes it again
			continue
		}
		hot = hot || found.hot
		errs = append(errs, err)
		if err == nil && time.Since(found.last) > b.age && !inUse(folder) {
			errs = append(errs, l.remove(folder, p, b.age))
		}
	}

	errs = append(errs, l.removeAbandoned(inUse))
	return hot, errors.Join(withoutReadOnly(errs)...)
}

// toCheck lists all logs, or those that may have changed.
func (l *logs) toCheck(all bool) map[string]*procLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch.collect()
	if all {
		return maps.Clone(l.open)
	}

	list := make(map[string]*procLog, len(l.watch.active))
	for folder := range l.watch.active {
		if p := l.open[folder]; p != nil {
			list[folder] = p
		}
	}
	return list
}

// noteCheck notes what a check has found.
func (l *logs) noteCheck(folder string, p *procLog, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[folder] == p {
		l.watch.checked(folder, p.current(), changed)
	}
}

func (l *logs) remove(folder string, p *procLog, age time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()

	if fi, err := os.Lstat(p.current()); err == nil {
		if time.Since(fi.ModTime()) <= age {
			return nil // a command just opened it
		}
		delete(l.inodes, idOf(fi))
	}

	return l.forget(folder, p)
}

// forget removes a log. The caller holds both locks.
func (l *logs) forget(folder string, p *procLog) error {
	delete(l.open, folder)
	delete(l.abandoned, folder)
	l.watch.forget(folder)
	return os.RemoveAll(p.dir)
}

// occupied is the disk space of a file. A file that was truncated and then written without O_APPEND has a hole at
// its beginning.
func occupied(fi os.FileInfo) int64 {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st.Blocks == 0 {
		return fi.Size()
	}
	return min(fi.Size(), st.Blocks*512)
}

// allocated is the disk space that belongs to a file, behind its end too.
func allocated(fi os.FileInfo) int64 {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return st.Blocks * 512
}

func idOf(fi os.FileInfo) fileID {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{st.Dev, st.Ino}
}

func (p *procLog) current() string { return filepath.Join(p.dir, currentLog) }

// part is one file of a log.
type part struct {
	path string
	from int64
	size int64
	last time.Time
}

// rotated lists the old files, oldest first.
func (p *procLog) rotated() ([]part, error) {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return nil, err
	}

	var parts []part
	for _, e := range entries {
		number, ok := strings.CutSuffix(e.Name(), ".log")
		from, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil || from < 0 {
			continue
		}
		fi, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{filepath.Join(p.dir, e.Name()), from, fi.Size(), fi.ModTime()})
	}

	slices.SortFunc(parts, func(a, b part) int { return int(min(1, max(-1, a.from-b.from))) })
	return parts, nil
}

// recall finds the position where current.log begins. If a rotation was interrupted before the file was truncated,
// its text appears twice, with increasing positions.
func (p *procLog) recall(current os.FileInfo) error {
	// The newest rotated file ends where current.log begins.
	parts, err := p.rotated()
	if err != nil {
		return err
	}
	if len(parts) > 0 {
		newest := parts[len(parts)-1]
		p.base = newest.from + newest.size
	}

	// The note may know a later position.
	p.began = current.ModTime()
	b, err := os.ReadFile(filepath.Join(p.dir, logNote))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var base, began int64
	if _, err := fmt.Sscanf(string(b), "%d %d\n", &base, &began); err == nil { // a damaged note counts as missing
		p.base, p.began = max(p.base, base), time.Unix(began, 0)
	}

	p.end = p.base + current.Size()
	p.recallBounds()
	return nil
}

// setBounds stores the bounds of the definition beside the log: an agent that starts again must know them before the
// process does.
func (p *procLog) setBounds(own bounds) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own == p.own {
		return nil
	}
	path := filepath.Join(p.dir, logBounds)
	text := fmt.Appendf(nil, "%d %d %d\n", own.size, own.keep, int64(own.age/time.Second))
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return fmt.Errorf("cannot store the bounds of a log: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("cannot store the bounds of a log: %w", err)
	}
	p.own, p.expired = own, time.Time{}
	return nil
}

// recallBounds reads what setBounds stored. A damaged file counts as missing.
func (p *procLog) recallBounds() {
	b, err := os.ReadFile(filepath.Join(p.dir, logBounds))
	if err != nil {
		return
	}
	var size, keep, age int64
	if _, err := fmt.Sscanf(string(b), "%d %d %d\n", &size, &keep, &age); err == nil {
		p.own = bounds{size, int(keep), time.Duration(age) * time.Second}
	}
}

// bounds are those of the definition, or the given ones where it has none.
func (p *procLog) bounds(of bounds) bounds {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bounds{cmp.Or(p.own.size, of.size), cmp.Or(p.own.keep, of.keep), cmp.Or(p.own.age, of.age)}
}

// note stores where current.log begins and since when.
func (p *procLog) note() error {
	path := filepath.Join(p.dir, logNote)
	if err := os.WriteFile(path+".new", fmt.Appendf(nil, "%d %d\n", p.base, p.began.Unix()), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// size reads the size of current.log and corrects the positions if the process truncated it: its shell may redirect
// to /dev/stdout without appending.
func (p *procLog) size() (os.FileInfo, error) {
	fi, err := os.Lstat(p.current())
	if err != nil {
		return nil, err
	}
	if fi.Size() > maxLogSize {
		if fi, err = p.empty(); err != nil {
			return nil, err
		}
	}
	if p.base+fi.Size() < p.end {
		p.base = p.end
		if err := p.note(); err != nil {
			return nil, err
		}
	}
	p.end = p.base + fi.Size()
	return fi, nil
}

// empty drops the text of current.log, with all its blocks.
func (p *procLog) empty() (os.FileInfo, error) {
	f, err := os.OpenFile(p.current(), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := freeAll(f); err != nil {
		return nil, err
	}
	return f.Stat()
}

// freeAll makes a file empty. Some file systems free blocks behind the end only if the size changes.
func freeAll(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	if fi, err := f.Stat(); err != nil || allocated(fi) == 0 {
		return err
	}
	if err := f.Truncate(1); err != nil {
		return err
	}
	return f.Truncate(0)
}

// logCheck is what a check of a log has found.
type logCheck struct {
	hot     bool      // it grows so fast that the next check should come soon
	changed bool      // it is not as the check before has left it
	last    time.Time // of the last write
	freed   int64     // what the process had allocated beyond the limits without printing, if not reported for a while
}

// rotate keeps the log within its limits.
func (p *procLog) rotate(b bounds) (found logCheck, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	// Measure how fast it grows.
	before := p.end
	fi, err := p.size()
	if err != nil {
		return found, fmt.Errorf("cannot read log: %w", err)
	}
	found.last = fi.ModTime()
	found.hot = p.end-before > b.size/4
	found.changed = p.end != before || !found.last.Equal(p.written)
	p.written = found.last

	// Look for blocks behind its end.
	n := occupied(fi)
	tooMuch := allocated(fi) >= 2*b.size
	if extra := allocated(fi) - n; tooMuch && extra >= b.size {
		found.hot, found.changed = true, true // it may do so again at once
		if time.Since(p.freed) > expireEvery {
			p.freed, found.freed = time.Now(), extra
		}
	}

	// Begin a new file when the current one is large or old.
	if n >= b.size || tooMuch || n > 0 && time.Since(p.began) > b.age {
		found.changed = true
		if err := p.copyAndTruncate(fi, b.size); err != nil {
			return found, fmt.Errorf("cannot rotate log: %w", err)
		}
		p.expired = time.Time{}
	}

	// Remove old files from time to time.
	if time.Since(p.expired) < expireEvery {
		return found, nil
	}
	p.expired = time.Now()
	return found, p.expire(b)
}

// copyAndTruncate copies the end of current.log to a new file and truncates current.log. If there is no space for the
// copy, the text is dropped: the log must not fill the disk.
func (p *procLog) copyAndTruncate(fi os.FileInfo, size int64) error {
	// Copy the end.
	f, err := os.OpenFile(p.current(), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	skip := max(0, fi.Size()-size)
	path := filepath.Join(p.dir, fmt.Sprintf("%020d.log", p.base+skip))
	n, copyErr := copyEnd(path, f, skip, 2*size)

	// Truncate the file and continue the positions after it.
	if err := freeAll(f); err != nil {
		return errors.Join(copyErr, err)
	}
	p.base, p.began = p.base+max(fi.Size(), skip+n), time.Now()
	p.end = p.base

	// Remove a copy that is not complete.
	if copyErr != nil {
		copyErr = errors.Join(copyErr, removeFile(path))
	} else {
		copyErr = os.Chtimes(path, time.Time{}, fi.ModTime())
	}

	// Store the new position.
	return errors.Join(copyErr, p.note())
}

// copyEnd copies the text after skip, and at most limit bytes, because a process may write faster than this copies.
func copyEnd(path string, from *os.File, skip, limit int64) (int64, error) {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(to, io.NewSectionReader(from, skip, limit))
	return n, errors.Join(err, to.Close())
}

// expire removes old files that are too many or too old.
func (p *procLog) expire(b bounds) error {
	parts, err := p.rotated()
	if err != nil {
		return fmt.Errorf("cannot read log: %w", err)
	}

	var errs []error
	for i, x := range parts {
		if len(parts)-i > b.keep || time.Since(x.last) > b.age {
			errs = append(errs, removeFile(x.path))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot remove old log: %w", err)
	}
	return nil
}
