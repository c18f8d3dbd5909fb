//go:build linux

package soak_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/procfs"
)

// line is one line of the journal that all daemons write.
type line struct {
	At     int64  `json:"at"`
	Event  string `json:"event"`
	Name   string `json:"name"`
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"`
	Role   string `json:"role"`
	Launch string `json:"launch"`
	Op     string `json:"op"`
	Text   string `json:"text"`
}

func (l *line) time() time.Time { return time.Unix(0, l.At) }

// instance is one process of a daemon: what its own lines and the kernel say.
type instance struct {
	line             // of its beginning
	gone    int64    // when it was gone, Unix nanoseconds; 0 while it lives
	ended   string   // what it says about its own end, "" when it says nothing
	endedAt int64    // when it said that
	signals []line   // that it got
	execed  []string // programs that it became
}

func (i *instance) goneAt() time.Time { return time.Unix(0, i.gone) }

// aliveAt reports whether the process lived at a time.
func (i *instance) aliveAt(t time.Time) bool {
	return !t.Before(i.time()) && (i.gone == 0 || t.Before(i.goneAt()))
}

// noticeLag is how late a busy machine may notice that a process is gone.
const noticeLag = 5 * time.Second

// servedAt is aliveAt for a process that may have ended by its own decision: it serves nothing after it has said so, and
// its end is noticed later. One that says so and stays alive serves.
func (i *instance) servedAt(t time.Time) bool {
	said := i.ended != "" && i.gone != 0 && i.gone-i.endedAt < int64(noticeLag)
	return i.aliveAt(t) && (!said || t.Before(time.Unix(0, i.endedAt)))
}

// watcher reads the journal, and notices by pidfd when a process of it is gone.
type watcher struct {
	t    testing.TB
	file *os.File
	poll int
	proc procfs.FS
	quit chan struct{}
	done sync.WaitGroup

	mu        sync.Mutex
	lines     []line
	instances map[string][]*instance // by name, in the order of their beginning
	held      map[int32]hold         // by the number of the hold
	holds     int32                  // how many there were
	rest      []byte                 // a line that is not complete
	programs  []*daemon              // whose processes record nothing themselves
	looked    time.Time              // when their pid files were read
}

// hold is a process that is watched. Holds are numbered: a child that is just being started shares all descriptors for a
// moment, so that an event of a closed descriptor may come when its number is already used again.
type hold struct {
	in *instance
	fd int
}

func watch(t testing.TB, path string) *watcher {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}

	w := &watcher{t: t, file: f, poll: poll, quit: make(chan struct{}), instances: map[string][]*instance{},
		held: map[int32]hold{}, proc: procfs.New("/proc")}
	w.done.Go(func() { w.run() })
	t.Cleanup(func() {
		close(w.quit)
		w.done.Wait()
		_ = w.file.Close()
		for _, h := range w.held {
			_ = unix.Close(h.fd)
		}
		_ = unix.Close(w.poll)
	})
	return w
}

func (w *watcher) run() {
	events := make([]unix.EpollEvent, 64)
	for {
		select {
		case <-w.quit:
			return
		default:
		}
		n, err := unix.EpollWait(w.poll, events, 10)
		if err != nil && !errors.Is(err, unix.EINTR) {
			w.t.Errorf("cannot wait for processes: %v", err)
			return
		}
		now := time.Now().UnixNano()
		w.mu.Lock()
		w.read()
		for _, e := range events[:max(n, 0)] {
			w.release(e.Fd, now)
		}
		w.lookAtPrograms()
		w.mu.Unlock()
	}
}

// read takes the new lines of the journal.
func (w *watcher) read() {
	var b [64 << 10]byte
	for {
		n, _ := w.file.Read(b[:])
		if n == 0 {
			return
		}
		w.rest = append(w.rest, b[:n]...)
		for {
			text, rest, whole := bytes.Cut(w.rest, []byte("\n"))
			if !whole {
				break
			}
			w.rest = rest
			var l line
			if err := json.Unmarshal(text, &l); err != nil {
				w.t.Errorf("the journal has %q: %v", text, err)
				continue
			}
			w.take(l)
		}
	}
}

// take adds one line.
func (w *watcher) take(l line) {
	w.lines = append(w.lines, l)
	if l.Event == "up" && w.find(l) == nil { // a process that was forked is recorded by its parent and by itself
		in := &instance{line: l}
		w.instances[l.Name] = append(w.instances[l.Name], in)
		w.hold(in)
		return
	}

	in := w.find(l)
	if in == nil {
		return
	}
	switch l.Event {
	case "signal":
		in.signals = append(in.signals, l)
	case "end":
		in.ended, in.endedAt = l.Text, l.At
	case "exec":
		in.execed = append(in.execed, l.Text)
	}
}

// find is the process that wrote a line, nil for a command.
func (w *watcher) find(l line) *instance {
	all := w.instances[l.Name]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].PID == l.PID && all[i].Start == l.Start {
			return all[i]
		}
	}
	return nil
}

// hold watches a process until it is gone.
func (w *watcher) hold(in *instance) {
	fd, err := unix.PidfdOpen(in.PID, 0)
	if err == nil {
		st, serr := w.proc.Stat(in.PID)
		if serr != nil || st.Start != in.Start {
			_ = unix.Close(fd)
			err = unix.ESRCH
		}
	}
	if err != nil {
		in.gone = time.Now().UnixNano()
		return
	}
	w.holds++
	if err := unix.EpollCtl(w.poll, unix.EPOLL_CTL_ADD, fd,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: w.holds}); err != nil {
		w.t.Errorf("cannot watch pid %d: %v", in.PID, err)
	}
	w.held[w.holds] = hold{in, fd}
}

// release ends a hold whose process is gone.
func (w *watcher) release(number int32, now int64) {
	h, known := w.held[number]
	if !known {
		return
	}
	h.in.gone = now
	delete(w.held, number)
	_ = unix.EpollCtl(w.poll, unix.EPOLL_CTL_DEL, h.fd, nil)
	_ = unix.Close(h.fd)
}

// live lists the live processes of a daemon with a role, "" for all.
func (w *watcher) live(name, role string) (list []instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, in := range w.instances[name] {
		if in.gone == 0 && (role == "" || in.Role == role) {
			list = append(list, *in)
		}
	}
	return list
}

// main is the newest live main process of a daemon.
func (w *watcher) main(name string) (instance, bool) {
	list := w.live(name, "main")
	if len(list) == 0 {
		return instance{}, false
	}
	return list[len(list)-1], true
}
