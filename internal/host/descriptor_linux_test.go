package host_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/supervise"
)

// pidfds counts the descriptors of this program that refer to a process.
func pidfds(t *testing.T, pids map[int]bool) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fdinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile("/proc/self/fdinfo/" + e.Name())
		if err != nil {
			continue // it was closed meanwhile
		}
		var pid int
		if _, after, ok := strings.Cut(string(text), "\nPid:"); ok {
			if _, err := fmt.Sscan(after, &pid); err == nil && pids[pid] {
				n++
			}
		}
	}
	return n
}

// TestWatchedProcessCostsOneDescriptor: a process in the foreground is watched through the descriptor that its start has
// opened. Its end reaches every watch, and closes the descriptor.
func TestWatchedProcessCostsOneDescriptor(t *testing.T) {
	if fd, err := unix.PidfdOpen(os.Getpid(), 0); errors.Is(err, unix.ENOSYS) {
		t.Skip("Linux 5.3 and newer has pidfds")
	} else if err == nil {
		_ = unix.Close(fd)
	}
	f := newHost(t)
	s, path := f.spec("svc"), f.program("svc")

	// Watch several processes, the first of them twice.
	const count = 5
	pids := map[int]bool{}
	var procs []supervise.Proc
	exits := make(chan supervise.Exit, 2*count)
	for i := range count {
		found := f.front(f.key(fmt.Sprint("p", i)), s, "exec "+path+" 1000")
		pids[found.Proc.PID] = true
		procs = append(procs, found.Proc)
		for range 1 + max(0, 1-i) {
			if _, err := f.Watch(found.Proc, func(e supervise.Exit) { exits <- e }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := pidfds(t, pids); n != count {
		t.Errorf("%d processes cost %d descriptors", count, n)
	}

	// End them.
	for _, p := range procs {
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for range count + 1 {
		select {
		case e := <-exits:
			if !e.Known || e.Signal != "SIGKILL" {
				t.Errorf("exit %+v", e)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("an exit was not noticed")
		}
	}
	for end := time.Now().Add(30 * time.Second); pidfds(t, pids) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("descriptors of ended processes are open")
		}
	}
}

// TestNoDescriptorIsNoVerdict: a process that cannot be read because there is no free descriptor is not taken for one that
// does not run.
func TestNoDescriptorIsNoVerdict(t *testing.T) {
	f := newHost(t)
	s, key := f.spec("svc"), f.key("p")
	found := f.front(key, s, "exec "+f.program("svc")+" 1000")
	q := supervise.Query{Key: key, Spec: s, Held: supervise.Held{Proc: found.Proc}}

	// Leave one descriptor, which others take as well, and look.
	var before unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	last, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: uint64(last) + 1, Max: before.Max}
	if err := errors.Join(unix.Close(last), unix.Prlimit(0, unix.RLIMIT_NOFILE, &few, nil)); err != nil {
		t.Fatal(err)
	}
	enough := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		for {
			select {
			case <-enough:
				return
			default:
				if fd, err := unix.Dup(0); err == nil {
					_ = unix.Close(fd)
				}
			}
		}
	})
	var short, wrong int
	for range 3000 {
		got, err := f.Find(q)
		switch {
		case err != nil:
			short++
		case got.Proc != found.Proc:
			wrong++
		}
	}
	close(enough)
	others.Wait()
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &before, nil); err != nil {
		t.Fatal(err)
	}
	if short == 0 || wrong > 0 {
		t.Errorf("of 3000 looks %d had no descriptor, and %d did not find a process that runs", short, wrong)
	}

	// It is found again.
	if again, err := f.Find(q); err != nil || again.Proc != found.Proc {
		t.Errorf("%+v, %v", again, err)
	}
}
