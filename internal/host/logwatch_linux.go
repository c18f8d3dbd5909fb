package host

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// quietChecks is how many checks in a row find a log unchanged before the kernel is asked to report its next change.
// One is enough: a log that is written every few seconds costs a request instead of a check, and those of a thousand silent
// processes are left alone soon after their start.
const quietChecks = 1

// logWatch knows which logs may have changed since they were last checked. A log that was written a short time ago is
// checked at every sweep. The kernel reports the next write to every other log, once: a process that writes without end
// costs one report. Without a report of the kernel a log is checked at every sweep, too. The owner locks it.
type logWatch struct {
	inotify int               // descriptor, -1 without
	folders map[int32]string  // by number of the watch
	active  map[string]*quiet // the logs that the next sweep checks
	buf     []byte
}

// quiet is how long a log has been unchanged.
type quiet struct {
	checks int
	armed  bool // the kernel reports its next change
}

func newLogWatch() logWatch {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		fd = -1 // the limit of this account is reached: all logs are checked at every sweep
	}
	return logWatch{inotify: fd, folders: map[int32]string{}, active: map[string]*quiet{}, buf: make([]byte, 4<<10)}
}

func (w *logWatch) close() {
	closeFD(w.inotify)
	w.inotify = -1
}

// wake makes the next sweeps check a log.
func (w *logWatch) wake(folder string) { w.active[folder] = &quiet{} }

// forget ends the checks of a log that was removed.
func (w *logWatch) forget(folder string) { delete(w.active, folder) }

// checked notes what a check has found. A log that stays unchanged is watched by the kernel, and checked once more after
// that: it may have changed just before.
func (w *logWatch) checked(folder, path string, changed bool) {
	q := w.active[folder]
	switch {
	case changed:
		w.wake(folder)
	case q == nil: // the kernel watches it
	case q.armed:
		delete(w.active, folder)
	default:
		if q.checks++; q.checks >= quietChecks {
			q.armed = w.arm(folder, path)
		}
	}
}

// arm asks the kernel to report the next change of a log. It returns false if the kernel cannot: its limit of watches may
// be reached.
func (w *logWatch) arm(folder, path string) bool {
	if w.inotify < 0 {
		return false
	}
	n, err := unix.InotifyAddWatch(w.inotify, path, unix.IN_MODIFY|unix.IN_ONESHOT|unix.IN_DONT_FOLLOW)
	if err != nil {
		return false
	}
	w.folders[int32(n)] = folder
	return true
}

// collect reads what the kernel has reported.
func (w *logWatch) collect() {
	for w.inotify >= 0 {
		n, err := unix.Read(w.inotify, w.buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n < unix.SizeofInotifyEvent {
			return // there is nothing more
		}
		w.note(w.buf[:n])
	}
}

// note reads reports of the kernel.
func (w *logWatch) note(reports []byte) {
	for len(reports) >= unix.SizeofInotifyEvent {
		number := int32(binary.NativeEndian.Uint32(reports))
		mask := binary.NativeEndian.Uint32(reports[4:])
		name := int(binary.NativeEndian.Uint32(reports[12:]))
		reports = reports[min(unix.SizeofInotifyEvent+name, len(reports)):]

		if mask&unix.IN_Q_OVERFLOW != 0 { // any log may have changed
			for _, folder := range w.folders {
				w.wake(folder)
			}
			clear(w.folders)
			continue
		}
		if folder, ok := w.folders[number]; ok {
			delete(w.folders, number)
			w.wake(folder)
		}
	}
}
