package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pollEvery is how often processes without a pidfd are checked: on old kernels, and beyond the limit of open files.
const pollEvery = 50 * time.Millisecond

// watcher notices exits: one goroutine for all processes, woken by the kernel through their pidfds, children or
// not.
type watcher struct {
	epoll int
	wake  int // eventfd
	done  chan struct{}

	mu      sync.Mutex
	closed  bool
	next    uint64
	watches map[uint64]*watch
	polled  map[uint64]*watch // those without pidfd, also in watches
	pids    map[int]int       // how many watches a pid has
	firing  *watch
	fired   *sync.Cond // firing has changed
}

type watch struct {
	id    uint64
	pid   int
	pidfd int                       // -1 without
	lend  func(func(uintptr)) error // calls back with a pidfd that belongs to another part; nil if there is none
	alive func() bool
	gone  func()

	joined []*watch // are called back after this one, and need no pidfd
}

func newWatcher() (*watcher, error) {
	// Make the descriptors.
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot make epoll: %w", err)
	}
	ev, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make eventfd: %w", err), unix.Close(ep))
	}

	// Watch the eventfd too: it wakes the loop.
	w := &watcher{epoll: ep, wake: ev, done: make(chan struct{}), watches: map[uint64]*watch{},
		polled: map[uint64]*watch{}, pids: map[int]int{}}
	w.fired = sync.NewCond(&w.mu)
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, ev, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot watch eventfd: %w", err), unix.Close(ep), unix.Close(ev))
	}

	go w.loop()
	return w, nil
}

// close ends all watches without a callback.
func (w *watcher) close() error {
	// Close once.
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	w.mu.Unlock()

	// End the loop.
	w.ring()
	<-w.done

	// Forget all watches.
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.watches {
		w.drop(x)
	}

	// Close the descriptors.
	return errors.Join(unix.Close(w.epoll), unix.Close(w.wake))
}

// add watches a process: gone is called once, on the goroutine of the loop, when the process has ended. gone must
// be quick. The watcher owns pidfd from now on; without one (-1), alive is polled. The returned func ends the watch
// and waits for a call that is in progress, so gone must not call it.
func (w *watcher) add(pid, pidfd int, alive func() bool, gone func()) (stop func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		closeFD(pidfd)
		return nil, errClosed
	}

	// Ask the kernel to report the end of the process.
	x := &watch{pid: pid, pidfd: pidfd, alive: alive, gone: gone}
	w.record(x)
	if pidfd < 0 {
		w.polled[x.id] = x
		w.ring()
	} else if err := w.register(x, pidfd); err != nil {
		w.drop(x)
		return nil, err
	}

	return func() { w.end(x) }, nil
}

// addLent is add with the pidfd of another part, which lend calls back with while it is open. That part may close it when
// the process has ended, and must call check then.
func (w *watcher) addLent(pid int, lend func(func(uintptr)) error, alive func() bool, gone func()) (*watch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errClosed
	}

	x := &watch{pid: pid, pidfd: -1, lend: lend, alive: alive, gone: gone}
	w.record(x)
	var failed error
	err := lend(func(fd uintptr) { failed = w.register(x, int(fd)) })
	if err = errors.Join(err, failed); err != nil {
		w.drop(x)
		return nil, err
	}
	return x, nil
}

// join adds another callback about the process of a watch. It returns false if the process has ended.
func (w *watcher) join(x *watch, alive func() bool, gone func()) (stop func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.watches[x.id] != x || w.firing == x {
		return nil, false
	}
	y := &watch{pid: x.pid, pidfd: -1, alive: alive, gone: gone}
	w.record(y)
	x.joined = append(x.joined, y)
	return func() { w.end(y) }, true
}

// check makes the loop look at a watch, because its pidfd may be closed before the loop has seen the end of the process.
func (w *watcher) check(x *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed && w.watches[x.id] == x {
		w.polled[x.id] = x
		w.ring()
	}
}

// record gives a watch its id. Ids begin at 1: 0 is the eventfd. The caller holds mu.
func (w *watcher) record(x *watch) {
	w.next++
	x.id = w.next
	w.watches[x.id] = x
	w.pids[x.pid]++
}

// register makes the kernel report the end of the process of a watch.
func (w *watcher) register(x *watch, pidfd int) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(uint32(x.id)), Pad: int32(uint32(x.id >> 32))}
	if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, pidfd, &ev); err != nil {
		return fmt.Errorf("cannot watch pid %d: %w", x.pid, err)
	}
	return nil
}

// end ends a watch, after a call that is in progress.
func (w *watcher) end(x *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.firing == x {
		w.fired.Wait()
	}
	if w.watches[x.id] == x {
		w.drop(x)
	}
}

// drop forgets a watch. Closing the pidfd removes it from the epoll set, because there is no other copy. What has joined
// the watch is polled from now on.
func (w *watcher) drop(x *watch) {
	delete(w.watches, x.id)
	delete(w.polled, x.id)
	if w.pids[x.pid]--; w.pids[x.pid] == 0 {
		delete(w.pids, x.pid)
	}
	closeFD(x.pidfd)
	if x.lend != nil { // fails when the other part has closed it, which has the same effect
		_ = x.lend(func(fd uintptr) { _ = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_DEL, int(fd), nil) })
	}
	for _, y := range x.joined {
		if w.watches[y.id] == y {
			w.polled[y.id] = y
			w.ring()
		}
	}
}

// watching reports whether the exit of a pid is watched.
func (w *watcher) watching(pid int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pids[pid] > 0
}

// ring wakes the loop. An error does not matter: a full eventfd is already awake.
func (w *watcher) ring() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(w.wake, one[:])
}

// loop waits for exits and calls back, until the watcher is closed.
func (w *watcher) loop() {
	defer close(w.done)
	events := make([]unix.EpollEvent, 128)
	for {
		// Wait for an exit, for ring, or for the next poll.
		n, err := unix.EpollWait(w.epoll, events, w.patience())
		if err != nil && !errors.Is(err, unix.EINTR) {
			// Only a descriptor that other code closed does that. Continuing would miss every exit.
			panic(fmt.Sprintf("epoll: %v", err))
		}

		// Call back for what has ended.
		for _, ev := range events[:max(n, 0)] {
			id := uint64(uint32(ev.Fd)) | uint64(uint32(ev.Pad))<<32
			if id == 0 {
				var b [8]byte
				_, _ = unix.Read(w.wake, b[:])
				continue
			}
			w.fire(id)
		}
		for _, id := range w.pollGone() {
			w.fire(id)
		}

		// End the loop when the watcher is closed.
		w.mu.Lock()
		closed := w.closed
		w.mu.Unlock()
		if closed {
			return
		}
	}
}

// patience is how long the loop may sleep, in milliseconds: without limit while no process is polled.
func (w *watcher) patience() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.polled) > 0 {
		return int(pollEvery.Milliseconds())
	}
	return -1
}

// pollGone lists the polled watches whose process has ended.
func (w *watcher) pollGone() []uint64 {
	w.mu.Lock()
	polled := make([]*watch, 0, len(w.polled))
	for _, x := range w.polled {
		polled = append(polled, x)
	}
	w.mu.Unlock()

	var gone []uint64
	for _, x := range polled {
		if !x.alive() {
			gone = append(gone, x.id)
		}
	}
	return gone
}

// fire calls back for a watch that still exists. Ids are never reused, so an event that was in progress when its
// watch ended finds nothing.
func (w *watcher) fire(id uint64) {
	// Mark the watch, so that end waits for the call.
	w.mu.Lock()
	x := w.watches[id]
	if x == nil || w.closed {
		w.mu.Unlock()
		return
	}
	w.firing = x
	w.mu.Unlock()

	// Call without the lock.
	x.gone()

	// Forget the watch.
	w.mu.Lock()
	joined := x.joined
	w.firing, x.joined = nil, nil
	if w.watches[id] == x {
		w.drop(x)
	}
	w.fired.Broadcast()
	w.mu.Unlock()

	// Call back for what has joined it.
	for _, y := range joined {
		w.fire(y.id)
	}
}

// openPidfd returns -1 when there is no such process or no pidfd is available; then only the start time identifies
// the process.
func openPidfd(pid int) (int, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, os.NewSyscallError("pidfd_open", err)
	}
	return fd, nil
}

func closeFD(fd int) {
	if fd >= 0 {
		_ = unix.Close(fd) // a pidfd has nothing to write back
	}
}
