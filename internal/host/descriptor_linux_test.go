package host_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
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
