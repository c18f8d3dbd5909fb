package host

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// The log of a process that is not managed any more stays for a while, because people look for it then: a day, or until
// the agent starts again. All these logs together have a limit, because nothing limits the number of names. A log that
// still has a writer is only emptied, and only for that limit: what is written to a removed file cannot be found.

const (
	abandonedAge   = 24 * time.Hour
	abandonedBytes = 256 << 20
	learnTime      = time.Minute // after the start, in which the agent names the processes that are managed
)

// Managed says whether a process is managed. Its log is removed some time after it is not.
func (h *Host) Managed(key gozzard.Key, managed bool) { h.logs.manage(keyFolder(key), managed) }

// manage says whether the process of a folder is managed.
func (l *logs) manage(folder string, managed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if managed {
		l.managed[folder] = true
		delete(l.abandoned, folder)
		_, _ = l.get(folder) // a process that was adopted may have a log that no command of ours has made
		return
	}
	delete(l.managed, folder)
	if l.open[folder] != nil {
		l.abandoned[folder] = time.Now()
	}
}

// abandonedLog is a log that belongs to no process that is managed.
type abandonedLog struct {
	folder string
	log    *procLog
	since  time.Time
}

// removeAbandoned removes logs of processes that are not managed: old ones, and then the oldest until the others are
// within their limit.
func (l *logs) removeAbandoned(inUse func(folder string) bool) error {
	// List them, newest first.
	l.mu.Lock()
	var all []abandonedLog
	if time.Since(l.began) > learnTime {
		for folder, since := range l.abandoned {
			if p := l.open[folder]; p != nil {
				all = append(all, abandonedLog{folder, p, since})
			}
		}
	}
	l.mu.Unlock()
	slices.SortFunc(all, func(a, b abandonedLog) int { return b.since.Compare(a.since) })

	// Remove what is too old or too much.
	var errs []error
	sum := int64(0)
	for _, x := range all {
		size, err := x.log.usage()
		if err != nil {
			continue // it has just been removed
		}
		sum += size
		full, used := sum > l.abandonedBytes, inUse(x.folder)
		if full || time.Since(x.since) > abandonedAge && !used {
			sum -= size
			errs = append(errs, l.dropAbandoned(x, used))
		}
	}
	return errors.Join(errs...)
}

// dropAbandoned removes a log, or empties it if it may have a writer.
func (l *logs) dropAbandoned(x abandonedLog, inUse bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.managed[x.folder] || l.open[x.folder] != x.log { // it has just come back
		return nil
	}
	x.log.mu.Lock()
	defer x.log.mu.Unlock()

	if inUse {
		return x.log.clear()
	}
	if fi, err := os.Lstat(x.log.current()); err == nil {
		delete(l.inodes, idOf(fi))
	}
	return l.forget(x.folder, x.log)
}

// usage is the disk space of a log.
func (p *procLog) usage() (sum int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fi, err := os.Lstat(p.current())
	if err != nil {
		return 0, err
	}
	parts, err := p.rotated()
	for _, x := range parts {
		sum += x.size
	}
	return sum + allocated(fi), err
}

// clear drops all text of a log. Positions continue. The caller holds p.mu.
func (p *procLog) clear() error {
	if _, err := p.size(); err != nil {
		return err
	}
	p.base, p.began = p.end, time.Now()
	errs := []error{p.note()}
	parts, err := p.rotated()
	for _, x := range parts {
		errs = append(errs, removeFile(x.path))
	}
	_, emptyErr := p.empty()
	return errors.Join(append(errs, err, emptyErr)...)
}
