package host

import (
	"errors"
	"sync"

	"golang.org/x/sys/windows"
)

// watcher notices exits: the system's thread pool waits for all process handles, children or not, and one goroutine
// calls back.
type watcher struct {
	callback uintptr
	wake     chan struct{}
	done     chan struct{}

	mu      sync.Mutex
	closed  bool
	next    uintptr
	watches map[uintptr]*watch
	firing  *watch
	fired   *sync.Cond // firing has changed

	// queue is the only lock that a callback takes. No code makes a system call while it holds the lock.
	queue sync.Mutex
	ended []uintptr // ids of watches whose callback is pending
}

type watch struct {
	id      uintptr
	process windows.Handle // 0 when it had ended before
	wait    windows.Handle
	gone    func()
}

func newWatcher() *watcher {
	w := &watcher{wake: make(chan struct{}, 1), done: make(chan struct{}), watches: map[uintptr]*watch{}}
	w.fired = sync.NewCond(&w.mu)
	w.callback = windows.NewCallback(func(id, _ uintptr) uintptr {
		w.notify(id)
		return 0
	})
	go w.loop()
	return w
}

// notify makes the loop call back.
func (w *watcher) notify(id uintptr) {
	w.queue.Lock()
	w.ended = append(w.ended, id)
	w.queue.Unlock()
	w.ring()
}

// takeEnded removes and returns the pending ids.
func (w *watcher) takeEnded() []uintptr {
	w.queue.Lock()
	defer w.queue.Unlock()
	ids := w.ended
	w.ended = nil
	return ids
}

// ring wakes the loop.
func (w *watcher) ring() {
	select {
	case w.wake <- struct{}{}:
	default: // it is awake already
	}
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

	// End the loop.
	w.ring()
	w.mu.Unlock()
	<-w.done

	// Take all watches.
	w.mu.Lock()
	left := w.watches
	w.watches = map[uintptr]*watch{}
	w.mu.Unlock()

	// Close their handles without the lock, because that waits for callbacks.
	var errs []error
	for _, x := range left {
		errs = append(errs, x.drop())
	}
	return errors.Join(errs...)
}

// add watches a process: gone is called once, on the goroutine of the loop, when the process has ended. gone must
// be quick; the handle, which the watcher owns from now on, is still open then. Without a handle the process ended
// before. The returned func ends the watch and waits for a call that is in progress, so gone must not call it.
func (w *watcher) add(process windows.Handle, gone func()) (stop func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := &watch{process: process, gone: gone}
	if w.closed {
		return nil, errors.Join(errClosed, x.drop())
	}

	// Ask the system to report the end of the process.
	w.next++
	x.id = w.next
	if process == 0 {
		w.notify(x.id) // the loop waits for mu, so it finds the watch
	} else if x.wait, err = registerWait(process, w.callback, x.id); err != nil {
		return nil, errors.Join(err, x.drop())
	}

	// Record the watch.
	w.watches[x.id] = x
	return func() { w.end(x) }, nil
}

// end ends a watch, after a call that is in progress.
func (w *watcher) end(x *watch) {
	w.mu.Lock()
	for w.firing == x {
		w.fired.Wait()
	}
	wanted := w.watches[x.id] == x
	delete(w.watches, x.id)
	w.mu.Unlock()

	if wanted {
		_ = x.drop() // fails only for invalid handles, and these are not used again
	}
}

// drop closes the handles, after a callback that is in progress.
func (x *watch) drop() error {
	var errs []error
	if x.wait != 0 {
		errs = append(errs, endWait(x.wait))
	}
	if x.process != 0 {
		errs = append(errs, windows.CloseHandle(x.process))
	}
	return errors.Join(errs...)
}

// loop waits for exits and calls back, until the watcher is closed.
func (w *watcher) loop() {
	defer close(w.done)
	for range w.wake {
		for _, id := range w.takeEnded() {
			w.fire(id)
		}

		w.mu.Lock()
		closed := w.closed
		w.mu.Unlock()
		if closed {
			return
		}
	}
}

// fire calls back for a watch that still exists. Ids are never reused, so an event that was in progress when its watch
// ended finds nothing.
func (w *watcher) fire(id uintptr) {
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
	w.firing = nil
	delete(w.watches, id)
	w.fired.Broadcast()
	w.mu.Unlock()
	_ = x.drop() // as in end
}
