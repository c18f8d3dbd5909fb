package host_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/supervise"
)

var reuses = flag.Int("host.reuses", 200,
	"how often a pid is used again in the test of P13, and a pid file swapped in that of P14; their figure is for 10000")

// bystander starts a process with a wanted pid. It returns nil when another process got the pid first.
func bystander(t *testing.T, pid int) *exec.Cmd {
	t.Helper()

	if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
		t.Skip(err)
	}

	cmd := exec.Command("/bin/sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if cmd.Process.Pid == pid {
		return cmd
	}

	end(t, cmd)
	return nil
}

func end(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
}

// P13: while a process ends and another one gets its pid, signals for the first never reach the second.
func TestP13ReusedPIDIsNotSignalled(t *testing.T) {
	needsRoot(t)
	f := newHost(t)
	const batch = 10
	checked, foreign := 0, 0
	for tries := 0; checked < *reuses && tries < 4**reuses; {
		var old [batch]*exec.Cmd
		var ids [batch]supervise.Proc
		for i := range old {
			old[i] = exec.Command("/bin/sleep", "300")
			if err := old[i].Start(); err != nil {
				t.Fatal(err)
			}
			st, err := proc.Stat(old[i].Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			ids[i] = supervise.Proc{BootID: f.Facts().BootID, PID: st.PID, Start: st.Start}
		}
		time.Sleep(25 * time.Millisecond) // no process that was found is younger than a tick of the kernel's clock
		for i := range old {
			tries++
			ok, hit := f.reuse(old[i], ids[i])
			if ok {
				checked++
			}
			if hit {
				foreign++
			}
		}
	}

	t.Logf("P13: %d foreign signals in %d reuses", foreign, checked)

	if foreign != 0 || checked < *reuses/2 {
		t.Errorf("%d foreign signals, %d reuses of %d", foreign, checked, *reuses)
	}
}

// reuse sends signals to a process while it ends and its pid is given to another process. It reports whether the pid
// was reused and whether the other process was hit.
func (f *fixture) reuse(old *exec.Cmd, p supervise.Proc) (reused, hit bool) {
	f.t.Helper()
	var stop atomic.Bool
	done := make(chan error, 1)
	go func() {
		var err error
		for !stop.Load() && err == nil {
			if e := f.Signal(p, supervise.SignalTerm); e != nil && !errors.Is(e, os.ErrProcessDone) {
				err = e
			}
		}
		done <- err
	}()

	end(f.t, old)
	next := bystander(f.t, p.PID)
	if next != nil {
		for range 20 { // and after it has ended
			if err := f.Signal(p, supervise.SignalTerm); !errors.Is(err, os.ErrProcessDone) {
				f.t.Errorf("signal gave %v", err)
			}
		}
	}

	stop.Store(true)

	if err := <-done; err != nil {
		f.t.Error(err)
	}
	if next == nil {
		return false, false
	}

	st, err := proc.Stat(p.PID)
	hit = err != nil || st.Dead()
	end(f.t, next)
	return true, hit
}

// P14: a pid file that is replaced by hostile ones all the time never makes the agent accept a foreign process, and
// never delays the agent.
func TestP14SwappedPIDFile(t *testing.T) {
	f := newHost(t)
	k, s := f.key("a"), f.spec("svc")
	path := f.dir + "/svc.pid"
	s.Identity.PIDPath = path
	stranger := exec.Command("/bin/sleep", "300")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}

	defer end(t, stranger)

	swaps := []func(tmp string) error{
		func(tmp string) error { return os.WriteFile(tmp, []byte(strconv.Itoa(stranger.Process.Pid)), 0o644) },
		func(tmp string) error { return os.WriteFile(tmp, []byte("1\n"), 0o644) },
		func(tmp string) error { return os.WriteFile(tmp, []byte("-1"), 0o644) },
		func(tmp string) error { return os.WriteFile(tmp, []byte(strconv.Itoa(os.Getpid())), 0o644) },
		func(tmp string) error { return os.Symlink("/proc/self/stat", tmp) },
		func(tmp string) error { return syscall.Mkfifo(tmp, 0o644) },
		func(tmp string) error {
			return errors.Join(os.WriteFile(tmp, []byte("2"), 0o644), os.Truncate(tmp, 1<<30))
		},
	}

	var stop atomic.Bool
	var swapped atomic.Int64
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; !stop.Load() && err == nil; i++ {
			swapped.Store(int64(i))
			tmp := fmt.Sprintf("%s.%d", path, i)
			err = swaps[i%len(swaps)](tmp)
			if err == nil {
				err = os.Rename(tmp, path)
			}
		}
		done <- err
	}()

	var slowest time.Duration
	taken, looks := 0, 0
	for ; looks < *reuses || swapped.Load() < int64(*reuses); looks++ {
		if len(done) > 0 {
			break
		}
		began := time.Now()
		found, err := look(f.Host, k, s)
		if err != nil {
			t.Error(err)
		}
		slowest = max(slowest, time.Since(began))
		if !found.Proc.IsZero() {
			taken++
		}
	}

	stop.Store(true)

	if err := <-done; err != nil {
		t.Error(err)
	}

	t.Logf("P14: %d strangers taken in %d looks during %d swaps, the slowest took %v", taken, looks, swapped.Load(),
		slowest)

	if taken != 0 || slowest > 5*time.Second {
		t.Errorf("%d strangers were taken, the slowest look took %v", taken, slowest)
	}
}
