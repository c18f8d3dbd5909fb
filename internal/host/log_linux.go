package host

import (
	"errors"
	"fmt"
	"io"
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

// What a process and the commands that start it print goes to a log per process: <state>/logs/<hash of
// key>/current.log. The process writes to the file itself, because a pipe needs a reader: with the agent stopped, a
// full pipe would block the process and a closed one kill it. So the file cannot be renamed away from under its
// writer, and rotation copies it and makes it empty. What is written in the instant between the two is lost, and so
// is what a flood writes beyond one file's size between two looks. Nothing of this ever waits for, or holds up, the
// process.
//
// Positions count bytes since the log began. A rotated file has the position of its first byte as its name, so that
// a reader finds the place where it stopped whatever was rotated meanwhile; the position where current.log begins
// follows from the newest of them, and is noted in a file beside them for the day when they have been removed.

const (
	logFiles    = 5 // that were rotated
	expireEvery = time.Hour
	currentLog  = "current.log"
	logNote     = "note"
)

// logs are those of all processes.
type logs struct {
	dir  string
	size int64
	age  time.Duration

	mu     sync.Mutex
	open   map[string]*procLog // by folder
	inodes map[fileID]struct{} // of the current files
}

// procLog is the log of one process.
type procLog struct {
	dir string

	mu    sync.Mutex
	base  int64 // position where current.log begins
	began time.Time
	end   int64 // the highest position seen, by which it is noticed that a process has cut its log

	expired time.Time // when old files were last looked for
}

func openLogs(stateDir string, size int64, age time.Duration) (*logs, error) {
	l := &logs{dir: filepath.Join(stateDir, "logs"), size: size, age: age, open: map[string]*procLog{},
		inodes: map[fileID]struct{}{}}
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
	}

	return l, nil
}

// find gives the log of a folder that exists.
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
	l.inodes[idOf(fi)] = struct{}{}
	return p, nil
}

// create opens a log for appending, as it is handed to a command. It belongs to the agent and its folder lets
// nobody else in; the permission for others lets a program of another user open its own output again through
// /dev/stdout, and neither read nor replace it.
func (l *logs) create(folder string) (*procLog, *os.File, error) {
	l.mu.Lock() // a sweep that is about to remove the log sees that it is wanted, or it is made anew
	defer l.mu.Unlock()
	dir := filepath.Join(l.dir, folder)
	path := filepath.Join(dir, currentLog)

	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("cannot make folder for log: %w", err)
	}

	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open log: %w", err)
	}

	p, err := l.get(folder)
	fi, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Chmod(0o622), os.Chtimes(path, time.Time{}, time.Now())); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot open log: %w", err), f.Close())
	}

	l.inodes[idOf(fi)] = struct{}{} // another one when somebody has removed the file
	return p, f, nil
}

// owns reports whether a file is a log that we keep.
func (l *logs) owns(id fileID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.inodes[id]
	return ok
}

// sweep rotates what has grown or become old, and removes logs that have been silent for long and whose process is
// gone. hot says that one grows so fast that it should be looked at soon.
func (l *logs) sweep(inUse func(folder string) bool) (hot bool, err error) {
	l.mu.Lock()
	all := make(map[string]*procLog, len(l.open))
	for folder, p := range l.open {
		all[folder] = p
	}

	l.mu.Unlock()
	var errs []error
	for folder, p := range all {
		grows, last, err := p.rotate(l.size, l.age)
		if errors.Is(err, os.ErrNotExist) { // somebody has removed it; the next command makes it anew
			continue
		}
		hot = hot || grows
		errs = append(errs, err)
		if err == nil && time.Since(last) > l.age && !inUse(folder) {
			errs = append(errs, l.remove(folder, p))
		}
	}

	return hot, errors.Join(errs...)
}

func (l *logs) remove(folder string, p *procLog) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if fi, err := os.Lstat(p.current()); err == nil {
		if time.Since(fi.ModTime()) <= l.age {
			return nil // a command has just been given it
		}
		delete(l.inodes, idOf(fi))
	}
	delete(l.open, folder)
	return os.RemoveAll(p.dir)
}

// occupied is what a file really takes: one written to without appending after it was made empty has a hole in front.
func occupied(fi os.FileInfo) int64 {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st.Blocks == 0 {
		return fi.Size()
	}
	return min(fi.Size(), st.Blocks*512)
}

func idOf(fi os.FileInfo) fileID {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{st.Dev, st.Ino}
}

func (p *procLog) current() string { return filepath.Join(p.dir, currentLog) }

// part is a file of a log.
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

// recall finds out where current.log begins. When a rotation was interrupted before the file was made empty, its
// text comes twice, with positions that go on.
func (p *procLog) recall(current os.FileInfo) error {
	parts, err := p.rotated()
	if err != nil {
		return err
	}
	if len(parts) > 0 {
		newest := parts[len(parts)-1]
		p.base = newest.from + newest.size
	}

	p.began = current.ModTime()
	b, err := os.ReadFile(filepath.Join(p.dir, logNote))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}

	var base, began int64
	if _, err := fmt.Sscanf(string(b), "%d %d\n", &base, &began); err == nil { // a torn note is as good as none
		p.base, p.began = max(p.base, base), time.Unix(began, 0)
	}

	p.end = p.base + current.Size()
	return nil
}

// note keeps where current.log begins and since when.
func (p *procLog) note() error {
	path := filepath.Join(p.dir, logNote)
	if err := os.WriteFile(path+".new", fmt.Appendf(nil, "%d %d\n", p.base, p.began.Unix()), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// size looks at current.log and corrects positions when the process has cut it: its shell may redirect to
// /dev/stdout without appending.
func (p *procLog) size() (os.FileInfo, error) {
	fi, err := os.Lstat(p.current())
	if err != nil {
		return nil, err
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

// rotate keeps the log within its bounds. last is when it was written to.
func (p *procLog) rotate(size int64, age time.Duration) (hot bool, last time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.end
	fi, err := p.size()
	if err != nil {
		return false, time.Time{}, fmt.Errorf("cannot look at log: %w", err)
	}

	hot = p.end-before > size/4

	if n := occupied(fi); n >= size || n > 0 && time.Since(p.began) > age {
		if err := p.turn(fi, size); err != nil {
			return hot, fi.ModTime(), fmt.Errorf("cannot rotate log: %w", err)
		}
		p.expired = time.Time{}
	}

	if time.Since(p.expired) < expireEvery {
		return hot, fi.ModTime(), nil
	}

	p.expired = time.Now()
	return hot, fi.ModTime(), p.expire(age)
}

// turn copies the end of current.log to a file of its own and makes it empty. When there is no room for a copy, the
// text is given up: the file must not go on filling the disk.
func (p *procLog) turn(fi os.FileInfo, size int64) error {
	f, err := os.OpenFile(p.current(), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}

	defer f.Close()
	skip := max(0, fi.Size()-size)
	path := filepath.Join(p.dir, fmt.Sprintf("%020d.log", p.base+skip))
	n, copyErr := copyEnd(path, f, skip, 2*size)

	if err := f.Truncate(0); err != nil {
		return errors.Join(copyErr, err)
	}

	p.base, p.began = p.base+max(fi.Size(), skip+n), time.Now()
	p.end = p.base

	if copyErr != nil {
		copyErr = errors.Join(copyErr, removeFile(path))
	} else {
		copyErr = os.Chtimes(path, time.Time{}, fi.ModTime())
	}

	return errors.Join(copyErr, p.note())
}

// copyEnd copies what comes after skip up to the end, and at most limit: somebody may be writing faster.
func copyEnd(path string, from *os.File, skip, limit int64) (int64, error) {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(to, io.NewSectionReader(from, skip, limit))
	return n, errors.Join(err, to.Close())
}

// expire removes old files that are too many or too old.
func (p *procLog) expire(age time.Duration) error {
	parts, err := p.rotated()
	if err != nil {
		return fmt.Errorf("cannot look at log: %w", err)
	}

	var errs []error
	for i, x := range parts {
		if len(parts)-i > logFiles || time.Since(x.last) > age {
			errs = append(errs, removeFile(x.path))
		}
	}

	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot remove old log: %w", err)
	}

	return nil
}
