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

	queue sync.Mutex // the only lock that a callback takes: nobody holds it while asking the system for anything
	ended []uintptr  // ended, callback pending
}

type watch struct {
	id      uintptr
	process windows.Handle // 0 when it was gone before
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

func (w *watcher) takeEnded() []uintptr {
	w.queue.Lock()
	defer w.queue.Unlock()
	ids := w.ended
	w.ended = nil
	return ids
}

func (w *watcher) ring() {
	select {
	case w.wake <- struct{}{}:
	default: // it is ringing
	}
}

// close ends all watches without a callback.
func (w *watcher) close() error {
	w.mu.Lock()

	if w.closed {
		w.mu.Unlock()
		return nil
	}

	w.closed = true
	w.ring()
	w.mu.Unlock()
	<-w.done
	w.mu.Lock()
	left := w.watches
	w.watches = map[uintptr]*watch{}
	w.mu.Unlock()
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

	w.next++
	x.id = w.next

	if process == 0 {
		w.notify(x.id) // it waits for mu
	} else if x.wait, err = registerWait(process, w.callback, x.id); err != nil {
		return nil, errors.Join(err, x.drop())
	}

	w.watches[x.id] = x
	return func() { w.end(x) }, nil
}

func (w *watcher) end(x *watch) {
	w.mu.Lock()
	for w.firing == x {
		w.fired.Wait()
	}
	wanted := w.watches[x.id] == x
	delete(w.watches, x.id)
	w.mu.Unlock()
	if wanted {
		_ = x.drop() // fails only for handles that are none, and these are not used again
	}
}

// drop gives the handles back, after a callback that is under way.
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

// fire calls back for a watch that is still wanted. An id is never used again, so that one whose watch has ended
// meanwhile finds nothing.
func (w *watcher) fire(id uintptr) {
	w.mu.Lock()
	x := w.watches[id]
	if x == nil || w.closed {
		w.mu.Unlock()
		return
	}

	w.firing = x
	w.mu.Unlock()

	x.gone()

	w.mu.Lock()
	w.firing = nil
	delete(w.watches, id)
	w.fired.Broadcast()
	w.mu.Unlock()
	_ = x.drop() // as in end
}
